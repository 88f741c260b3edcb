// CountingEnv, an environment with no MuJoCo and no Python, and what the core's tests run it with.
//
// CountingEnv is deterministic: its results are a function of its row, stream and action. Some
// action values are commands (kThrow, kDiverge, Nap(ms) …), so a test can make one environment of a
// batch fail or be slow. `Runner` owns a VectorEnv and the arrays its results go to.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/vector_env.h"
#include "thread_sanitizer.h"

namespace pyfastenv::testing {

using Code = UsageError::Code;

// actions that are commands; ordinary ones are far smaller
constexpr float kThrow = 100.0F;       // throws std::runtime_error, after changing the object
constexpr float kThrowOther = 101.0F;  // throws something that is no std::exception
constexpr float kDiverge = 102.0F;     // ends the episode as diverged
constexpr float kBusyWork = 103.0F;    // some microseconds that depend on the row
constexpr float Nap(int milliseconds) { return 200.0F + static_cast<float>(milliseconds); }

// the value of the reset option "start" that makes Reset throw, after drawing numbers
constexpr double kThrowingStart = 1e6;

/// The group size of tests' environments: PYFASTENV_TEST_GROUP, or none. No test may depend on it.
inline int TestGroupSize() {
  const char* size = std::getenv("PYFASTENV_TEST_GROUP");
  return size != nullptr ? std::atoi(size) : 0;
}

/// Row: [sum, count, drift, length | bias | gain]. An episode ends after `length` steps, drawn by
/// Reset. Observation: (sum, count, drift). Reward: sum. "gain" is a field of two numbers.
///
/// In groups, the sum that an ordinary action leads to is prepared; commands are not. With "gain",
/// there are no groups.
class CountingEnv : public Environment {
 public:
  static constexpr int kOwn = 4;
  static constexpr int kObsSize = 3;
  static constexpr int kMinLength = 3;
  static constexpr int kMaxLength = 14;

  explicit CountingEnv(int group_size = TestGroupSize(), SpecBuilder&& spec = {})
      : Environment(spec), group_size_(group_size) {
    spec->obs_size = kObsSize;
    spec->obs_low.assign(kObsSize, -1e9);
    spec->obs_high.assign(kObsSize, 1e9);
    spec->action_low = {-1000.0};
    spec->action_high = {1000.0};
    count_info_ = spec->AddInfo(
        {.name = "count", .when = InfoField::When::kAlways, .type = InfoField::Type::kInt64});
    terms_info_ = spec->AddInfo({.name = "terms", .size = 2});
    spec->tasks = {{.name = "bias", .low = -1.0, .high = 1.0}};
    spec->reset_options = {{.name = "start", .fallback = 0.0}};
  }

  void Load(const double* row) override {
    std::copy_n(row, kOwn, own_);
    std::copy_n(row, kOwn, loaded_);
    row_ = row;
  }

  // the task and the fields are the callers' to write
  void Save(double* row) const override { std::copy_n(own_, kOwn, row); }

  void Reset(Random& random, std::span<const double> options, InfoRow info) override {
    sum() = options[0] + random.Uniform(-1.0, 1.0);
    count() = 0.0;
    drift() = random.StandardNormal();
    length() = kMinLength + std::floor(random.NextDouble() * (kMaxLength + 1 - kMinLength));
    if (options[0] == kThrowingStart) throw std::runtime_error("cannot start there");
    info[count_info_] = count();
  }

  StepResult Step(const Action& action, Random& /*random*/, InfoRow info) override {
    const double value =
        action.dtype() == DType::kInt64 ? static_cast<double>(action.index()) : action[0].value();
    count() += 1.0;
    const double* prepared = TakePrepared(value);
    const double push = gain(0) * Command(value);
    sum() = prepared != nullptr ? *prepared : NextSum(own_, push, bias(), gain(1));
    info[count_info_] = count();
    if (value == kDiverge) return {.reward = 0.0, .terminated = true, .diverged = true};
    info.vector(terms_info_)[0] = push;
    info.vector(terms_info_)[1] = bias();
    return {.reward = sum(), .terminated = count() >= length()};
  }

  void Observe(double* obs) const override { std::copy_n(own_, kObsSize, obs); }

  RowLayout InitialLayout() const override { return {kOwn, 0, 1}; }

