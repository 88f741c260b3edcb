#include "core/vector_env.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace pyfastenv {

namespace {

using Clock = std::chrono::steady_clock;
using Code = UsageError::Code;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// Signals are looked at this often: far below the 0.2 s a Ctrl-C may take.
constexpr auto kPollInterval = std::chrono::milliseconds(20);
// Waking helpers costs about as much as this much work (measured: bench/cpp, PoolWake).
constexpr double kWorthWaking = 12e-6;
// Up to this many environments per thread, the most expensive ones are run first.
constexpr int kOrderedPerThread = 32;
// Workers claim this much work at a time: long against a claim, short against the tail.
constexpr double kChunkSeconds = 10e-6;
constexpr size_t kMaxChunk = 64;
// Waiters spin this long before they sleep.
constexpr auto kSpin = std::chrono::microseconds(50);
// … or, at the end of a batch of slow steps, up to this long.
constexpr auto kMaxSpin = std::chrono::microseconds(500);

std::atomic<unsigned> fork_generation{0};

unsigned ForkGeneration() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1); });
  (void)registered;
  return fork_generation.load(std::memory_order_relaxed);
}

void Count(std::atomic<int64_t>& counter, int64_t n = 1) {
  // one writer: no read-modify-write needed
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

std::vector<std::unique_ptr<Environment>> MakeMany(const VectorEnv::MakeEnvironment& make,
                                                   int count) {
  std::vector<std::unique_ptr<Environment>> envs;
  for (int i = 0; i < count; ++i) {
    envs.push_back(make());
    envs.back()->Prepare(envs.back()->InitialLayout());
    envs.back()->Adopt();
  }
  return envs;
}

}  // namespace

class VectorEnv::Call {
 public:
  explicit Call(VectorEnv* env) : env_(env) {
    if (env->fork_generation_ != ForkGeneration()) {
      throw UsageError(
          Code::kForked,
          "this vector environment was created before fork(); its threads do not exist "
          "in the child process: create it in the child instead");
    }
    const auto me = std::this_thread::get_id();
    const std::lock_guard lock(env->calls_mutex_);
    if (env->closed_.load()) {
      throw UsageError(Code::kClosed, "the vector environment is closed");
    }
    if (std::find(env->calls_.begin(), env->calls_.end(), me) != env->calls_.end()) {
      throw UsageError(
          Code::kBusy,
          "called from a signal handler while this thread is inside another call of the "
          "same vector environment");
    }
    env->calls_.push_back(me);
  }
  ~Call() {
    const std::lock_guard lock(env_->calls_mutex_);
    env_->calls_.erase(
        std::find(env_->calls_.begin(), env_->calls_.end(), std::this_thread::get_id()));
    if (env_->closed_.load()) env_->calls_changed_->notify_all();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  VectorEnv* env_;
};

class VectorEnv::Exclusive {
 public:
  explicit Exclusive(VectorEnv* env)
      : call_(env), caller_lock_(env->caller_mutex_), rows_lock_(env->rows_mutex_) {}

 private:
  Call call_;
  std::lock_guard<std::mutex> caller_lock_;
  std::lock_guard<std::mutex> rows_lock_;
};

// What a request needs and leaves while its environment is under way, one slot per environment.
struct VectorEnv::AsyncStore {
  AsyncStore(int num_envs, const EnvSpec& spec)
      : requests(static_cast<size_t>(num_envs)),
        results(static_cast<size_t>(num_envs)),
        request(static_cast<size_t>(num_envs)),
        seeds(static_cast<size_t>(num_envs)),
        action_dtypes(static_cast<size_t>(num_envs), DType::kFloat32),
        num_reset_options(spec.reset_options.size()),
        reset_options(static_cast<size_t>(num_envs) * num_reset_options),
        action_stride(static_cast<size_t>(spec.action_size()) * sizeof(double)),
        actions(static_cast<size_t>(num_envs) * action_stride),
        rewards(static_cast<size_t>(num_envs)),
        flags(3 * static_cast<size_t>(num_envs)),
        infos(static_cast<size_t>(num_envs) * static_cast<size_t>(spec.info_size())) {
    views.rewards = rewards.data();
    views.terminations = flags.data();
    views.truncations = flags.data() + num_envs;
    views.kinds = flags.data() + 2 * static_cast<ptrdiff_t>(num_envs);
    double* column = infos.data();
    for (const auto& info : spec.infos) {
      views.columns.push_back({column, DType::kFloat64, info.width()});
      column += static_cast<ptrdiff_t>(num_envs) * info.width();
    }
  }

