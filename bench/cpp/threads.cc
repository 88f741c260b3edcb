// What a thread costs: 1 to 64 of them at work that is nothing, so that waking, claiming, queueing
// and waiting are all there is.
//
//   threads_bench [--benchmark_filter=Wake]
//
// The work of an iteration does not grow with the threads: on a machine with a core for each the
// time should fall or stay, and what it grows by is the pool's own doing. With fewer cores than
// threads the kernel takes turns, and the slope says how much is done for each thread (a wake-up,
// a share looked into, a lock). per_thread is the time of a call divided by the threads; CPU is
// that of all threads.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/parallel_for.h"
#include "core/thread_pool.h"
#include "core/vector_env.h"

namespace pyfastenv {
namespace {

using benchmark::Counter;
using benchmark::State;
using Clock = std::chrono::steady_clock;

constexpr int kEnvs = 1024;  // enough for helpers to be woken, though each step is nanoseconds

/// Adds its action to a number; episodes do not end.
class TrivialEnv final : public Environment {
 public:
  explicit TrivialEnv(SpecBuilder&& spec = {}) : Environment(spec) {
    spec->obs_size = 1;
    spec->obs_low = {-1e9};
    spec->obs_high = {1e9};
    spec->action_low = {-1.0};
    spec->action_high = {1.0};
  }

  RowLayout InitialLayout() const override { return {1, 0, 0}; }
  std::vector<double> InitialRow() const override { return {0.0}; }
  RowField DescribeField(const std::string& name) const override {
    throw std::invalid_argument("no such field: " + name);
  }
  void Prepare(const RowLayout&) override {}
  void Adopt() noexcept override {}

  void Load(const double* row) override { sum_ = row[0]; }
  void Save(double* row) const override { row[0] = sum_; }
  void Reset(Random&, std::span<const double>, InfoRow) override { sum_ = 0.0; }
  StepResult Step(const Action& action, Random&, InfoRow) override {
    sum_ += action[0].value();
    return {.reward = sum_};
  }
  void Observe(double* obs) const override { obs[0] = sum_; }

 private:
  double sum_ = 0.0;
};

/// kEnvs trivial environments that have been reset, and room for a call's results.
struct Trivial {
  explicit Trivial(int num_threads)
      : env([] { return std::make_unique<TrivialEnv>(); }, Options(num_threads)),
        ids(kEnvs),
        actions(kEnvs, 0.5F),
        obs(kEnvs),
        rewards(kEnvs),
        flags(3 * size_t{kEnvs}) {
    std::iota(ids.begin(), ids.end(), 0);
    env.Seed(std::vector<std::vector<uint32_t>>(kEnvs, {1}));
    env.Reset(ids, {}, {}, out(), Never);
  }

  static VectorEnvOptions Options(int num_threads) {
    VectorEnvOptions options;
    options.num_envs = kEnvs;
    options.num_threads = num_threads;
    return options;
  }
  static bool Never() { return false; }

  ActionViews action_views() const { return {actions.data(), DType::kFloat32, sizeof(float)}; }
  OutputViews out() {
    return {obs.data(), rewards.data(), flags.data(), &flags[kEnvs], &flags[2 * size_t{kEnvs}], {}};
  }