  RowField DescribeField(const std::string& name) const override {
    if (name != "gain") throw std::invalid_argument("no such field: " + name);
    return {name, {2}, {1.0, 0.01}};
  }

  void Prepare(const RowLayout& layout) override {
    const RowField* gain = layout.Find("gain");
    prepared_gain_offset_ = gain != nullptr ? gain->offset : 0;
  }

  void Adopt() noexcept override { gain_offset_ = prepared_gain_offset_; }

  int group_size() const override { return gain_offset_ == 0 ? group_size_ : 0; }

  void PrepareSteps(std::span<ComingStep> steps) noexcept override {
    EXPECT_LE(steps.size(), static_cast<size_t>(group_size()));
    largest_group_ = std::max(largest_group_.load(), static_cast<int>(steps.size()));
    num_prepared_ = 0;
    for (ComingStep& step : steps) {
      step.num_rows = static_cast<int>(std::fabs(step.row[0])) * 7 % 5;  // groups mingle
      const double value = step.action[0].value();
      if (value >= kThrow) continue;
      Prepared& prepared = prepared_[num_prepared_++];
      prepared.row = step.row;
      std::copy_n(step.row, kOwn, prepared.own);
      prepared.value = value;
      prepared.sum = NextSum(step.row, value, step.row[kOwn], gain(1));
    }
  }

  EngineReport engine() const override { return {"groups", {}, taken_.load(), missed_.load()}; }
  /// The most steps that were prepared at once since the last time this was asked.
  int TakeLargestGroup() { return largest_group_.exchange(0); }

  std::vector<double> InitialRow() const override {
    std::vector<double> row(static_cast<size_t>(kOwn) + 1, 0.0);
    row[3] = kMinLength;
    row[kOwn] = 0.125;
    return row;
  }

 private:
  struct Prepared {
    const double* row;
    double own[kOwn];
    double value;
    double sum;
  };

  static double NextSum(const double* own, double push, double bias, double gain) {
    return 0.9 * own[0] + push + bias + gain * own[2];
  }

  // The sum prepared for the loaded row as it was loaded, and this action; or null.
  const double* TakePrepared(double value) {
    if (group_size() == 0) return nullptr;
    for (int i = 0; i < num_prepared_; ++i) {
      const Prepared& prepared = prepared_[i];
      if (prepared.row == row_ && prepared.value == value &&
          std::memcmp(prepared.own, loaded_, sizeof(loaded_)) == 0) {
        ++taken_;
        return &prepared.sum;
      }
    }
    ++missed_;
    return nullptr;
  }

  double& sum() { return own_[0]; }
  double& count() { return own_[1]; }
  double& drift() { return own_[2]; }
  double& length() { return own_[3]; }
  double bias() const { return row_[kOwn]; }
  double gain(int i) const {
    if (gain_offset_ == 0) return i == 0 ? 1.0 : 0.01;
    return row_[gain_offset_ + i];
  }

  // obeys a command and returns the number that stands for the action
  double Command(double value) {
    if (value == kThrow) {
      sum() = -1e9;
      throw std::runtime_error("told to throw at count " +
                               std::to_string(static_cast<int>(count())));
    }
    if (value == kThrowOther) throw 42;
    if (value == kBusyWork) {
      volatile double sink = 0.0;
      const int rounds = static_cast<int>(std::fmod(std::fabs(drift()) * 1e6, 4000.0));
      for (int i = 0; i < rounds; ++i) sink = sink + 1.0;
    }
    if (value >= Nap(0)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(value - Nap(0))));
    }
    return value < kThrow ? value : 0.5;
  }

  double own_[kOwn] = {};
  double loaded_[kOwn] = {};
  const double* row_ = nullptr;
  const int group_size_;
  Prepared prepared_[kMaxGroup];
  int num_prepared_ = 0;
  std::atomic<int> largest_group_{0};
  std::atomic<int64_t> taken_{0}, missed_{0};
  int gain_offset_ = 0;  // 0: not in the row
  int prepared_gain_offset_ = 0;
  InfoSlot count_info_, terms_info_;
};

template <class T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// The arrays of one call, and the final steps taken after it.
struct Results {
  explicit Results(int num_envs)
      : obs(static_cast<size_t>(num_envs) * CountingEnv::kObsSize),
        rewards(static_cast<size_t>(num_envs)),
        terminations(rewards.size()),
        truncations(rewards.size()),
        kinds(rewards.size()),
        counts(rewards.size()),
        terms(2 * rewards.size()),
        finals(rewards.size()) {}