  IdQueue requests;
  IdQueue results;
  std::vector<Request> request;
  std::vector<std::vector<uint32_t>> seeds;
  std::vector<DType> action_dtypes;
  size_t num_reset_options;
  std::vector<double> reset_options;
  size_t action_stride;
  std::vector<uint8_t> actions;  // float64, float32 or int64 items as sent
  std::vector<double> rewards;
  std::vector<uint8_t> flags;  // terminations, truncations, kinds
  std::vector<double> infos;   // one column after another
  OutputViews views;           // of the above; observations stay in VectorEnv::obs_
};

VectorEnv::VectorEnv(const MakeEnvironment& make, const VectorEnvOptions& options)
    : options_(options),
      num_threads_(std::clamp(options.num_threads, 1, options.num_envs)),
      envs_(MakeMany(make, num_threads_)),
      spec_(envs_[0]->spec()),
      workers_(static_cast<size_t>(num_threads_)),
      store_(options.num_envs, *envs_[0], options.obs_dtype),
      state_bytes_(store_.state_bytes()),
      rules_{options.autoreset_mode, options.max_episode_steps, {}},
      results_changed_(std::make_unique<std::condition_variable>()),
      busy_(static_cast<size_t>(options.num_envs)),
      calls_changed_(std::make_unique<std::condition_variable>()),
      fork_generation_(ForkGeneration()) {
  for (auto& worker : workers_) {
    worker.info.resize(static_cast<size_t>(spec().info_size()));
    worker.obs.resize(static_cast<size_t>(spec().obs_size));
  }
  for (const auto& option : spec().reset_options) rules_.reset_options.push_back(option.fallback);
  if (options.autoreset_mode == AutoresetMode::kSameStep) finals_.resize(busy_.size());
  pool_ = std::make_unique<ThreadPool>(num_threads_, [this](int worker) { Work(worker); });
}

VectorEnv::~VectorEnv() { Close(); }

void VectorEnv::Close() {
  if (fork_generation_ != ForkGeneration()) {
    if (!closed_.exchange(true)) {
      pool_->Abandon();
      // NOLINTNEXTLINE(bugprone-unused-return-value): leaked, see the header
      (void)results_changed_.release(), (void)calls_changed_.release();
    }
    return;
  }
  {
    const std::lock_guard lock(calls_mutex_);
    const auto me = std::this_thread::get_id();
    if (std::find(calls_.begin(), calls_.end(), me) != calls_.end()) {
      throw UsageError(
          Code::kBusy,
          "close() was called from a signal handler while this thread is inside another "
          "call of the same vector environment");
    }
    closed_.store(true);
  }
  {
    const std::lock_guard lock(queue_mutex_);
    if (async_) async_->requests.Clear();
    queued_.store(0);
    results_changed_->notify_all();
  }
  {
    std::unique_lock lock(calls_mutex_);
    calls_changed_->wait(lock, [this] { return calls_.empty(); });
  }
  const std::lock_guard lock(close_mutex_);
  pool_.reset();
}

// ---- running environments ----

void VectorEnv::Work(int worker) {
  while (RunChunk(worker) || (queued_.load() > 0 && RunQueued(worker, kMaxChunk)) ||
         (rolling_.load() && RunRolling(worker))) {
  }
}

std::pair<int, int> VectorEnv::ShareOf(int worker, int batch_size) const {
  const int64_t size = batch_size;
  return {static_cast<int>(size * worker / num_threads_),
          static_cast<int>(size * (worker + 1) / num_threads_)};
}

void VectorEnv::NoteCost(double seconds, size_t num_steps) {
  const double each = seconds / static_cast<double>(num_steps);
  const double before = step_seconds_.load(std::memory_order_relaxed);
  // the first estimate counts in full, later ones smooth out single slow calls
  step_seconds_.store(before == 0.0 ? each : 0.9 * before + 0.1 * each, std::memory_order_relaxed);
}

size_t VectorEnv::CheapChunk() const {
  const double each = step_seconds_.load(std::memory_order_relaxed);
  if (each == 0.0) return 1;
  return static_cast<size_t>(std::clamp(kChunkSeconds / each, 1.0, 1e6));
}

int VectorEnv::ChunksOf(int share) const {
  const auto [begin, end] = ShareOf(share, batch_.size);
  return (end - begin + batch_.chunk - 1) / batch_.chunk;
}

bool VectorEnv::RunChunk(int worker) {
  // first its own share, whose rows are in its cache from the step before, then the others'
  for (int i = 0; i < num_threads_; ++i) {
    if (RunChunkOf(worker, (worker + i) % num_threads_)) return true;
  }
  return false;
}

bool VectorEnv::RunChunkOf(int worker, int share) {
  // Claim by counting down. A worker that comes late, even in the next batch, claims what is
  // unclaimed then: batch_ is only written while nothing is unclaimed and every claim has finished.
  std::atomic<int32_t>& counter = workers_[static_cast<size_t>(share)].unclaimed;
  int32_t unclaimed = counter.load(std::memory_order_acquire);
  do {
    if (unclaimed == 0) return false;
  } while (!counter.compare_exchange_weak(unclaimed, unclaimed - 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire));
  const Batch& batch = batch_;
  const int num_chunks = batch.num_chunks;
  const auto [share_begin, share_end] = ShareOf(share, batch.size);
  const int begin = share_begin + (ChunksOf(share) - unclaimed) * batch.chunk;
  const int end = std::min(begin + batch.chunk, share_end);
  for (int i = begin; i < end; ++i) {
    const int32_t id = batch.ids.empty() ? i : batch.ids[static_cast<size_t>(i)];
    const Job job{batch.request, id,
                  Action(batch.actions.at(static_cast<size_t>(id)), batch.actions.dtype,
                         spec().action_size()),
                  batch.seeds.empty() ? nullptr : &batch.seeds[static_cast<size_t>(i)],
                  batch.reset_options};
    if (!batch.timed) {
      RunAndCatch(worker, job, *batch.out, failures_);
      continue;
    }
    const auto start = Clock::now();
    RunAndCatch(worker, job, *batch.out, failures_);
    float& cost = cost_[static_cast<size_t>(id)];
    cost = 0.5F * cost + 0.5F * static_cast<float>(Seconds(Clock::now() - start));
  }
  if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_chunks) finished_.notify_one();
  return true;
}

