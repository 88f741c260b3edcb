// What the pool and the environments cost on this machine, without Python.
//
//   export PYFASTENV_ASSETS_DIR=$(python -c "from pyfastenv.vector.specs import assets_dir as a;
//   print(a())") pyfastenv_bench --benchmark_filter=Step
//
// Times are wall clock. The counter env_steps is environment steps per second, of all threads.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/params.h"
#include "core/thread_pool.h"
#include "core/vector_env.h"
#include "envs/mujoco/mujoco_env.h"
#include "envs/physics_limit.h"
#include "envs/registry.h"

namespace pyfastenv {
namespace {

using benchmark::State;

std::string AssetsDir() { return std::getenv("PYFASTENV_ASSETS_DIR"); }  // main checks it

void CountSteps(State& state, int64_t steps_per_iteration) {
  state.counters["env_steps"] = benchmark::Counter(
      static_cast<double>(state.iterations() * steps_per_iteration), benchmark::Counter::kIsRate);
}

/// `count` actions in the dtype that the environment takes.
class Actions {
 public:
  Actions(const EnvSpec& spec, int count) : size_(spec.action_size()) {
    std::mt19937 random(1);
    const auto n = static_cast<size_t>(count) * static_cast<size_t>(size_);
    if (spec.num_actions > 0) {
      for (size_t i = 0; i < n; ++i) {
        discrete_.push_back(
            static_cast<int64_t>(random() % static_cast<uint32_t>(spec.num_actions)));
      }
      return;
    }
    for (size_t i = 0; i < n; ++i) {
      const size_t k = i % static_cast<size_t>(size_);
      std::uniform_real_distribution<double> draw(spec.action_low[k], spec.action_high[k]);
      continuous_.push_back(static_cast<float>(draw(random)));
    }
  }

  ActionViews views() const {
    const auto size = static_cast<size_t>(size_);
    if (!discrete_.empty()) return {discrete_.data(), DType::kInt64, size * sizeof(int64_t)};
    return {continuous_.data(), DType::kFloat32, size * sizeof(float)};
  }
  Action at(size_t i) const { return {views().at(i), views().dtype, size_}; }
  const float* data() const { return continuous_.data(); }

