#include "core/vector_env.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/batch_work.h"
#include "core/polling.h"

namespace pyfastenv {

namespace {

using Clock = std::chrono::steady_clock;
using Code = UsageError::Code;

// Waking helpers costs about as much as this much work (measured: bench/cpp, ThreadsWake).
constexpr double kWorthWaking = 12e-6;
// Up to this many environments per thread, the most expensive ones are run first.
constexpr int kOrderedPerThread = 32;
// Workers claim this much work at a time: long against a claim, short against the tail.
constexpr double kChunkSeconds = 10e-6;
// Waiters spin for about two chunks, and never longer than this.
constexpr std::chrono::nanoseconds kMaxSpin = std::chrono::microseconds(500);

}  // namespace

VectorEnv::VectorEnv(const MakeEnvironment& make, const VectorEnvOptions& options)
    : options_(options),
      num_threads_(std::clamp(options.num_threads, 1, options.num_envs)),
      runner_(make, options.make_frames, num_threads_),
      store_(options.num_envs, runner_.environment(0),
             {runner_.spec().obs_size, options.obs_dtype, options.frames, options.obs_numbers}),
      state_bytes_(store_.state_bytes()),
      rules_{options.autoreset_mode, options.max_episode_steps, {}, options.amended},
      all_ids_(static_cast<size_t>(options.num_envs)),
      cost_order_(options.num_envs),
      group_order_(options.num_envs),
      queue_(options.num_envs, runner_.spec()) {
  std::iota(all_ids_.begin(), all_ids_.end(), 0);
  for (const auto& option : spec().reset_options) rules_.reset_options.push_back(option.fallback);
  runner_.Attach(&store_, &rules_);
  MakeGroupings();
  pool_ = std::make_unique<ThreadPool>(num_threads_, [this](int worker) { Work(worker); });
  batch_ = std::make_unique<BarrierBatch>(*pool_, num_threads_);

  FirstTouch([this](int32_t id) { store_.Initialize(id); });
}

VectorEnv::~VectorEnv() { Close(); }

void VectorEnv::Close() {
  if (gate_.forked() && !gate_.closed()) {
    batch_->Abandon();
    queue_.Abandon();
  }
  gate_.Close([this] { queue_.Clear(); }, [this] { pool_->Stop(); });
}

// ---- helpers ----

void VectorEnv::Work(int worker) {
  while (batch_->RunSome(worker) || RunRequests(worker, BarrierBatch::kMaxChunk)) {
  }
}

// Items of so many steps each that a worker takes at a time.
int VectorEnv::ChunkOf(int num_items, int steps_each) const {
  const int64_t steps = step_cost_.StepsIn(kChunkSeconds, 1, BarrierBatch::kMaxChunk);
  const int64_t cheap = std::max<int64_t>(steps / steps_each, 1);
  if (!WorthWaking(num_items * steps_each)) return static_cast<int>(cheap);
  const int share = num_items / (4 * num_threads_);
  return static_cast<int>(std::clamp<int64_t>(cheap, 1, std::max(share, 1)));
}

void VectorEnv::MakeGroupings() noexcept {
  const int size = runner_.group_size();
  group_size_.store(size, std::memory_order_relaxed);
  groups_ = Grouping(num_envs(), num_threads_, size);
  groups_alone_ = Grouping(num_envs(), 1, size);
}

// Whether so many steps, of which little may be known, are not done before a helper is awake.
bool VectorEnv::WorthWaking(int num_steps) const {
  const double seconds = step_cost_.seconds() * num_steps;
  return num_threads_ > 1 && (seconds == 0.0 || seconds > kWorthWaking);
}

void VectorEnv::FirstTouch(std::function<void(int32_t)> touch) {
  FirstTouchWork work(std::move(touch));
  BarrierBatch::Options all;
  all.count = num_envs();
  all.helpers = num_threads_ - 1;
  all.spin = kSpin;
  batch_->Run(work, all, [] { return false; });
}

// ---- barrier calls ----

bool VectorEnv::RunBatch(BarrierBatch::Work& work, int num_items, int steps_each,
                         const Interrupted& interrupted) {
  const int chunk = work.Chunk();
  const int num_chunks = CeilDiv(num_items, chunk);
  BarrierBatch::Options options;
  options.count = num_items;
  options.first_chunk = std::max(4 / steps_each, 1);
  // as many as can be of use
  if (WorthWaking(num_items * steps_each)) options.helpers = std::min(num_threads_, num_chunks) - 1;
  // both sides wait for about a chunk at the end: going to sleep for it would cost more
  options.spin = std::clamp<std::chrono::nanoseconds>(
      2 * chunk * steps_each * step_cost_.duration(), kSpin, kMaxSpin);
  return batch_->Run(work, options, interrupted);
}

VectorEnv::Outcome VectorEnv::Reset(std::span<const int32_t> ids, Seeds seeds,
                                    std::span<const double> reset_options, const OutputViews& out,
                                    const Interrupted& interrupted) {
  const CallGate::Exclusive exclusive(gate_);
  CheckIds(ids);
  CheckFree({}, "reset");
  ResetWork work(runner_, failures_, step_cost_, {ids, seeds, reset_options, &out},
                 ChunkOf(static_cast<int>(ids.size()), 1));
  const bool completed = RunBatch(work, static_cast<int>(ids.size()), 1, interrupted);
  return Finish(ids, out, completed);
}

VectorEnv::Outcome VectorEnv::Step(const ActionViews& actions, const OutputViews& out,
                                   const Interrupted& interrupted) {
  const CallGate::Exclusive exclusive(gate_);
  CheckFree({}, "step");
  CheckReset("step", store_.Unreset(all_ids_));
  const Grouping& groups = WorthWaking(num_envs()) ? groups_ : groups_alone_;
  // a group costs what its most expensive environment does, which nobody sees
  const bool ordered = groups.size() == 1 && num_envs() <= kOrderedPerThread * num_threads_ &&
                       step_cost_.seconds() > 0.0 && WorthWaking(num_envs());
  if (ordered) {
    for (const int32_t id : all_ids_) {
      if ((store_.flags(id) & kAutoreset) != 0) cost_order_.Forget(id);  // a reset is cheap
    }
    for (int worker = 0; worker < num_threads_; ++worker) {
      cost_order_.Sort(batch_->ShareOf(worker, num_envs()));
    }
  }
  const bool grouped = groups.size() > 1;
  for (int part = 0; grouped && part < groups.num_parts(); ++part) {
    const auto [begin, end] = groups.Part(part);
    group_order_.Sort(begin, end);
  }
  StepWork work(
      runner_, failures_, step_cost_,
      {actions, &out, &groups, ordered ? &cost_order_ : nullptr, grouped ? &group_order_ : nullptr},
      ChunkOf(groups.num_groups(), groups.size()));
  return Finish(all_ids_, out, RunBatch(work, groups.num_groups(), groups.size(), interrupted));
}

VectorEnv::Outcome VectorEnv::Finish(std::span<const int32_t> ids, const OutputViews& out,
                                     bool completed) {
  try {
    return Collect(ids, out, completed);
  } catch (...) {  // no memory to say what has happened
    for (const int32_t id : ids) store_.MarkNeedsReset(id);
    throw;
  }
}

VectorEnv::Outcome VectorEnv::Collect(std::span<const int32_t> ids, const OutputViews& out,
                                      bool completed) {
  Outcome outcome;
  outcome.interrupted = !completed;
  if (failures_.any()) {
    std::vector<int32_t> failed;
    for (const int32_t id : ids) {
      if (out.kinds[id] == kFailed) failed.push_back(id);
    }
    std::sort(failed.begin(), failed.end());
    outcome.failures = failures_.Take(failed);
  }
  if (completed) {
    outcome.finals = runner_.TakeFinals(ids, out.kinds);
  } else {
    for (const int32_t id : ids) store_.MarkNeedsReset(id);
  }
  return outcome;
}

VectorEnv::RolloutOutcome VectorEnv::RunRollout(const Rollout::Request& request,
                                                const Interrupted& interrupted) {
  const CallGate::Exclusive exclusive(gate_);
  CheckFree({}, "rollout");
  CheckReset("rollout", store_.Unreset(all_ids_));
  if (!obs_layout().frames.empty()) {
    throw BadValue(
        "rollout: the pool's policies act on states, and these environments show "
        "pixels: call step, or make them without pixels");
  }
  if (rules_.autoreset_mode == AutoresetMode::kDisabled) {
    throw BadValue(
        "rollout: episodes must start by themselves: make the vector environment with "
        "autoreset_mode='SameStep' or 'NextStep'");
  }
  Rollout rollout(store_, rules_, request, runner_, num_threads_);
  BarrierBatch::Options options;
  options.count = rollout.num_items();
  options.helpers = num_threads_ - 1;
  options.spin = kSpin;
  options.gives_back = true;
  RolloutOutcome outcome;
  outcome.interrupted = !batch_->Run(rollout, options, interrupted);
  if (outcome.interrupted) {
    for (const int32_t id : all_ids_) store_.MarkNeedsReset(id);
  }
  outcome.episodes = rollout.TakeEpisodes();
  outcome.failures = rollout.TakeFailures();
  return outcome;
}

// ---- asynchronous calls ----

void VectorEnv::Send(std::span<const int32_t> ids, const ActionViews& actions) {
  RequestQueue::Requests requests;
  requests.kind = Job::Kind::kStep;
  requests.ids = ids;
  requests.actions = actions;
  PushRequests(requests);
}

void VectorEnv::SendReset(std::span<const int32_t> ids, Seeds seeds,
                          std::span<const double> reset_options) {
  RequestQueue::Requests requests;
  requests.kind = Job::Kind::kReset;
  requests.ids = ids;
  requests.seeds = seeds;
  requests.reset_options = reset_options;
  PushRequests(requests);
}

void VectorEnv::PushRequests(const RequestQueue::Requests& requests) {
  const CallGate::Pass pass(gate_);
  CheckIds(requests.ids);
  if (requests.ids.empty()) return;
  {
    const CallGate::RowsOnly rows(gate_);
    CheckFree(requests.ids, "send");
    if (requests.kind == Job::Kind::kStep) CheckReset("send", store_.Unreset(requests.ids));
    queue_.Push(requests);
  }
  // so little that recv has done it before a helper is awake?
  const int waiting = queue_.num_requests();
  if (WorthWaking(waiting)) pool_->Wake(waiting);
}

bool VectorEnv::RunRequests(int worker, int max) {
  int32_t ids[BarrierBatch::kMaxChunk];
  // a fair part; but so many that they are worth the lock, and a whole group if others have one too
  const int group = group_size_.load(std::memory_order_relaxed);
  const int own = std::min(group, CeilDiv(queue_.num_requests(), num_threads_));
  const auto cheap = std::max(
      own, static_cast<int>(step_cost_.StepsIn(kChunkSeconds, 1, BarrierBatch::kMaxChunk)));
  const int count = queue_.TakeRequests(2 * num_threads_, cheap, std::max(max, cheap), ids);
  if (count == 0) return false;
  const auto start = Clock::now();
  Job jobs[EnvRunner::kMaxGroup];
  int done = 0;
  for (int groups = 1; done < count; ++groups) {
    const int size = std::min(group, count - done);
    for (int i = 0; i < size; ++i) jobs[i] = queue_.JobOf(ids[done + i]);
    runner_.RunGroup(worker, {jobs, static_cast<size_t>(size)}, queue_.outputs(),
                     queue_.failures());
    done += size;
    // these have become more expensive; the rest of the batch waits for them
    const bool look = group > 1 || groups == 1 || groups % 4 == 0;
    if (look && done < count &&
        Clock::now() - start > std::chrono::duration<double>(5 * kChunkSeconds)) {
      break;
    }
  }
  step_cost_.Note(start, done);
  const std::span<const int32_t> taken(ids, static_cast<size_t>(count));
  queue_.PutResults(taken.first(static_cast<size_t>(done)));
  const auto rest = taken.subspan(static_cast<size_t>(done));
  if (!rest.empty() && queue_.PutBack(rest)) pool_->WakeAll();
  return true;
}

VectorEnv::Received VectorEnv::Receive(const RequestQueue::Wanted& wanted,
                                       const Interrupted& interrupted) {
  const CallGate::Pass pass(gate_);
  // whoever gets worker 0's seat helps; another receiver only waits, unless the first leaves
  CallGate::TryWorkerZero worker_zero(gate_);
  int chunk = 1;  // environments to run before looking up; as many as take a millisecond
  const auto help = [&](bool hurry) {
    if (!worker_zero.has()) return false;
    const auto start = Clock::now();
    const bool ran = RunRequests(0, hurry ? 1 : chunk);
    const bool quick = Clock::now() - start < std::chrono::milliseconds(1);
    chunk = quick ? std::min(2 * chunk, BarrierBatch::kMaxChunk) : 1;
    return ran;
  };
  return queue_.Receive(wanted, gate_, help, interrupted);
}

std::vector<std::unique_ptr<FinalStep>> VectorEnv::Gather(Received& received,
                                                          const OutputViews& out) {
  const CallGate::Pass pass(gate_);
  if (received.ids.empty()) {
    queue_.Release(received);
    return {};
  }
  const OutputViews& from = queue_.outputs();
  auto finals = runner_.TakeFinals(received.ids, from.kinds);
  for (size_t i = 0; i < received.ids.size(); ++i) {
    const int32_t id = received.ids[i];
    std::memcpy(static_cast<uint8_t*>(out.obs) + i * obs_bytes(), store_.obs(id), obs_bytes());
    out.rewards[i] = from.rewards[id];
    out.terminations[i] = from.terminations[id];
    out.truncations[i] = from.truncations[id];
    out.kinds[i] = from.kinds[id];
    for (size_t k = 0; k < out.columns.size(); ++k) {
      const InfoColumn& to = out.columns[k];
      const auto width = static_cast<size_t>(to.width);
      StoreAs(to.dtype,
              static_cast<const double*>(from.columns[k].data) + static_cast<size_t>(id) * width,
              to.width, static_cast<uint8_t*>(to.data) + i * width * ItemSize(to.dtype));
    }
  }
  queue_.Release(received);
  return finals;
}

// ---- checks ----

void VectorEnv::CheckIds(std::span<const int32_t> ids) const {
  std::vector<bool> seen(static_cast<size_t>(num_envs()));
  for (const int32_t id : ids) {
    if (id < 0 || id >= num_envs()) {
      throw UsageError(Code::kIndex, "env_ids: expected ids from 0 to ", num_envs() - 1, ", got ",
                       id);
    }
    if (seen[static_cast<size_t>(id)]) {
      throw BadValue("env_ids: environment ", id, " is given twice");
    }
    seen[static_cast<size_t>(id)] = true;
  }
}

void VectorEnv::CheckReset(const char* what, const std::vector<int32_t>& unreset) {
  if (unreset.empty()) return;
  throw UsageError(Code::kResetNeeded, what, ": reset ", NameEnvironments(unreset),
                   " first (never reset, ended with autoreset disabled, "
                   "or interrupted)");
}

void VectorEnv::CheckFree(std::span<const int32_t> ids, const char* what) const {
  if (queue_.idle()) return;
  const std::vector<int32_t> under_way = queue_.UnderWay(ids);
  if (under_way.empty()) return;
  throw UsageError(Code::kBusy, what, ": sent and not received: ", NameEnvironments(under_way),
                   "; call recv() first");
}

}  // namespace pyfastenv