bool VectorEnv::RunQueued(int worker, size_t max) {
  int32_t ids[kMaxChunk];
  size_t count = 0;
  {
    const std::lock_guard lock(queue_mutex_);
    if (!async_) return false;
    // a fair share; but so many that they are worth the lock
    const size_t share = async_->requests.size() / (2 * static_cast<size_t>(num_threads_));
    const size_t cheap = std::min(CheapChunk(), kMaxChunk);
    count = async_->requests.Pop(std::clamp(share, cheap, std::max(max, cheap)), ids);
    queued_.store(static_cast<int>(async_->requests.size()));
  }
  if (count == 0) return false;
  const auto start = Clock::now();
  size_t done = 0;
  while (done < count) {
    const auto id = static_cast<size_t>(ids[done]);
    const Job job{
        async_->request[id],
        ids[done],
        Action(async_->actions.data() + id * async_->action_stride, async_->action_dtypes[id],
               spec().action_size()),
        &async_->seeds[id],
        {async_->reset_options.data() + id * async_->num_reset_options, async_->num_reset_options}};
    RunAndCatch(worker, job, async_->views, async_failures_);
    ++done;
    // dearer than they were: others wait for these
    const bool look = done == 1 || done % 4 == 0;
    if (look && done < count && Seconds(Clock::now() - start) > 5 * kChunkSeconds) break;
  }
  NoteCost(Seconds(Clock::now() - start), done);
  const std::lock_guard lock(queue_mutex_);
  for (size_t i = 0; i < done; ++i) async_->results.Push(ids[i]);
  if (done < count && !closed_.load()) {
    for (size_t i = done; i < count; ++i) async_->requests.Push(ids[i]);
    queued_.store(static_cast<int>(async_->requests.size()));
    if (num_threads_ > 1) pool_->Wake();
  }
  arrived_.store(static_cast<int>(async_->results.size()), std::memory_order_release);
  if (receivers_ > 0) results_changed_->notify_all();
  return true;
}

void VectorEnv::RunAndCatch(int worker, const Job& job, const OutputViews& out,
                            std::vector<EnvFailure>& failures) {
  const int32_t id = job.id;
  try {
    RunOne(worker, job, out);
    return;
  } catch (const std::exception& error) {
    const std::lock_guard lock(failures_mutex_);
    failures.push_back({id, error.what()});
  } catch (...) {
    const std::lock_guard lock(failures_mutex_);
    failures.push_back({id, "unknown exception"});
  }
  Count(workers_[static_cast<size_t>(worker)].failures);
  if (out.obs != nullptr) {
    std::memset(static_cast<uint8_t*>(out.obs) + static_cast<size_t>(id) * obs_bytes(), 0,
                obs_bytes());
  }
  out.rewards[id] = 0.0;
  out.terminations[id] = out.truncations[id] = 0;
  out.kinds[id] = kFailed;
  WriteInfo(out, id, nullptr, kNoInfo);
}

void VectorEnv::RunOne(int worker, const Job& job, const OutputViews& out) {
  const int32_t id = job.id;
  Environment& env = *envs_[static_cast<size_t>(worker)];
  Worker& scratch = workers_[static_cast<size_t>(worker)];
  double* info = scratch.info.data();
  const bool reseeded = job.seed != nullptr && !job.seed->empty();

  // on copies: the environment's own data changes only once nothing can throw
  Progress progress = store_.progress(id);
  Transition transition;
  std::unique_ptr<FinalStep> final_step;
  env.Load(store_.row(id));
  if (job.request == Request::kReset) {
    if (reseeded) progress.random = Random(*job.seed);
    env.Reset(progress.random, job.reset_options, info);
    progress = {progress.random, 0.0, 0, 0};
  } else {
    transition = Advance(env, rules_, job.action, progress, info, [&](const Transition& last) {
      if (rules_.autoreset_mode != AutoresetMode::kSameStep) return;
      final_step = std::make_unique<FinalStep>();
      final_step->env_id = id;
      final_step->obs.resize(static_cast<size_t>(spec().obs_size));
      env.Observe(final_step->obs.data());
      final_step->info = scratch.info;
      final_step->kind = last.kind;
    });
  }

  env.Save(store_.row(id));
  store_.Commit(id, progress);
  if (reseeded) store_.SeedPolicy(id, *job.seed);
  StoreObservation(scratch, env, id);

  if (transition.stepped()) Count(scratch.steps);
  if (transition.ended()) Count(scratch.episodes);
  if ((transition.kind & kDiverged) != 0) Count(scratch.diverged);
  if (final_step) finals_[static_cast<size_t>(id)] = std::move(final_step);
  if (out.obs != nullptr) {
    std::memcpy(static_cast<uint8_t*>(out.obs) + static_cast<size_t>(id) * obs_bytes(),
                store_.obs(id), obs_bytes());
  }
  out.rewards[id] = transition.reward;
  out.terminations[id] = transition.terminated ? 1 : 0;
  out.truncations[id] = transition.truncated ? 1 : 0;
  out.kinds[id] = transition.kind;
  WriteInfo(out, id, info, transition.kind);
}

