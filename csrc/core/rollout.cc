#include "core/rollout.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

namespace pyfastenv {

namespace {

// A segment is long against taking a block (a microsecond per environment) and short against the
// whole, so that workers finish together; and short enough for a Ctrl-C.
constexpr double kMinSegmentSeconds = 50e-6;
constexpr double kMaxSegmentSeconds = 16e-3;
constexpr int kSegmentsPerThread = 64;
constexpr int kFirstSegment = 4;  // steps, while nothing is known of their cost
constexpr int kMostGroups = 8;    // in a block: some hundred kilobytes, near the processor

// Environments that a worker runs side by side: some groups, so that each can be of those that have
// as many constraint rows, but two blocks for every thread, so that one may help another.
int BlockSize(int num_envs, int num_threads, int group_size) {
  if (group_size == 1) return 1;
  return group_size * std::clamp(num_envs / (2 * num_threads * group_size), 1, kMostGroups);
}

}  // namespace

// One environment of a block while it is run.
struct Rollout::Lane {
  Lane(const Policy& policy, const EnvSpec& spec)
      : policy(policy), obs(static_cast<size_t>(spec.obs_size)) {}

  int32_t id = 0;
  int policy_id = 0;
  Policy::Scratch policy;   // what it chose last
  std::vector<double> obs;  // the latest observation
  std::vector<double> row;  // where blocks keep it from step to step
  Progress progress;
  Random policy_random;
};

// One thread's memory, and its results until they are collected.
struct Rollout::Worker {
  Worker(const Policy& policy, const EnvSpec& spec, int block_size)
      : ids(static_cast<size_t>(block_size)),
        order(block_size),
        info(static_cast<size_t>(spec.info_size())) {
    lanes.reserve(ids.size());
    while (lanes.size() < ids.size()) lanes.emplace_back(policy, spec);
  }

  std::vector<Lane> lanes;
  std::vector<int32_t> ids;
  GroupOrder order;  // of lanes; those of the block before are forgotten within a step
  std::vector<double> info;
  int step = 0;  // the one being run
  std::vector<EpisodeEnd> episodes;
  Stats stats;  // of the segment being run

  /// Forgets the episodes after the first `count`.
  void DropEpisodes(size_t count) {
    episodes.erase(episodes.begin() + static_cast<ptrdiff_t>(count), episodes.end());
  }
};

Rollout::Rollout(EnvStore& store, const EpisodeRules& rules, const Request& request,
                 EnvRunner& runner, int num_threads)
    : store_(store),
      rules_(rules),
      request_(request),
      runner_(runner),
      num_threads_(num_threads),
      obs_size_(runner.spec().obs_size),
      blocks_(store.num_envs(), num_threads,
              BlockSize(store.num_envs(), num_threads, runner.group_size())),
      done_steps_(static_cast<size_t>(blocks_.num_groups())),
      failed_step_(static_cast<size_t>(store.num_envs()), -1) {
  for (int i = 0; i < num_threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(*request.policy, runner.spec(), blocks_.size()));
  }
}

Rollout::~Rollout() = default;

int Rollout::SegmentSteps() const {
  const int num_steps = request_.num_steps;
  if (cost_.seconds() == 0.0) return std::min(kFirstSegment, num_steps);
  const double total = cost_.seconds() * num_steps * store_.num_envs() / num_threads_;
  const double seconds =
      std::clamp(total / kSegmentsPerThread, kMinSegmentSeconds, kMaxSegmentSeconds);
  const int size = blocks_.size();
  return static_cast<int>(
      std::max<int64_t>(cost_.StepsIn(seconds, 1, int64_t{num_steps} * size) / size, 1));
}

// Several at a time only where one segment finishes each: nobody waits for what a worker holds.
int Rollout::Chunk() const {
  if (SegmentSteps() < request_.num_steps) return 1;
  const int64_t share = blocks_.num_groups() / (4 * num_threads_);
  const int64_t steps_each = int64_t{request_.num_steps} * blocks_.size();
  const int64_t wanted =
      cost_.StepsIn(kMinSegmentSeconds, 1, BarrierBatch::kMaxChunk * steps_each) / steps_each;
  return static_cast<int>(std::clamp<int64_t>(std::min(wanted, share), 1, BarrierBatch::kMaxChunk));
}

int Rollout::Run(int worker_index, std::span<int32_t> blocks) noexcept {
  const auto start = CostEstimate::Clock::now();
  Worker& worker = *workers_[static_cast<size_t>(worker_index)];
  const int segment = SegmentSteps();
  int64_t steps = 0;
  size_t unfinished = 0;
  for (const int32_t block : blocks) {
    const auto ids = AliveOf(worker, block);
    if (ids.empty()) continue;
    int32_t& done = done_steps_[static_cast<size_t>(block)];  // ours while we hold the block
    const int end = std::min(done + segment, request_.num_steps);
    RunSegment(worker_index, ids, done, end);
    steps += static_cast<int64_t>(ids.size()) * (end - done);
    done = end;
    if (end < request_.num_steps) blocks[unfinished++] = block;
  }
  cost_.Note(start, steps);
  return static_cast<int>(unfinished);
}