 private:
  int size_;
  std::vector<float> continuous_;
  std::vector<int64_t> discrete_;
};

// ---- the pool
// ------------------------------------------------------------------------------------

// From Wake to the first line of the helper's work. idle_us is the pause before: short and the
// helper still spins, long and it is parked in the kernel.
void PoolWake(State& state) {
  using Clock = std::chrono::steady_clock;
  std::atomic<int64_t> begun{0};
  ThreadPool pool(2, [&](int) { begun.store(Clock::now().time_since_epoch().count()); });
  const auto idle = std::chrono::microseconds(state.range(0));
  for ([[maybe_unused]] auto _ : state) {
    const auto resume = Clock::now() + idle;
    while (Clock::now() < resume) CpuRelax();
    begun.store(0);
    const auto start = Clock::now();
    pool.WakeAll();
    int64_t arrival = 0;
    while ((arrival = begun.load()) == 0) CpuRelax();
    const Clock::duration latency(arrival - start.time_since_epoch().count());
    state.SetIterationTime(std::chrono::duration<double>(latency).count());
  }
}
BENCHMARK(PoolWake)->ArgName("idle_us")->Arg(5)->Arg(500)->UseManualTime()->Iterations(2000);

// ---- one environment
// -----------------------------------------------------------------------------

// Environment::Step alone, with the resets that ended episodes need.
void EnvStep(State& state, const std::string& env_id) {
  ModelCache models(AssetsDir());
  const EnvEntry& entry = FindEnv(env_id);
  const auto env = entry.make(Params(), models);
  constexpr int kActions = 256;
  const Actions actions(env->spec(), kActions);
  std::vector<double> info(static_cast<size_t>(env->spec().info_size()));
  std::vector<double> options;
  for (const auto& option : env->spec().reset_options) options.push_back(option.fallback);
  const uint32_t seed[] = {1};
  Random random(seed);
  const std::vector<double> row = env->InitialRow();
  env->Load(row.data());
  env->Reset(random, options, info.data());
  int elapsed = 0;
  size_t i = 0;
  for ([[maybe_unused]] auto _ : state) {
    const bool ended = env->Step(actions.at(i++ % kActions), info.data()).terminated;
    if (ended || ++elapsed == entry.max_episode_steps) {
      env->Reset(random, options, info.data());
      elapsed = 0;
    }
  }
  CountSteps(state, 1);
}
BENCHMARK_CAPTURE(EnvStep, HalfCheetah, "HalfCheetah-v5");
BENCHMARK_CAPTURE(EnvStep, Ant, "Ant-v5");
BENCHMARK_CAPTURE(EnvStep, Humanoid, "Humanoid-v5");
BENCHMARK_CAPTURE(EnvStep, CartPole, "CartPole-v1");

// What moving a state row in and out of mjData adds to every step.
void RowLoadSave(State& state, const std::string& env_id) {
  ModelCache models(AssetsDir());
  const auto env = FindEnv(env_id).make(Params(), models);
  Workspace& workspace = dynamic_cast<MujocoEnv&>(*env).workspace();
  std::vector<double> row = workspace.initial_state();
  for ([[maybe_unused]] auto _ : state) {
    workspace.Load(row.data());
    workspace.Save(row.data());
    benchmark::ClobberMemory();
  }
  state.counters["row_bytes"] = static_cast<double>(row.size() * sizeof(double));
}
BENCHMARK_CAPTURE(RowLoadSave, HalfCheetah, "HalfCheetah-v5");
BENCHMARK_CAPTURE(RowLoadSave, Ant, "Ant-v5");
BENCHMARK_CAPTURE(RowLoadSave, Humanoid, "Humanoid-v5");

// ---- many environments
// ---------------------------------------------------------------------------

void VectorEnvStep(State& state, const std::string& env_id) {
  ModelCache models(AssetsDir());
  const EnvEntry& entry = FindEnv(env_id);
  VectorEnvOptions options;
  options.num_envs = static_cast<int>(state.range(0));
  options.num_threads = static_cast<int>(state.range(1));
  options.max_episode_steps = entry.max_episode_steps;
  VectorEnv env([&] { return entry.make(Params(), models); }, options);

  const auto num_envs = static_cast<size_t>(options.num_envs);
  const Actions actions(env.spec(), options.num_envs);
  std::vector<uint8_t> obs(num_envs * env.obs_bytes());
  std::vector<double> rewards(num_envs);
  std::vector<uint8_t> flags(3 * num_envs);
  const OutputViews out{obs.data(),       rewards.data(),       flags.data(),
                        &flags[num_envs], &flags[2 * num_envs], {}};
  const auto never = [] { return false; };
  std::vector<int32_t> ids;
  std::vector<std::vector<uint32_t>> entropy;
  for (int32_t id = 0; id < options.num_envs; ++id) {
    ids.push_back(id);
    entropy.push_back({static_cast<uint32_t>(id)});
  }
  std::vector<double> reset_options;
  for (const auto& option : env.spec().reset_options) reset_options.push_back(option.fallback);
  env.Seed(entropy);
  env.Reset(ids, {}, reset_options, out, never);
  for ([[maybe_unused]] auto _ : state) env.Step(actions.views(), out, never);
  CountSteps(state, options.num_envs);
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"envs", "threads"})
      ->ArgsProduct({{8, 64, 1024}, {1, 2}})
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}
BENCHMARK_CAPTURE(VectorEnvStep, HalfCheetah, "HalfCheetah-v5")->Apply(Sizes);
BENCHMARK_CAPTURE(VectorEnvStep, Ant, "Ant-v5")->Apply(Sizes);
BENCHMARK_CAPTURE(VectorEnvStep, CartPole, "CartPole-v1")->Apply(Sizes);

// The bare mj_step loop on the same rows: what VectorEnvStep's env_steps can reach at the most.
void PhysicsLimit(State& state, const std::string& env_id) {
  ModelCache models(AssetsDir());
  PhysicsLimitOptions options;
  options.env_id = env_id;
  options.assets_dir = AssetsDir();
  options.num_envs = static_cast<int>(state.range(0));
  options.num_threads = static_cast<int>(state.range(1));
  options.num_steps = 8192 / options.num_envs;
  const auto env = FindEnv(env_id).make(Params(), models);
  const int num_calls = options.num_envs * options.num_steps;
  const Actions actions(env->spec(), num_calls);
  options.actions = actions.data();
  double rate = 0.0;
  for ([[maybe_unused]] auto _ : state) {
    rate = MeasurePhysicsLimit(options);
    state.SetIterationTime(num_calls / rate);
  }
  CountSteps(state, num_calls);
}
void LimitSizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"envs", "threads"})
      ->ArgsProduct({{64}, {1, 2}})
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(PhysicsLimit, HalfCheetah, "HalfCheetah-v5")->Apply(LimitSizes);
BENCHMARK_CAPTURE(PhysicsLimit, Ant, "Ant-v5")->Apply(LimitSizes);

}  // namespace
}  // namespace pyfastenv

int main(int argc, char** argv) {
  if (std::getenv("PYFASTENV_ASSETS_DIR") == nullptr) {
    std::fputs(
        "PYFASTENV_ASSETS_DIR is not set: expected the directory of half_cheetah.xml and the other "
        "models.\ngymnasium's is printed by\n  python -c \"from pyfastenv.vector.specs import "
        "assets_dir; "
        "print(assets_dir())\"\n",
        stderr);
    return 2;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