  OutputViews Views() {
    return {obs.data(),
            rewards.data(),
            terminations.data(),
            truncations.data(),
            kinds.data(),
            {{counts.data(), DType::kInt64, 1}, {terms.data(), DType::kFloat64, 2}}};
  }

  /// Copies slot `from` of `other` to slot `to`.
  void Take(size_t to, const Results& other, size_t from) {
    std::copy_n(&other.obs[from * CountingEnv::kObsSize], CountingEnv::kObsSize,
                &obs[to * CountingEnv::kObsSize]);
    rewards[to] = other.rewards[from];
    terminations[to] = other.terminations[from];
    truncations[to] = other.truncations[from];
    kinds[to] = other.kinds[from];
    counts[to] = other.counts[from];
    std::copy_n(&other.terms[from * 2], 2, &terms[to * 2]);
    finals[to] = other.finals[from];
  }

  Results Slot(size_t i) const {
    Results slot(1);
    slot.Take(0, *this, i);
    return slot;
  }

  bool ended(size_t i) const { return terminations[i] != 0 || truncations[i] != 0; }

  /// Bit for bit.
  friend bool operator==(const Results& a, const Results& b) {
    return SameBits(a.obs, b.obs) && SameBits(a.rewards, b.rewards) &&
           SameBits(a.terminations, b.terminations) && SameBits(a.truncations, b.truncations) &&
           SameBits(a.kinds, b.kinds) && SameBits(a.counts, b.counts) &&
           SameBits(a.terms, b.terms) &&
           std::equal(a.finals.begin(), a.finals.end(), b.finals.begin(), b.finals.end(),
                      SameBits<double>);
  }

  std::vector<double> obs, rewards;
  std::vector<uint8_t> terminations, truncations, kinds;
  std::vector<int64_t> counts;
  std::vector<double> terms;
  std::vector<std::vector<double>> finals;  // obs, info and kind of a final step, or empty
};

inline bool Never() { return false; }

inline VectorEnvOptions MakeOptions(int num_envs, int num_threads,
                                    AutoresetMode mode = AutoresetMode::kNextStep,
                                    int max_episode_steps = 0) {
  VectorEnvOptions options;
  options.num_envs = num_envs;
  options.num_threads = num_threads;
  options.autoreset_mode = mode;
  options.max_episode_steps = max_episode_steps;
  return options;
}

/// A VectorEnv of CountingEnvs with one slot of results per environment.
class Runner {
 public:
  explicit Runner(const VectorEnvOptions& options, int group_size = TestGroupSize())
      : env([group_size] { return std::make_unique<CountingEnv>(group_size); }, options),
        out(options.num_envs),
        all(static_cast<size_t>(options.num_envs)) {
    std::iota(all.begin(), all.end(), 0);
  }

  void Seed(uint32_t seed) {
    std::vector<std::vector<uint32_t>> entropy;
    for (const int32_t id : all) entropy.push_back({seed + static_cast<uint32_t>(id)});
    env.Seed(entropy);
  }

  VectorEnv::Outcome Reset(const std::vector<int32_t>& ids, double start = 0.0) {
    const double options[] = {start};
    for (const int32_t id : ids) out.finals[static_cast<size_t>(id)].clear();
    return env.Reset(ids, {}, options, out.Views(), Never);
  }

  /// Seeds and resets everything, as tests begin.
  void Start(uint32_t seed = 7) {
    Seed(seed);
    ASSERT_TRUE(Reset(all).failures.empty());
  }

  VectorEnv::Outcome Step(const std::vector<float>& actions,
                          const Interrupted& interrupted = Never) {
    const ActionViews views{actions.data(), DType::kFloat32, sizeof(float)};
    auto outcome = env.Step(views, out.Views(), interrupted);
    KeepFinals(out, outcome.finals, [](int32_t id) { return static_cast<size_t>(id); });
    return outcome;
  }
  VectorEnv::Outcome StepAll(float action) { return Step(std::vector<float>(all.size(), action)); }