// The environments of a block that have not failed.
std::span<const int32_t> Rollout::AliveOf(Worker& worker, int block) const {
  const auto [begin, end] = blocks_.Positions(block);
  size_t count = 0;
  for (int32_t id = begin; id < end; ++id) {
    if (failed_step_[static_cast<size_t>(id)] < 0) worker.ids[count++] = id;
  }
  return {worker.ids.data(), count};
}

void Rollout::RunSegment(int worker_index, std::span<const int32_t> ids, int begin,
                         int end) noexcept {
  Worker& worker = *workers_[static_cast<size_t>(worker_index)];
  const size_t num_episodes = worker.episodes.size();
  if (ids.size() > 1) {
    try {
      RunSteps(worker_index, ids, begin, end);
      runner_.Count(worker_index, worker.stats);
      return;
    } catch (...) {
      // whoever raised does so again when it runs alone
      worker.DropEpisodes(num_episodes);
    }
  }
  for (const int32_t id : ids) RunAlone(worker_index, id, begin, end);
}

void Rollout::RunAlone(int worker_index, int32_t id, int begin, int end) noexcept {
  Worker& worker = *workers_[static_cast<size_t>(worker_index)];
  const size_t num_episodes = worker.episodes.size();
  try {
    RunSteps(worker_index, {&id, 1}, begin, end);
    runner_.Count(worker_index, worker.stats);
    return;
  } catch (...) {
    failures_.AddCurrentException(id);
  }
  // Nothing has been committed: the steps before the one that failed are run again, for their
  // results and the state they lead to.
  int failed_step = worker.step;
  worker.DropEpisodes(num_episodes);
  try {
    RunSteps(worker_index, {&id, 1}, begin, failed_step);
  } catch (...) {
    // not the same again (memory ran out, say): the state before this segment stands
    failed_step = begin;
    worker.DropEpisodes(num_episodes);
    worker.stats = {};
    std::vector<double>& obs = worker.lanes[0].obs;
    ReadObservation(id, obs.data());
    WriteLastObservation(id, obs.data());
  }
  ++worker.stats.failures;
  runner_.Count(worker_index, worker.stats);
  failed_step_[static_cast<size_t>(id)] = failed_step;
  WriteFailed(id, failed_step);
}

void Rollout::RunSteps(int worker_index, std::span<const int32_t> ids, int begin, int end) {
  Environment& env = runner_.environment(worker_index);
  Worker& worker = *workers_[static_cast<size_t>(worker_index)];
  worker.stats = {};
  const std::span<Lane> lanes(worker.lanes.data(), ids.size());
  const bool together = runner_.prepares();  // else it is one, and stays loaded
  const auto group_size = static_cast<size_t>(runner_.group_size());
  const bool several_groups = lanes.size() > group_size;
  for (size_t i = 0; i < ids.size(); ++i) {
    Begin(lanes[i], ids[i]);
    const double* row = store_.row(ids[i]);
    if (together) {
      lanes[i].row.assign(row, row + store_.layout().size());
    } else {
      env.Load(row);
    }
  }
  for (int t = begin; t < end; ++t) {
    worker.step = t;
    if (several_groups) worker.order.Sort(0, static_cast<int>(lanes.size()));
    for (size_t first = 0; first < lanes.size(); first += group_size) {
      Lane* group[EnvRunner::kMaxGroup];
      const size_t count = std::min(group_size, lanes.size() - first);
      for (size_t i = 0; i < count; ++i) {
        const auto position = static_cast<int32_t>(first + i);
        group[i] =
            &lanes[static_cast<size_t>(several_groups ? worker.order.At(position) : position)];
      }
      ChooseActions({group, count});
      if (together) PrepareSteps(env, worker, {group, count});
      for (Lane* lane : std::span(group, count)) {
        if (together) env.Load(lane->row.data());
        RunStep(env, worker, *lane, t);
        if (together) env.Save(lane->row.data());
      }
    }
  }
  // from here on nothing throws
  for (const Lane& lane : lanes) {
    if (together) {
      CopyOwn(lane.row.data(), store_.row(lane.id));
    } else {
      env.Save(store_.row(lane.id));
    }
    Commit(lane);
  }
}

// What is an environment's own of a row: all but the callers' task and fields.
void Rollout::CopyOwn(const double* from, double* to) const {
  const RowLayout& layout = store_.layout();
  for (const auto& section : {layout.state(), layout.cache(), layout.memory()}) {
    std::copy_n(from + section.offset, section.size, to + section.offset);
  }
}

