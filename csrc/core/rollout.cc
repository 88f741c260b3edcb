#include "core/rollout.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

namespace pyfastenv {

namespace {

// A segment is long against taking an environment (microseconds) and short against the whole, so
// that workers finish together; and short enough for a Ctrl-C.
constexpr double kMinSegmentSeconds = 50e-6;
constexpr double kMaxSegmentSeconds = 1e-3;
constexpr int kSegmentsPerThread = 64;
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
  Stats stats;  // of the segment being run
};

Rollout::Rollout(EnvStore& store, const EpisodeRules& rules, const Request& request,
                 EnvRunner& runner, int num_threads)
    : store_(store),
      rules_(rules),
      request_(request),
      runner_(runner),
      num_threads_(num_threads),
      obs_size_(runner.spec().obs_size),
      done_steps_(static_cast<size_t>(store.num_envs())),
      failed_step_(static_cast<size_t>(store.num_envs()), -1) {
  for (int i = 0; i < num_threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(*request.policy, runner.spec()));
  }
}

Rollout::~Rollout() = default;

int Rollout::SegmentSteps() const {
  const int num_steps = request_.num_steps;
  if (cost_.seconds() == 0.0) return std::min(kFirstSegment, num_steps);
  const double total = cost_.seconds() * num_steps * store_.num_envs() / num_threads_;
  const double seconds =
      std::clamp(total / kSegmentsPerThread, kMinSegmentSeconds, kMaxSegmentSeconds);
  return static_cast<int>(cost_.StepsIn(seconds, 1, num_steps));
}

// Several at a time only where one segment finishes each: nobody waits for what a worker holds.
int Rollout::Chunk() const {
  if (SegmentSteps() < request_.num_steps) return 1;
  const int64_t share = store_.num_envs() / (4 * num_threads_);
  const int64_t wanted =
      cost_.StepsIn(kMinSegmentSeconds, 1, int64_t{BarrierBatch::kMaxChunk} * request_.num_steps) /
      request_.num_steps;
  return static_cast<int>(std::clamp<int64_t>(std::min(wanted, share), 1, BarrierBatch::kMaxChunk));
}

int Rollout::Run(int worker, std::span<int32_t> ids) noexcept {
  const auto start = CostEstimate::Clock::now();
  const int segment = SegmentSteps();
  int64_t steps = 0;
  size_t unfinished = 0;
  for (const int32_t id : ids) {
    int32_t& done = done_steps_[static_cast<size_t>(id)];  // ours while we hold the environment
    const int end = std::min(done + segment, request_.num_steps);
    const bool alive = RunSegment(worker, id, done, end);
    steps += end - done;
    done = end;
    if (alive && end < request_.num_steps) ids[unfinished++] = id;
  }
  cost_.Note(start, steps);
  return static_cast<int>(unfinished);
}

bool Rollout::RunSegment(int worker_index, int32_t id, int begin, int end) noexcept {
  Worker& worker = *workers_[static_cast<size_t>(worker_index)];
  const size_t num_episodes = worker.episodes.size();
  try {
    RunSteps(worker_index, id, begin, end);
    runner_.Count(worker_index, worker.stats);
    return true;
  } catch (...) {
    failures_.AddCurrentException(id);
  }
  // Nothing has been committed: the steps before the one that failed are run again, for their
  // results and the state they lead to.
  int failed_step = worker.step;
  worker.episodes.erase(worker.episodes.begin() + static_cast<ptrdiff_t>(num_episodes),
                        worker.episodes.end());
  try {
    RunSteps(worker_index, id, begin, failed_step);
  } catch (...) {
    // not the same again (memory ran out, say): the state before this segment stands
    failed_step = begin;
    worker.episodes.erase(worker.episodes.begin() + static_cast<ptrdiff_t>(num_episodes),
                          worker.episodes.end());
    worker.stats = {};
    ReadObservation(id, worker.obs.data());
    WriteLastObservation(id, worker.obs.data());
  }
  ++worker.stats.failures;
  runner_.Count(worker_index, worker.stats);
  failed_step_[static_cast<size_t>(id)] = failed_step;
  WriteFailed(id, failed_step);
  return false;
}

void Rollout::RunSteps(int worker_index, int32_t id, int begin, int end) {
  Environment& env = runner_.environment(worker_index);
  Worker& worker = *workers_[static_cast<size_t>(worker_index)];
  worker.stats = {};
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
    if (transition.stepped()) ++worker.stats.steps;
    if (transition.ended()) ++worker.stats.episodes;
    if ((transition.kind & kDiverged) != 0) ++worker.stats.diverged;
  }
  env.Save(store_.row(id));
  store_.Commit(id, progress);
  store_.policy_random(id) = policy_random;
  StoreAs(store_.obs_dtype(), worker.obs.data(), obs_size_, store_.obs(id));
  WriteLastObservation(id, worker.obs.data());
}

void Rollout::WriteLastObservation(int32_t id, const double* obs) {
  const RolloutViews& out = request_.out;
  const size_t bytes = static_cast<size_t>(obs_size_) * ItemSize(out.obs_dtype);
  StoreAs(out.obs_dtype, obs, obs_size_,
          static_cast<uint8_t*>(out.last_obs) + static_cast<size_t>(id) * bytes);
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
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < store_.num_envs(); ++id) {
    if (failed_step_[static_cast<size_t>(id)] >= 0) ids.push_back(id);
  }
  std::vector<EnvFailure> failures = failures_.Take(ids);
  for (auto& failure : failures) {
    const int step = failed_step_[static_cast<size_t>(failure.env_id)];
    failure.message = "step " + std::to_string(step) + ": " + failure.message;
  }
  return failures;
}

}  // namespace pyfastenv
