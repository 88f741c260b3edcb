#include "core/rollout.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "core/thread_pool.h"

namespace pyfastenv {

namespace {

// A segment is long against taking an environment (microseconds) and short against the whole, so
// that workers finish together; and short enough for a Ctrl-C.
constexpr double kMinSegmentSeconds = 50e-6;
constexpr double kMaxSegmentSeconds = 1e-3;
constexpr int kSegmentsPerThread = 64;
constexpr size_t kMaxTaken = 64;
constexpr int kFirstSegment = 4;  // steps, while nothing is known of their cost

}  // namespace

// One thread's memory, and its results until they are collected.
struct Rollout::Worker {
  Worker(const Policy& policy, const EnvSpec& spec)
      : policy(policy),
        obs(static_cast<size_t>(spec.obs_size)),
        info(static_cast<size_t>(spec.info_size())) {}

  Policy::Scratch policy;
  std::vector<double> obs;  // the latest observation
  std::vector<double> info;
  int step = 0;  // the one being run
  std::vector<EpisodeEnd> episodes;
  std::vector<EnvFailure> failures;
  Counts counts;
};

Rollout::Rollout(EnvStore& store, const EpisodeRules& rules, const Request& request,
                 const EnvSpec& spec, int num_threads)
    : store_(store),
      rules_(rules),
      request_(request),
      num_threads_(num_threads),
      obs_size_(spec.obs_size),
      done_steps_(static_cast<size_t>(store.num_envs())),
      unfinished_(store.num_envs()),
      queue_(static_cast<size_t>(store.num_envs())) {
  for (int i = 0; i < num_threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(*request.policy, spec));
  }
  for (int32_t id = 0; id < store.num_envs(); ++id) queue_.Push(id);
}

Rollout::~Rollout() = default;

bool Rollout::RunSome(int worker_index, Environment& env) {
  int32_t ids[kMaxTaken];
  size_t count = 0;
  int segment = 0;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || queue_.size() == 0) return false;
    segment = SegmentSteps();
    count = queue_.Pop(EnvsToTake(segment), ids);
    running_ += static_cast<int>(count);
  }
  Worker& worker = *workers_[static_cast<size_t>(worker_index)];
  const auto start = Clock::now();
  int64_t steps = 0;
  int32_t unfinished[kMaxTaken];
  size_t num_unfinished = 0;
  for (size_t i = 0; i < count; ++i) {
    int& done = done_steps_[static_cast<size_t>(ids[i])];  // ours while we hold the environment
    const int end = std::min(done + segment, request_.num_steps);
    const bool alive = RunSegment(env, worker, ids[i], done, end);
    steps += end - done;
    done = end;
    if (alive && end < request_.num_steps) unfinished[num_unfinished++] = ids[i];
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();

  const std::lock_guard lock(mutex_);
  const double per_step = seconds / static_cast<double>(steps);
  step_seconds_ = step_seconds_ == 0.0 ? per_step : 0.8 * step_seconds_ + 0.2 * per_step;
  for (size_t i = 0; i < num_unfinished; ++i) queue_.Push(unfinished[i]);
  running_ -= static_cast<int>(count);
  unfinished_.fetch_sub(static_cast<int>(count - num_unfinished), std::memory_order_release);
  if (running_ == 0) changed_.notify_all();
  return true;
}

int Rollout::SegmentSteps() const {
  if (step_seconds_ == 0.0) return std::min(kFirstSegment, request_.num_steps);
  const double total = step_seconds_ * request_.num_steps * store_.num_envs() / num_threads_;
  const double seconds =
      std::clamp(total / kSegmentsPerThread, kMinSegmentSeconds, kMaxSegmentSeconds);
  return static_cast<int>(std::clamp(seconds / step_seconds_, 1.0, 1.0 * request_.num_steps));
}