  /// Sends actions[i] to ids[i].
  void Send(const std::vector<int32_t>& ids, const std::vector<float>& actions) {
    env.Send(ids, {actions.data(), DType::kFloat32, sizeof(float)});
  }
  void SendAll(float action) { Send(all, std::vector<float>(all.size(), action)); }
  void SendReset(const std::vector<int32_t>& ids, double start = 0.0) {
    const double options[] = {start};
    env.SendReset(ids, {}, options);
  }

  /// Waits, gathers, and puts every result where Step would have put it.
  VectorEnv::Received Receive(int min_envs = 0, int max_envs = 0,
                              std::optional<double> timeout = std::nullopt,
                              const Interrupted& interrupted = Never) {
    auto ready = env.Receive({min_envs, max_envs, timeout}, interrupted);
    Results arrived(static_cast<int>(ready.ids.size()));
    const auto finals = env.Gather(ready, arrived.Views());
    KeepFinals(arrived, finals, [&](int32_t id) {
      const auto place = std::find(ready.ids.begin(), ready.ids.end(), id);
      return static_cast<size_t>(place - ready.ids.begin());
    });
    for (size_t i = 0; i < ready.ids.size(); ++i) {
      out.Take(static_cast<size_t>(ready.ids[i]), arrived, i);
    }
    return ready;
  }

  std::vector<uint8_t> State(const std::vector<int32_t>& ids) {
    std::vector<uint8_t> states(ids.size() * env.state_bytes());
    EXPECT_TRUE(env.GetState(ids, states));
    return states;
  }
  std::vector<uint8_t> State() { return State(all); }

  std::vector<double> Row(int32_t id) { return env.CopyRow(id).values; }

  std::vector<int32_t> Ended() const {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < all.size(); ++i) {
      if (out.ended(i)) ids.push_back(static_cast<int32_t>(i));
    }
    return ids;
  }

  VectorEnv env;
  Results out;
  std::vector<int32_t> all;

 private:
  // flattens final steps into the slots of their environments
  template <class SlotOf>
  static void KeepFinals(Results& results, const std::vector<std::unique_ptr<FinalStep>>& finals,
                         SlotOf slot_of) {
    for (auto& flat : results.finals) flat.clear();
    for (const auto& final_step : finals) {
      ASSERT_NE(final_step, nullptr);
      auto& flat = results.finals[slot_of(final_step->env_id)];
      const void* obs = final_step->obs.data();
      if (final_step->obs.size() == CountingEnv::kObsSize * sizeof(float)) {
        const auto* values = static_cast<const float*>(obs);
        flat.assign(values, values + CountingEnv::kObsSize);
      } else {
        const auto* values = static_cast<const double*>(obs);
        flat.assign(values, values + CountingEnv::kObsSize);
      }
      flat.insert(flat.end(), final_step->info.begin(), final_step->info.end());
      flat.push_back(final_step->kind);
    }
  }
};

/// One that has been seeded and reset, as most tests begin.
class Started : public Runner {
 public:
  explicit Started(const VectorEnvOptions& options, uint32_t seed = 7) : Runner(options) {
    Start(seed);
  }
};

/// The action of environment `id` in its step `t`: a small number, or now and then some work.
inline float ActionOf(int t, int32_t id) {
  const int k = 31 * t + 17 * id;
  return k % 11 == 0 ? kBusyWork : 0.25F * static_cast<float>(k % 13 - 6);
}

inline std::vector<float> ActionsOf(int t, const std::vector<int32_t>& ids) {
  std::vector<float> actions;
  for (const int32_t id : ids) actions.push_back(ActionOf(t, id));
  return actions;
}

/// The results of steps begin … end - 1.
inline std::vector<Results> Continue(Runner& runner, int begin, int end) {
  std::vector<Results> trace;
  for (int t = begin; t < end; ++t) {
    runner.Step(ActionsOf(t, runner.all));
    trace.push_back(runner.out);
  }
  return trace;
}

/// The arrays of a rollout. What no one wrote keeps its mark.
struct RolloutArrays {
  RolloutArrays(int num_steps, int num_envs, int obs_size = CountingEnv::kObsSize)
      : num_steps(num_steps),
        num_envs(num_envs),
        obs(Size() * static_cast<size_t>(obs_size), kMark),
        last_obs(static_cast<size_t>(num_envs) * static_cast<size_t>(obs_size), kMark),
        rewards(Size(), kMark),
        actions(Size(), static_cast<float>(kMark)),
        log_probs(Size(), static_cast<float>(kMark)),
        terminations(Size(), 77),
        truncations(Size(), 77),
        autoresets(Size(), 77) {}