void Rollout::Begin(Lane& lane, int32_t id) {
  lane.id = id;
  lane.policy_id = request_.policy_ids.empty() ? 0 : request_.policy_ids[static_cast<size_t>(id)];
  lane.progress = store_.progress(id);
  lane.policy_random = store_.policy_random(id);
  ReadObservation(id, lane.obs.data());
}

Action Rollout::ActionOf(const Lane& lane) const {
  const Policy& policy = *request_.policy;
  return policy.discrete()
             ? Action(&lane.policy.index, DType::kInt64, 1)
             : Action(lane.policy.env_action.data(), DType::kFloat32, policy.action_size());
}

// Those of the same policy together.
void Rollout::ChooseActions(std::span<Lane* const> lanes) const {
  bool has_acted[EnvRunner::kMaxGroup] = {};
  for (size_t first = 0; first < lanes.size(); ++first) {
    if (has_acted[first]) continue;
    Policy::Actor actors[EnvRunner::kMaxGroup];
    size_t count = 0;
    for (size_t i = first; i < lanes.size(); ++i) {
      Lane& lane = *lanes[i];
      if (lane.policy_id != lanes[first]->policy_id) continue;
      actors[count++] = {lane.obs.data(), &lane.policy_random, &lane.policy};
      has_acted[i] = true;
    }
    request_.policy->Act(lanes[first]->policy_id, {actors, count});
  }
}

void Rollout::PrepareSteps(Environment& env, Worker& worker, std::span<Lane* const> lanes) const {
  ComingStep coming[EnvRunner::kMaxGroup];
  const Lane* of[EnvRunner::kMaxGroup];
  size_t count = 0;
  for (const Lane* lane : lanes) {
    const bool resets = (lane->progress.flags & kAutoreset) != 0;
    if (resets) continue;
    of[count] = lane;
    coming[count++] = {lane->row.data(), ActionOf(*lane)};
  }
  env.PrepareSteps({coming, count});
  for (size_t i = 0; i < count; ++i) {
    worker.order.Note(static_cast<int32_t>(of[i] - worker.lanes.data()), coming[i].num_rows);
  }
}

// One step of the loaded environment, with the action that its policy has chosen.
void Rollout::RunStep(Environment& env, Worker& worker, Lane& lane, int t) {
  const RolloutViews& out = request_.out;
  const Policy& policy = *request_.policy;
  const size_t obs_bytes = static_cast<size_t>(obs_size_) * ItemSize(out.obs_dtype);
  const size_t slot = static_cast<size_t>(t) * static_cast<size_t>(store_.num_envs()) +
                      static_cast<size_t>(lane.id);
  StoreAs(out.obs_dtype, lane.obs.data(), obs_size_,
          static_cast<uint8_t*>(out.obs) + slot * obs_bytes);
  if (policy.discrete()) {
    static_cast<int64_t*>(out.actions)[slot] = lane.policy.index;
  } else {
    std::copy(lane.policy.action.begin(), lane.policy.action.end(),
              static_cast<float*>(out.actions) + slot * lane.policy.action.size());
  }
  const Transition transition = Advance(env, rules_, ActionOf(lane), lane.progress,
                                        worker.info.data(), [&](const Transition& last) {
                                          EpisodeEnd episode;
                                          episode.step = t;
                                          episode.env_id = lane.id;
                                          episode.episode_return = lane.progress.episode_return;
                                          episode.length = lane.progress.elapsed;
                                          episode.terminated = last.terminated;
                                          episode.final_obs.resize(static_cast<size_t>(obs_size_));
                                          Observe(env, episode.final_obs.data());
                                          episode.info = worker.info;
                                          if (last.kind != kStepInfo) {  // it diverged
                                            std::fill(episode.info.begin(), episode.info.end(),
                                                      std::numeric_limits<double>::quiet_NaN());
                                          }
                                          worker.episodes.push_back(std::move(episode));
                                        });
  Observe(env, lane.obs.data());
  out.log_probs[slot] = lane.policy.log_prob;
  StoreAs(out.reward_dtype, &transition.reward, 1,
          static_cast<uint8_t*>(out.rewards) + slot * ItemSize(out.reward_dtype));
  out.terminations[slot] = transition.terminated ? 1 : 0;
  out.truncations[slot] = transition.truncated ? 1 : 0;
  out.autoresets[slot] = transition.stepped() ? 0 : 1;
  if (transition.stepped()) ++worker.stats.steps;
  if (transition.ended()) ++worker.stats.episodes;
  if ((transition.kind & kDiverged) != 0) ++worker.stats.diverged;
}

// Writes back all but the row.
void Rollout::Commit(const Lane& lane) {
  store_.Commit(lane.id, lane.progress);
  store_.policy_random(lane.id) = lane.policy_random;
  StoreAs(store_.obs_dtype(), lane.obs.data(), obs_size_, store_.obs(lane.id));
  WriteLastObservation(lane.id, lane.obs.data());
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