// Several at a time only where one segment finishes each: nobody waits for what a worker holds.
size_t Rollout::EnvsToTake(int segment) const {
  if (segment < request_.num_steps || step_seconds_ == 0.0) return 1;
  const double wanted = kMinSegmentSeconds / (step_seconds_ * request_.num_steps);
  const size_t share = queue_.size() / (4 * static_cast<size_t>(num_threads_));
  return std::clamp<size_t>(static_cast<size_t>(std::min(wanted, 1.0 * kMaxTaken)), 1,
                            std::max<size_t>(share, 1));
}

bool Rollout::RunSegment(Environment& env, Worker& worker, int32_t id, int begin, int end) {
  const size_t num_episodes = worker.episodes.size();
  const Counts counts = worker.counts;
  std::string message;
  try {
    RunSteps(env, worker, id, begin, end);
    return true;
  } catch (const std::exception& error) {
    message = error.what();
  } catch (...) {
    message = "unknown exception";
  }
  // Nothing has been committed: the steps before the one that failed are run again, for their
  // results and the state they lead to.
  const int failed_step = worker.step;
  worker.episodes.resize(num_episodes);
  worker.counts = counts;
  RunSteps(env, worker, id, begin, failed_step);
  ++worker.counts.failures;
  worker.failures.push_back({id, "step " + std::to_string(failed_step) + ": " + message});
  WriteFailed(id, failed_step);
  return false;
}

void Rollout::RunSteps(Environment& env, Worker& worker, int32_t id, int begin, int end) {
  const RolloutViews& out = request_.out;
  const auto num_envs = static_cast<size_t>(store_.num_envs());
  const Policy& policy = *request_.policy;
  const auto index = static_cast<size_t>(id);
  const int policy_id = request_.policy_ids.empty() ? 0 : request_.policy_ids[index];
  const size_t obs_bytes = static_cast<size_t>(obs_size_) * ItemSize(out.obs_dtype);
  const auto action_size = static_cast<size_t>(policy.action_size());
  Policy::Scratch& act = worker.policy;

  Progress progress = store_.progress(id);
  Random policy_random = store_.policy_random(id);
  ReadObservation(id, worker.obs.data());
  env.Load(store_.row(id));
  for (int t = begin; t < end; ++t) {
    worker.step = t;
    const size_t slot = static_cast<size_t>(t) * num_envs + index;
    StoreAs(out.obs_dtype, worker.obs.data(), obs_size_,
            static_cast<uint8_t*>(out.obs) + slot * obs_bytes);
    policy.Act(policy_id, worker.obs.data(), policy_random, act);
    if (policy.discrete()) {
      static_cast<int64_t*>(out.actions)[slot] = act.index;
    } else {
      std::copy(act.action.begin(), act.action.end(),
                static_cast<float*>(out.actions) + slot * action_size);
    }
    const Action action = policy.discrete() ? Action(&act.index, DType::kInt64, 1)
                                            : Action(act.env_action.data(), DType::kFloat32,
                                                     static_cast<int>(action_size));
    const Transition transition =
        Advance(env, rules_, action, progress, worker.info.data(), [&](const Transition& last) {
          EpisodeEnd episode;
          episode.step = t;
          episode.env_id = id;
          episode.episode_return = progress.episode_return;
          episode.length = progress.elapsed;
          episode.terminated = last.terminated;
          episode.final_obs.resize(static_cast<size_t>(obs_size_));
          Observe(env, episode.final_obs.data());
          worker.episodes.push_back(std::move(episode));
        });
    Observe(env, worker.obs.data());
    out.log_probs[slot] = act.log_prob;
    StoreAs(out.reward_dtype, &transition.reward, 1,
            static_cast<uint8_t*>(out.rewards) + slot * ItemSize(out.reward_dtype));
    out.terminations[slot] = transition.terminated ? 1 : 0;
    out.truncations[slot] = transition.truncated ? 1 : 0;
    out.autoresets[slot] = transition.stepped() ? 0 : 1;
    if (transition.stepped()) ++worker.counts.steps;
    if (transition.ended()) ++worker.counts.episodes;
    if ((transition.kind & kDiverged) != 0) ++worker.counts.diverged;
  }
  env.Save(store_.row(id));
  store_.Commit(id, progress);
  store_.policy_random(id) = policy_random;
  StoreAs(store_.obs_dtype(), worker.obs.data(), obs_size_, store_.obs(id));
  StoreAs(out.obs_dtype, worker.obs.data(), obs_size_,
          static_cast<uint8_t*>(out.last_obs) + index * obs_bytes);
}