void VectorEnv::StoreObservation(Worker& scratch, Environment& env, int32_t id) {
  if (options_.obs_dtype == DType::kFloat64) {
    env.Observe(reinterpret_cast<double*>(store_.obs(id)));
  } else {
    env.Observe(scratch.obs.data());
    StoreAs(options_.obs_dtype, scratch.obs.data(), spec().obs_size, store_.obs(id));
  }
}

void VectorEnv::WriteInfo(const OutputViews& out, int32_t id, const double* info,
                          uint8_t kind) const {
  size_t offset = 0;
  for (size_t i = 0; i < out.columns.size(); ++i) {
    const InfoColumn& column = out.columns[i];
    const InfoField& field = spec().infos[i];
    const bool present = (kind & kStepInfo) != 0 ||
                         ((kind & kResetInfo) != 0 && field.when == InfoField::When::kAlways);
    const size_t bytes = ItemSize(column.dtype) * static_cast<size_t>(column.width);
    uint8_t* target = static_cast<uint8_t*>(column.data) + static_cast<size_t>(id) * bytes;
    if (present) {
      StoreAs(column.dtype, info + offset, column.width, target);
    } else {
      std::memset(target, 0, bytes);
    }
    offset += static_cast<size_t>(column.width);
  }
}

// ---- barrier calls ----

VectorEnv::Outcome VectorEnv::Reset(std::span<const int32_t> ids, Seeds seeds,
                                    std::span<const double> reset_options, const OutputViews& out,
                                    const Interrupted& interrupted) {
  const Exclusive exclusive(this);
  CheckIds(ids);
  CheckFree({}, "reset");
  Batch batch;
  batch.request = Request::kReset;
  batch.ids = ids;
  batch.seeds = seeds;
  batch.reset_options = reset_options;
  batch.out = &out;
  batch.size = static_cast<int>(ids.size());
  return RunBatch(batch, interrupted);
}

VectorEnv::Outcome VectorEnv::Step(const ActionViews& actions, const OutputViews& out,
                                   const Interrupted& interrupted) {
  const Exclusive exclusive(this);
  CheckFree({}, "step");
  CheckReset("step", store_.Unreset());
  Batch batch;
  batch.actions = actions;
  batch.out = &out;
  batch.size = num_envs();
  if (num_threads_ > 1 && num_envs() <= kOrderedPerThread * num_threads_ &&
      step_seconds_ * num_envs() > kWorthWaking) {
    batch.timed = true;
    batch.ids = ExpensiveFirst();
  }
  return RunBatch(batch, interrupted);
}

// With few environments, what a step costs in time is decided by who finishes last. A step's cost
// follows from the contacts, which last for many steps, so the latest cost foretells the next.
std::span<const int32_t> VectorEnv::ExpensiveFirst() {
  cost_.resize(static_cast<size_t>(num_envs()));
  order_.resize(static_cast<size_t>(num_envs()));
  for (int32_t id = 0; id < num_envs(); ++id) {
    order_[static_cast<size_t>(id)] = id;
    // a reset is cheap
    if ((store_.flags(id) & kAutoreset) != 0) cost_[static_cast<size_t>(id)] = 0.0F;
  }
  for (int worker = 0; worker < num_threads_; ++worker) {
    const auto [begin, end] = ShareOf(worker, num_envs());
    std::sort(order_.begin() + begin, order_.begin() + end, [this](int32_t a, int32_t b) {
      return cost_[static_cast<size_t>(a)] > cost_[static_cast<size_t>(b)];
    });
  }
  return order_;
}