  size_t Size() const { return static_cast<size_t>(num_steps) * static_cast<size_t>(num_envs); }
  size_t Slot(int t, int32_t id) const {
    return static_cast<size_t>(t) * static_cast<size_t>(num_envs) + static_cast<size_t>(id);
  }

  RolloutViews Views() {
    RolloutViews views;
    views.obs = obs.data();
    views.last_obs = last_obs.data();
    views.obs_dtype = DType::kFloat64;
    views.actions = actions.data();
    views.log_probs = log_probs.data();
    views.rewards = rewards.data();
    views.reward_dtype = DType::kFloat64;
    views.terminations = terminations.data();
    views.truncations = truncations.data();
    views.autoresets = autoresets.data();
    return views;
  }

  static constexpr double kMark = -12345.0;
  int num_steps, num_envs;
  std::vector<double> obs, last_obs, rewards;
  std::vector<float> actions, log_probs;
  std::vector<uint8_t> terminations, truncations, autoresets;
};

constexpr int kTraceEnvs = 23;
constexpr int kTraceSteps = 40;
constexpr int kTraceMaxEpisodeSteps = 9;  // so that episodes end in both ways

/// Results of every call of a seeded run: the reset, the steps and, with autoreset disabled, the
/// masked resets between them.
inline std::vector<Results> RunSteps(AutoresetMode mode, int num_threads) {
  Runner runner(MakeOptions(kTraceEnvs, num_threads, mode, kTraceMaxEpisodeSteps));
  runner.Start();
  std::vector<Results> trace = {runner.out};
  for (int t = 0; t < kTraceSteps; ++t) {
    runner.Step(ActionsOf(t, runner.all));
    trace.push_back(runner.out);
    if (mode == AutoresetMode::kDisabled) {
      runner.Reset(runner.Ended());
      trace.push_back(runner.out);
    }
  }
  return trace;
}

inline std::string ModeName(AutoresetMode mode) {
  switch (mode) {
    case AutoresetMode::kNextStep:
      return "NextStep";
    case AutoresetMode::kSameStep:
      return "SameStep";
    case AutoresetMode::kDisabled:
      return "Disabled";
  }
  return "";
}

/// Every mode on 1, 3 and 7 threads.
class ModesAndThreads : public ::testing::TestWithParam<std::tuple<AutoresetMode, int>> {};
inline const auto kModesAndThreads = ::testing::Combine(
    ::testing::Values(AutoresetMode::kNextStep, AutoresetMode::kSameStep, AutoresetMode::kDisabled),
    ::testing::Values(1, 3, 7));
inline std::string NameOf(const ::testing::TestParamInfo<std::tuple<AutoresetMode, int>>& info) {
  return ModeName(std::get<0>(info.param)) + std::to_string(std::get<1>(info.param));
}

inline std::vector<int32_t> FailedIds(const std::vector<EnvFailure>& failures) {
  std::vector<int32_t> ids;
  for (const auto& failure : failures) ids.push_back(failure.env_id);
  return ids;
}

/// `call` throws UsageError of this code, with `part` in its message.
template <class F>
void ExpectUsageError(Code code, const std::string& part, F call) {
  try {
    call();
    ADD_FAILURE() << "no UsageError; expected one with '" << part << "'";
  } catch (const UsageError& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

/// Makes a call that may come at the wrong moment; says why it was refused, which must be one of
/// `codes`.
template <class F>
std::optional<Code> RefusalOf(std::initializer_list<Code> codes, F call) {
  try {
    call();
    return std::nullopt;
  } catch (const UsageError& error) {
    EXPECT_NE(std::find(codes.begin(), codes.end(), error.code()), codes.end()) << error.what();
    return error.code();
  }
}

/// Runs work(0) … work(count - 1), each on a thread of its own.
template <class F>
void RunThreads(int count, F work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

/// An `interrupted` that gives up after a while: a hang becomes a failed test.
inline Interrupted GiveUpAfter(double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  return [until] { return std::chrono::steady_clock::now() > until; };
}

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The least of what three calls return [s]: the machine may hold one up.
template <class F>
double QuickestOfThree(F seconds) {
  return std::min({seconds(), seconds(), seconds()});
}

}  // namespace pyfastenv::testing