void Rollout::ReadObservation(int32_t id, double* obs) {
  if (store_.obs_dtype() == DType::kFloat64) {
    std::memcpy(obs, store_.obs(id), store_.obs_bytes());
  } else {
    std::copy_n(reinterpret_cast<const float*>(store_.obs(id)), obs_size_, obs);
  }
}

// Rounded as the vector environment's observations are.
void Rollout::Observe(const Environment& env, double* obs) const {
  env.Observe(obs);
  if (store_.obs_dtype() == DType::kFloat64) return;
  for (int i = 0; i < obs_size_; ++i) obs[i] = static_cast<float>(obs[i]);
}

// Zeros from `begin` on.
void Rollout::WriteFailed(int32_t id, int begin) {
  const RolloutViews& out = request_.out;
  const Policy& policy = *request_.policy;
  const size_t obs_bytes = static_cast<size_t>(obs_size_) * ItemSize(out.obs_dtype);
  const size_t action_bytes = policy.discrete()
                                  ? sizeof(int64_t)
                                  : sizeof(float) * static_cast<size_t>(policy.action_size());
  for (int t = begin; t < request_.num_steps; ++t) {
    const size_t slot =
        static_cast<size_t>(t) * static_cast<size_t>(store_.num_envs()) + static_cast<size_t>(id);
    std::memset(static_cast<uint8_t*>(out.obs) + slot * obs_bytes, 0, obs_bytes);
    std::memset(static_cast<uint8_t*>(out.actions) + slot * action_bytes, 0, action_bytes);
    const size_t reward_bytes = ItemSize(out.reward_dtype);
    std::memset(static_cast<uint8_t*>(out.rewards) + slot * reward_bytes, 0, reward_bytes);
    out.log_probs[slot] = 0.0F;
    out.terminations[slot] = out.truncations[slot] = out.autoresets[slot] = 0;
  }
}

bool Rollout::WaitFor(std::chrono::nanoseconds spin, std::chrono::nanoseconds timeout) {
  const auto done = [this] { return unfinished_.load(std::memory_order_acquire) == 0; };
  const auto spin_until = Clock::now() + spin;
  while (!done() && Clock::now() < spin_until) CpuRelax();
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, done);
}

void Rollout::Stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  changed_.wait(lock, [this] { return running_ == 0; });
}

std::vector<EpisodeEnd> Rollout::TakeEpisodes() {
  std::vector<EpisodeEnd> episodes;
  for (auto& worker : workers_) {
    std::move(worker->episodes.begin(), worker->episodes.end(), std::back_inserter(episodes));
  }
  std::sort(episodes.begin(), episodes.end(), [](const EpisodeEnd& a, const EpisodeEnd& b) {
    return a.step != b.step ? a.step < b.step : a.env_id < b.env_id;
  });
  return episodes;
}

std::vector<EnvFailure> Rollout::TakeFailures() {
  std::vector<EnvFailure> failures;
  for (auto& worker : workers_) {
    std::move(worker->failures.begin(), worker->failures.end(), std::back_inserter(failures));
  }
  std::sort(failures.begin(), failures.end(),
            [](const EnvFailure& a, const EnvFailure& b) { return a.env_id < b.env_id; });
  return failures;
}

Rollout::Counts Rollout::counts() const {
  Counts sum;
  for (const auto& worker : workers_) {
    sum.steps += worker->counts.steps;
    sum.episodes += worker->counts.episodes;
    sum.diverged += worker->counts.diverged;
    sum.failures += worker->counts.failures;
  }
  return sum;
}

}  // namespace pyfastenv