VectorEnv::Outcome VectorEnv::RunBatch(const Batch& batch, const Interrupted& interrupted) {
  Outcome outcome;
  const auto start = Clock::now();
  const double estimate = step_seconds_ * batch.size;
  batch_ = batch;
  const int share = batch.size / (4 * num_threads_);
  batch_.chunk = std::clamp(static_cast<int>(CheapChunk()), 1, std::max(share, 1));
  batch_.num_chunks = 0;
  for (int worker = 0; worker < num_threads_; ++worker) batch_.num_chunks += ChunksOf(worker);
  finished_.store(0, std::memory_order_relaxed);
  for (int worker = 0; worker < num_threads_; ++worker) {
    workers_[static_cast<size_t>(worker)].unclaimed.store(ChunksOf(worker),
                                                          std::memory_order_release);
  }
  if (num_threads_ > 1 && (step_seconds_ == 0.0 || estimate > kWorthWaking)) pool_->Wake();

  auto poll_at = start + kPollInterval;
  int mine = 0;
  int skipped = 0;
  while (RunChunk(0)) {
    ++mine;
    if (Clock::now() < poll_at) continue;
    if (interrupted()) {
      outcome.interrupted = true;
      for (Worker& worker : workers_) {
        skipped += worker.unclaimed.exchange(0, std::memory_order_acq_rel);
      }
      break;
    }
    poll_at = Clock::now() + kPollInterval;
  }
  if (mine > 0) {
    NoteCost(Seconds(Clock::now() - start),
             static_cast<size_t>(mine) * static_cast<size_t>(batch_.chunk));
  }
  // Both sides wait for about a step at the end of a batch: going to sleep for it would cost more.
  const auto step = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(step_seconds_ * batch_.chunk));
  const auto spin = std::clamp<Clock::duration>(2 * step, kSpin, kMaxSpin);
  pool_->set_spin(spin);
  const auto spin_until = Clock::now() + spin;
  const int32_t expected = batch_.num_chunks - skipped;
  int32_t finished = finished_.load(std::memory_order_acquire);
  for (int i = 0; finished < expected; finished = finished_.load(std::memory_order_acquire)) {
    CpuRelax();
    if (++i % 64 == 0 && Clock::now() > spin_until) {
      if (skipped == 0) {
        finished_.wait(finished, std::memory_order_acquire);
      } else {
        std::this_thread::yield();  // nobody reaches num_chunks, so nobody notifies
      }
    }
  }
  if (outcome.interrupted) {
    for (int i = 0; i < batch.size; ++i) {
      store_.MarkNeedsReset(batch.ids.empty() ? i : batch.ids[static_cast<size_t>(i)]);
    }
  }
  if (!finals_.empty() && batch.request == Request::kStep && !outcome.interrupted) {
    for (int id = 0; id < num_envs(); ++id) {
      if ((batch.out->kinds[id] & kFinal) == 0) continue;
      outcome.finals.push_back(std::move(finals_[static_cast<size_t>(id)]));
    }
  }
  outcome.failures.swap(failures_);  // every worker has left the batch
  std::sort(outcome.failures.begin(), outcome.failures.end(),
            [](const EnvFailure& a, const EnvFailure& b) { return a.env_id < b.env_id; });
  return outcome;
}

VectorEnv::RolloutOutcome VectorEnv::RunRollout(const Rollout::Request& request,
                                                const Interrupted& interrupted) {
  const Exclusive exclusive(this);
  CheckFree({}, "rollout");
  CheckReset("rollout", store_.Unreset());
  if (rules_.autoreset_mode == AutoresetMode::kDisabled) {
    throw UsageError(Code::kValue,
                     "rollout: episodes must start by themselves: make the vector environment with "
                     "autoreset_mode='SameStep' or 'NextStep'");
  }
  const auto rollout = std::make_shared<Rollout>(store_, rules_, request, spec(), num_threads_);
  {
    const std::lock_guard lock(rollout_mutex_);
    rollout_ = rollout;
    rolling_.store(true);
  }
  if (num_threads_ > 1) pool_->Wake();

  RolloutOutcome outcome;
  auto poll_at = Clock::now() + kPollInterval;
  while (rollout->RunSome(0, *envs_[0]) || !rollout->WaitFor(kSpin, kPollInterval)) {
    if (Clock::now() < poll_at) continue;
    if (interrupted()) {
      rollout->Stop();
      for (int32_t id = 0; id < num_envs(); ++id) store_.MarkNeedsReset(id);
      outcome.interrupted = true;
      break;
    }
    poll_at = Clock::now() + kPollInterval;
  }
  rolling_.store(false);
  {
    const std::lock_guard lock(rollout_mutex_);
    rollout_.reset();
  }
  outcome.episodes = rollout->TakeEpisodes();
  outcome.failures = rollout->TakeFailures();
  const Rollout::Counts counts = rollout->counts();
  Count(workers_[0].steps, counts.steps);
  Count(workers_[0].episodes, counts.episodes);
  Count(workers_[0].diverged, counts.diverged);
  Count(workers_[0].failures, counts.failures);
  return outcome;
}

bool VectorEnv::RunRolling(int worker) {
  std::shared_ptr<Rollout> rollout;
  {
    const std::lock_guard lock(rollout_mutex_);
    rollout = rollout_;
  }
  return rollout && rollout->RunSome(worker, *envs_[static_cast<size_t>(worker)]);
}