  VectorEnv env;
  std::vector<int32_t> ids;
  std::vector<float> actions;
  std::vector<double> obs, rewards;
  std::vector<uint8_t> flags;
};

/// The time of a call per thread, and items per second of all.
void Count(State& state, int64_t items) {
  state.counters["per_thread"] = Counter(static_cast<double>(state.range(0)),
                                         Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["items"] = Counter(static_cast<double>(items), Counter::kIsIterationInvariantRate);
}

void ThreadCounts(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("threads")
      ->RangeMultiplier(2)
      ->Range(1, 64)
      ->UseRealTime()
      ->MeasureProcessCPUTime()
      ->Unit(benchmark::kMicrosecond);
}

// From Wake until the last helper has begun. idle_us is the pause before: after a short one helpers
// still spin, after a long one they are parked in the kernel.
void ThreadsWake(State& state) {
  const auto num_threads = static_cast<int>(state.range(0));
  std::atomic<int> begun{0};
  ThreadPool pool(num_threads, [&](int) { begun.fetch_add(1); });
  const auto idle = std::chrono::microseconds(state.range(1));
  for ([[maybe_unused]] auto _ : state) {
    const auto resume = Clock::now() + idle;
    while (Clock::now() < resume) CpuRelax();
    begun.store(0);
    const auto start = Clock::now();
    pool.WakeAll();
    while (begun.load() < num_threads - 1) std::this_thread::yield();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
  }
  Count(state, num_threads - 1);
}
BENCHMARK(ThreadsWake)
    ->ArgNames({"threads", "idle_us"})
    ->ArgsProduct({{2, 4, 8, 16, 32, 64}, {5, 500}})
    ->UseManualTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(200);

void ThreadsParallelFor(State& state) {
  ParallelFor loop(static_cast<int>(state.range(0)));
  std::vector<int> touched(kEnvs);
  const ParallelFor::Body body = [&](int, int index) { ++touched[static_cast<size_t>(index)]; };
  for ([[maybe_unused]] auto _ : state) loop.Run(kEnvs, body);
  Count(state, kEnvs);
}
BENCHMARK(ThreadsParallelFor)->Apply(ThreadCounts);

void ThreadsStep(State& state) {
  Trivial trivial(static_cast<int>(state.range(0)));
  const auto out = trivial.out();
  for ([[maybe_unused]] auto _ : state) {
    trivial.env.Step(trivial.action_views(), out, Trivial::Never);
  }
  Count(state, kEnvs);
}
BENCHMARK(ThreadsStep)->Apply(ThreadCounts);

// Everything is sent at once and received in batches of 64.
void ThreadsSendReceive(State& state) {
  Trivial trivial(static_cast<int>(state.range(0)));
  const auto out = trivial.out();
  for ([[maybe_unused]] auto _ : state) {
    trivial.env.Send(trivial.ids, trivial.action_views());
    for (int received = 0; received < kEnvs;) {
      auto batch = trivial.env.Receive({64, 64, std::nullopt}, Trivial::Never);
      trivial.env.Gather(batch, out);
      received += static_cast<int>(batch.ids.size());
    }
  }
  Count(state, kEnvs);
}
BENCHMARK(ThreadsSendReceive)->Apply(ThreadCounts);

// Sixteen steps of a one-layer policy: environments are handed out, run and taken back.
void ThreadsRollout(State& state) {
  constexpr int kSteps = 16;
  constexpr size_t kSlots = size_t{kSteps} * kEnvs;
  Trivial trivial(static_cast<int>(state.range(0)));
  Mlp mlp(1, {1, 1}, Activation::kTanh);
  const float zero[] = {0.0F};
  mlp.SetLayer(0, zero, zero);
  PolicyOptions options;
  options.distribution = Distribution::kGaussian;
  options.action_low = {-1.0F};
  options.action_high = {1.0F};
  options.log_std = {0.0F};
  const Policy policy(std::move(mlp), options);
  std::vector<float> obs(kSlots), last_obs(kEnvs), actions(kSlots), log_probs(kSlots);
  std::vector<float> rewards(kSlots);
  std::vector<uint8_t> flags(3 * kSlots);
  RolloutViews out;
  out.obs = obs.data();
  out.last_obs = last_obs.data();
  out.actions = actions.data();
  out.log_probs = log_probs.data();
  out.rewards = rewards.data();
  out.terminations = flags.data();
  out.truncations = &flags[kSlots];
  out.autoresets = &flags[2 * kSlots];
  for ([[maybe_unused]] auto _ : state) {
    trivial.env.RunRollout({&policy, {}, kSteps, out}, Trivial::Never);
  }
  Count(state, kSlots);
}
BENCHMARK(ThreadsRollout)->Apply(ThreadCounts);

}  // namespace
}  // namespace pyfastenv