void VectorEnv::CheckIds(std::span<const int32_t> ids) const {
  std::vector<bool> seen(static_cast<size_t>(num_envs()));
  for (const int32_t id : ids) {
    if (id < 0 || id >= num_envs()) {
      throw UsageError(Code::kIndex, "env_ids: expected ids from 0 to " +
                                         std::to_string(num_envs() - 1) + ", got " +
                                         std::to_string(id));
    }
    if (seen[static_cast<size_t>(id)]) {
      throw UsageError(Code::kValue,
                       "env_ids: environment " + std::to_string(id) + " is given twice");
    }
    seen[static_cast<size_t>(id)] = true;
  }
}

void VectorEnv::CheckReset(const char* what, const std::vector<int32_t>& unreset) {
  if (unreset.empty()) return;
  throw UsageError(Code::kResetNeeded, std::string(what) + ": reset environments " +
                                           JoinIds(unreset) +
                                           " first (never reset, ended with autoreset disabled, "
                                           "or interrupted)");
}

void VectorEnv::CheckFree(std::span<const int32_t> ids, const char* what) {
  if (in_flight_.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(queue_mutex_);
  std::vector<int32_t> busy;
  const auto check = [&](size_t id) {
    if (busy_[id] != 0) busy.push_back(static_cast<int32_t>(id));
  };
  if (ids.empty()) {
    for (size_t i = 0; i < busy_.size(); ++i) check(i);
  } else {
    for (const int32_t id : ids) check(static_cast<size_t>(id));
  }
  if (!busy.empty()) {
    throw UsageError(Code::kBusy, std::string(what) + ": environments " + JoinIds(busy) +
                                      " have been sent and not received; call recv() first");
  }
}

// ---- asynchronous calls ----

void VectorEnv::Send(std::span<const int32_t> ids, const ActionViews& actions) {
  const Call call(this);
  Enqueue(ids, Request::kStep, &actions, {}, {});
}

void VectorEnv::SendReset(std::span<const int32_t> ids, Seeds seeds,
                          std::span<const double> reset_options) {
  const Call call(this);
  Enqueue(ids, Request::kReset, nullptr, seeds, reset_options);
}

void VectorEnv::Enqueue(std::span<const int32_t> ids, Request request, const ActionViews* actions,
                        Seeds seeds, std::span<const double> reset_options) {
  CheckIds(ids);
  {
    const std::lock_guard rows_lock(rows_mutex_);
    const std::lock_guard lock(queue_mutex_);
    std::vector<int32_t> busy;
    for (const int32_t id : ids) {
      if (busy_[static_cast<size_t>(id)] != 0) busy.push_back(id);
    }
    if (!busy.empty()) {
      throw UsageError(Code::kBusy, "send: environments " + JoinIds(busy) +
                                        " have been sent and not received; call recv() first");
    }
    if (request == Request::kStep) CheckReset("send", store_.Unreset(ids));
    if (!async_) async_ = std::make_unique<AsyncStore>(num_envs(), spec());
    AsyncStore& store = *async_;
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto index = static_cast<size_t>(ids[i]);
      if (actions != nullptr) {
        std::memcpy(store.actions.data() + index * store.action_stride, actions->at(i),
                    static_cast<size_t>(spec().action_size()) * ItemSize(actions->dtype));
      }
      if (actions != nullptr) store.action_dtypes[index] = actions->dtype;
      store.seeds[index] = seeds.empty() ? std::vector<uint32_t>() : seeds[i];
      if (request == Request::kReset) {
        std::copy(
            reset_options.begin(), reset_options.end(),
            store.reset_options.begin() + static_cast<ptrdiff_t>(index * store.num_reset_options));
      }
      store.request[index] = request;
      busy_[index] = 1;
      store.requests.Push(ids[i]);
    }
    in_flight_.fetch_add(static_cast<int>(ids.size()));
    pending_ += static_cast<int>(ids.size());
    queued_.store(static_cast<int>(store.requests.size()));
  }
  // so little that recv has done it before a helper is awake?
  const double estimate = step_seconds_.load() * queued_.load();
  if (num_threads_ > 1 && (estimate == 0.0 || estimate > kWorthWaking)) pool_->Wake();
}

VectorEnv::Ready VectorEnv::Wait(int min_envs, int max_envs, std::optional<double> timeout_seconds,
                                 const Interrupted& interrupted) {
  const Call call(this);
  // whoever gets worker 0's environment helps; another receiver only waits, unless the first leaves
  std::unique_lock worker_lock(caller_mutex_, std::try_to_lock);
  Ready ready;
  const auto start = Clock::now();
  const auto deadline =
      timeout_seconds ? start + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(std::min(*timeout_seconds, 1e8)))
                      : Clock::time_point::max();
  auto poll_at = start + kPollInterval;
  std::unique_lock lock(queue_mutex_);
  size_t wanted = 1;
  size_t chunk = 1;  // environments to run before looking up; as many as take a millisecond
  while (true) {
    if (closed_.load()) throw UsageError(Code::kClosed, "the vector environment is closed");
    if (pending_ == 0) {
      throw UsageError(Code::kNothingPending,
                       "recv: nothing has been sent; call send() or async_reset() first");
    }
    wanted = static_cast<size_t>(min_envs > 0 ? std::min(min_envs, pending_) : pending_);
    const size_t there = async_->results.size();
    const auto now = Clock::now();
    if (there >= wanted || (there > 0 && now >= deadline)) break;
    if (now >= poll_at) {
      lock.unlock();
      if (interrupted()) {
        ready.interrupted = true;
        return ready;
      }
      poll_at = Clock::now() + kPollInterval;
      lock.lock();
      continue;
    }
    if (async_->requests.size() > 0 && (worker_lock.owns_lock() || worker_lock.try_lock())) {
      lock.unlock();
      // with a deadline or a few missing results, look up after every environment
      const bool hurry = timeout_seconds.has_value() || wanted - there < kMaxChunk;
      RunQueued(0, hurry ? 1 : chunk);
      const bool quick = Clock::now() - now < std::chrono::milliseconds(1);
      chunk = quick ? std::min(2 * chunk, kMaxChunk) : 1;
      lock.lock();
      continue;
    }
    // the missing results are on other threads: spin for a step's time, then sleep
    lock.unlock();
    const auto spin_until = std::min(now + kSpin, deadline);
    while (static_cast<size_t>(arrived_.load(std::memory_order_acquire)) < wanted &&
           Clock::now() < spin_until) {
      CpuRelax();
    }
    lock.lock();
    if (async_->results.size() < wanted && !closed_.load() &&
        !(worker_lock.owns_lock() && async_->requests.size() > 0)) {
      ++receivers_;
      const auto until = async_->results.size() > 0 ? std::min(poll_at, deadline) : poll_at;
      results_changed_->wait_until(lock, until);
      --receivers_;
    }
  }
  size_t count = async_->results.size();
  if (max_envs > 0) count = std::min(count, static_cast<size_t>(max_envs));
  ready.ids.resize(count);
  async_->results.Pop(count, ready.ids.data());
  pending_ -= static_cast<int>(count);
  if (receivers_ > 0) results_changed_->notify_all();  // the others may now be waiting for less
  arrived_.store(static_cast<int>(async_->results.size()), std::memory_order_release);

  // take out those that failed: they have no results and are free again
  const std::lock_guard failures_lock(failures_mutex_);
  std::erase_if(ready.ids, [&](int32_t id) {
    if (async_->views.kinds[id] != kFailed) return false;
    const auto failure = std::find_if(async_failures_.begin(), async_failures_.end(),
                                      [id](const EnvFailure& f) { return f.env_id == id; });
    ready.failures.push_back(std::move(*failure));
    async_failures_.erase(failure);
    busy_[static_cast<size_t>(id)] = 0;
    in_flight_.fetch_sub(1);
    return true;
  });
  for (const int32_t id : ready.ids) {
    if (async_->action_dtypes[static_cast<size_t>(id)] == DType::kFloat64) {
      ready.action_dtype = DType::kFloat64;
    }
  }
  return ready;
}

std::vector<std::unique_ptr<FinalStep>> VectorEnv::Gather(std::span<const int32_t> ids,
                                                          const OutputViews& out) {
  const Call call(this);
  std::vector<std::unique_ptr<FinalStep>> finals;
  const OutputViews& from = async_->views;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int32_t id = ids[i];
    std::memcpy(static_cast<uint8_t*>(out.obs) + i * obs_bytes(), store_.obs(id), obs_bytes());
    out.rewards[i] = from.rewards[id];
    out.terminations[i] = from.terminations[id];
    out.truncations[i] = from.truncations[id];
    out.kinds[i] = from.kinds[id];
    if ((from.kinds[id] & kFinal) != 0) {
      finals.push_back(std::move(finals_[static_cast<size_t>(id)]));
    }
    for (size_t k = 0; k < out.columns.size(); ++k) {
      const InfoColumn& to = out.columns[k];
      const auto width = static_cast<size_t>(to.width);
      StoreAs(to.dtype,
              static_cast<const double*>(from.columns[k].data) + static_cast<size_t>(id) * width,
              to.width, static_cast<uint8_t*>(to.data) + i * width * ItemSize(to.dtype));
    }
  }
  const std::lock_guard lock(queue_mutex_);
  for (const int32_t id : ids) busy_[static_cast<size_t>(id)] = 0;
  in_flight_.fetch_sub(static_cast<int>(ids.size()));
  return finals;
}

// ---- state ----

bool VectorEnv::GetState(std::span<const int32_t> ids, std::span<uint8_t> states) {
  const Exclusive exclusive(this);
  CheckIds(ids);
  CheckFree(ids, "get_state");
  const size_t bytes = store_.state_bytes();
  if (states.size() != ids.size() * bytes) return false;
  const uint64_t fingerprint = store_.Fingerprint(options_.identity);
  for (size_t i = 0; i < ids.size(); ++i) {
    store_.GetState(ids[i], fingerprint, states.data() + i * bytes);
  }
  return true;
}

void VectorEnv::SetState(std::span<const int32_t> ids, std::span<const uint8_t> states) {
  const Exclusive exclusive(this);
  CheckIds(ids);
  CheckFree(ids, "set_state");
  const size_t bytes = store_.state_bytes();
  if (states.size() != ids.size() * bytes) {
    throw UsageError(Code::kValue, "state: expected " + std::to_string(bytes) +
                                       " bytes for each of " + std::to_string(ids.size()) +
                                       " environments, got " + std::to_string(states.size()) +
                                       " in all");
  }
  const uint64_t expected = store_.Fingerprint(options_.identity);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (EnvStore::FingerprintOf(states.data() + i * bytes) != expected) {
      throw UsageError(Code::kValue,
                       "state: row " + std::to_string(i) +
                           ": expected a state of such an environment (same id, arguments, "
                           "autoreset_mode, obs_dtype and model fields)");
    }
  }
  for (size_t i = 0; i < ids.size(); ++i) store_.SetState(ids[i], states.data() + i * bytes);
}

void VectorEnv::Seed(Seeds seeds) {
  const Exclusive exclusive(this);
  CheckFree({}, "seed");
  for (size_t i = 0; i < seeds.size(); ++i) store_.Seed(static_cast<int32_t>(i), seeds[i]);
}

void VectorEnv::CopyObservations(void* obs) {
  const Exclusive exclusive(this);
  CheckFree({}, "reset");
  std::memcpy(obs, store_.all_obs().data(), store_.all_obs().size());
}

void VectorEnv::SetTasks(std::span<const int32_t> ids, const double* tasks) {
  const Exclusive exclusive(this);
  CheckIds(ids);
  CheckFree(ids, "reset_task");
  for (const int32_t id : ids) {
    std::copy_n(tasks, spec().task_size(), store_.row(id) + store_.layout().task().offset);
    tasks += spec().task_size();
  }
}

void VectorEnv::GetTasks(std::span<const int32_t> ids, double* tasks) {
  const Exclusive exclusive(this);
  CheckIds(ids);
  for (const int32_t id : ids) {
    tasks = std::copy_n(store_.row(id) + store_.layout().task().offset, spec().task_size(), tasks);
  }
}

void VectorEnv::CheckUsable(std::span<const int32_t> ids, const char* what) {
  const Call call(this);
  CheckIds(ids);
  CheckFree(ids, what);
}

RowField VectorEnv::AddField(const std::string& name) {
  const Exclusive exclusive(this);
  if (const RowField* known = store_.layout().Find(name)) return *known;
  CheckFree({}, "set_model_field");
  const RowLayout layout = store_.layout().With(envs_[0]->DescribeField(name));
  RowField added = layout.added().back();
  for (const auto& env : envs_) env->Prepare(layout);
  EnvStore::Rows rows = store_.Widened(layout);
  // from here on nothing can fail
  for (const auto& env : envs_) env->Adopt();
  store_.Adopt(std::move(rows));
  state_bytes_.store(store_.state_bytes());
  return added;
}

RowField VectorEnv::DescribeField(const std::string& name) {
  const Exclusive exclusive(this);
  if (const RowField* known = store_.layout().Find(name)) return *known;
  return envs_[0]->DescribeField(name);
}

void VectorEnv::SetField(const RowField& field, std::span<const int32_t> ids,
                         const double* values) {
  const Exclusive exclusive(this);
  CheckIds(ids);
  CheckFree(ids, "set_model_field");
  for (const int32_t id : ids) {
    std::copy_n(values, field.size(), store_.row(id) + field.offset);
    values += field.size();
  }
}

std::vector<double> VectorEnv::GetField(const std::string& name) {
  const Exclusive exclusive(this);
  const RowField* added = store_.layout().Find(name);
  std::vector<double> defaults;
  if (added == nullptr) defaults = envs_[0]->DescribeField(name).defaults;
  std::vector<double> values;
  for (int32_t id = 0; id < num_envs(); ++id) {
    const double* from = added != nullptr ? store_.row(id) + added->offset : defaults.data();
    const size_t size = added != nullptr ? added->size() : defaults.size();
    values.insert(values.end(), from, from + size);
  }
  return values;
}

VectorEnv::RowCopy VectorEnv::CopyRow(int32_t id) {
  const Exclusive exclusive(this);
  const int32_t ids[] = {id};
  CheckIds(ids);
  CheckFree(ids, "render");
  const double* row = store_.row(id);
  return {{row, row + store_.layout().size()}, store_.layout().added()};
}

std::array<uint64_t, 4> VectorEnv::RandomState(int32_t id) {
  const Exclusive exclusive(this);
  const int32_t ids[] = {id};
  CheckIds(ids);
  CheckFree(ids, "np_random");
  return store_.progress(id).random.state_words();
}

Stats VectorEnv::stats() const {
  Stats stats;
  for (const Worker& worker : workers_) {
    stats.steps += worker.steps.load(std::memory_order_relaxed);
    stats.episodes += worker.episodes.load(std::memory_order_relaxed);
    stats.diverged += worker.diverged.load(std::memory_order_relaxed);
    stats.failures += worker.failures.load(std::memory_order_relaxed);
  }
  return stats;
}

}  // namespace pyfastenv
