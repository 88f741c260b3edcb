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

void Count(std::atomic<int64_t>& counter) {
  // one writer: no read-modify-write needed
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
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
    std::lock_guard lock(env->calls_mutex_);
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
    std::lock_guard lock(env_->calls_mutex_);
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
      workers_(static_cast<size_t>(num_threads_)),
      random_(static_cast<size_t>(options.num_envs)),
      elapsed_(static_cast<size_t>(options.num_envs)),
      flags_(static_cast<size_t>(options.num_envs), kNeedsReset),
      results_changed_(std::make_unique<std::condition_variable>()),
      busy_(static_cast<size_t>(options.num_envs)),
      calls_changed_(std::make_unique<std::condition_variable>()),
      fork_generation_(ForkGeneration()) {
  for (int i = 0; i < num_threads_; ++i) envs_.push_back(make());
  const auto num_envs = static_cast<size_t>(options.num_envs);
  stride_ = static_cast<size_t>(spec().state_size);
  obs_bytes_ = static_cast<size_t>(spec().obs_size) * ItemSize(options.obs_dtype);
  for (auto& worker : workers_) {
    worker.info.resize(static_cast<size_t>(spec().info_size()));
    worker.obs.resize(static_cast<size_t>(spec().obs_size));
  }
  for (const auto& option : spec().reset_options) default_options_.push_back(option.fallback);
  const std::vector<double> row = envs_[0]->InitialRow();
  rows_.resize(num_envs * stride_);
  for (size_t i = 0; i < num_envs; ++i) std::copy(row.begin(), row.end(), &rows_[i * stride_]);
  obs_.resize(num_envs * obs_bytes_);
  if (options.autoreset_mode == AutoresetMode::kSameStep) finals_.resize(num_envs);
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
    std::unique_lock lock(calls_mutex_);
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
    std::lock_guard lock(queue_mutex_);
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
  while (RunChunk(worker) || (queued_.load() > 0 && RunQueued(worker, kMaxChunk))) {
  }
}

std::pair<int, int> VectorEnv::ShareOf(int worker, int batch_size) const {
  const int64_t size = batch_size;
  return {static_cast<int>(size * worker / num_threads_),
          static_cast<int>(size * (worker + 1) / num_threads_)};
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
  const int share_chunks = (share_end - share_begin + batch.chunk - 1) / batch.chunk;
  const int begin = share_begin + (share_chunks - unclaimed) * batch.chunk;
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
    std::lock_guard lock(queue_mutex_);
    if (!async_) return false;
    const size_t share = async_->requests.size() / (2 * static_cast<size_t>(num_threads_));
    count = async_->requests.Pop(std::clamp<size_t>(share, 1, max), ids);
    queued_.store(static_cast<int>(async_->requests.size()));
  }
  if (count == 0) return false;
  for (size_t i = 0; i < count; ++i) {
    const auto id = static_cast<size_t>(ids[i]);
    const Job job{
        async_->request[id],
        ids[i],
        Action(async_->actions.data() + id * async_->action_stride, async_->action_dtypes[id],
               spec().action_size()),
        &async_->seeds[id],
        {async_->reset_options.data() + id * async_->num_reset_options, async_->num_reset_options}};
    RunAndCatch(worker, job, async_->views, async_failures_);
  }
  std::lock_guard lock(queue_mutex_);
  for (size_t i = 0; i < count; ++i) async_->results.Push(ids[i]);
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
    std::lock_guard lock(failures_mutex_);
    failures.push_back({id, error.what()});
  } catch (...) {
    std::lock_guard lock(failures_mutex_);
    failures.push_back({id, "unknown exception"});
  }
  Count(workers_[static_cast<size_t>(worker)].failures);
  if (out.obs != nullptr) {
    std::memset(static_cast<uint8_t*>(out.obs) + static_cast<size_t>(id) * obs_bytes_, 0,
                obs_bytes_);
  }
  out.rewards[id] = 0.0;
  out.terminations[id] = out.truncations[id] = 0;
  out.kinds[id] = kFailed;
  WriteInfo(out, id, nullptr, kNoInfo);
}

void VectorEnv::RunOne(int worker, const Job& job, const OutputViews& out) {
  const int32_t id = job.id;
  const auto index = static_cast<size_t>(id);
  Environment& env = *envs_[static_cast<size_t>(worker)];
  Worker& scratch = workers_[static_cast<size_t>(worker)];
  double* info = scratch.info.data();
  StepResult result;
  bool truncated = false;
  uint8_t kind = kResetInfo;

  // everything below works on copies; the environment's own data changes only once nothing can
  // throw
  Random random = random_[index];
  int32_t elapsed = elapsed_[index];
  uint8_t flags = flags_[index];
  std::unique_ptr<FinalStep> final_step;

  env.Load(Row(id));
  if (job.request == Request::kReset) {
    if (job.seed != nullptr && !job.seed->empty()) random = Random(*job.seed);
    env.Reset(random, job.reset_options, info);
    elapsed = 0;
    flags = 0;
  } else if ((flags & kAutoreset) != 0) {
    env.Reset(random, default_options_, info);
    elapsed = 0;
    flags = 0;
  } else {
    result = env.Step(job.action, info);
    ++elapsed;
    truncated = options_.max_episode_steps > 0 && elapsed >= options_.max_episode_steps;
    kind = result.diverged ? kResetInfo : kStepInfo;
    if (result.terminated || truncated) {
      switch (options_.autoreset_mode) {
        case AutoresetMode::kNextStep:
          flags = kAutoreset;
          break;
        case AutoresetMode::kDisabled:
          flags = kNeedsReset;
          break;
        case AutoresetMode::kSameStep:
          final_step = std::make_unique<FinalStep>();
          final_step->env_id = id;
          final_step->obs.resize(static_cast<size_t>(spec().obs_size));
          env.Observe(final_step->obs.data());
          final_step->info = scratch.info;
          final_step->kind = kind;
          env.Reset(random, default_options_, info);
          elapsed = 0;
          kind = kResetInfo | kFinal;
          break;
      }
    }
    if (result.diverged) kind |= kDiverged;
  }

  env.Save(Row(id));
  random_[index] = random;
  elapsed_[index] = elapsed;
  flags_[index] = flags;
  StoreObservation(scratch, env, id);

  if ((kind & (kStepInfo | kFinal | kDiverged)) != 0) {
    Count(scratch.steps);
    if (result.terminated || truncated) Count(scratch.episodes);
    if (result.diverged) Count(scratch.diverged);
  }
  if (final_step) finals_[index] = std::move(final_step);
  if (out.obs != nullptr) {
    std::memcpy(static_cast<uint8_t*>(out.obs) + static_cast<size_t>(id) * obs_bytes_, Obs(id),
                obs_bytes_);
  }
  out.rewards[id] = result.reward;
  out.terminations[id] = result.terminated ? 1 : 0;
  out.truncations[id] = truncated ? 1 : 0;
  out.kinds[id] = kind;
  WriteInfo(out, id, info, kind);
}

void VectorEnv::StoreObservation(Worker& scratch, Environment& env, int32_t id) {
  if (options_.obs_dtype == DType::kFloat64) {
    env.Observe(reinterpret_cast<double*>(Obs(id)));
  } else {
    env.Observe(scratch.obs.data());
    StoreAs(options_.obs_dtype, scratch.obs.data(), spec().obs_size, Obs(id));
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
  const auto needs_reset = [](uint8_t flags) { return (flags & kNeedsReset) != 0; };
  if (std::any_of(flags_.begin(), flags_.end(), needs_reset)) {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < flags_.size(); ++i) {
      if (needs_reset(flags_[i])) ids.push_back(static_cast<int32_t>(i));
    }
    throw UsageError(Code::kResetNeeded, "step: reset environments " + JoinIds(ids) +
                                             " first (never reset, ended with autoreset disabled, "
                                             "or interrupted)");
  }
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
    if ((flags_[static_cast<size_t>(id)] & kAutoreset) != 0) cost_[static_cast<size_t>(id)] = 0.0F;
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
  const double chunk = step_seconds_ > 0.0 ? kChunkSeconds / step_seconds_ : 1.0;
  const int share = batch.size / (4 * num_threads_);
  batch_.chunk = std::clamp(static_cast<int>(std::min(chunk, 1e6)), 1, std::max(share, 1));
  const auto chunks_of = [&](int worker) {
    const auto [begin, end] = ShareOf(worker, batch.size);
    return (end - begin + batch_.chunk - 1) / batch_.chunk;
  };
  batch_.num_chunks = 0;
  for (int worker = 0; worker < num_threads_; ++worker) batch_.num_chunks += chunks_of(worker);
  finished_.store(0, std::memory_order_relaxed);
  for (int worker = 0; worker < num_threads_; ++worker) {
    workers_[static_cast<size_t>(worker)].unclaimed.store(chunks_of(worker),
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
    // the first estimate counts in full, later ones smooth out single slow calls
    const double seconds = Seconds(Clock::now() - start) / (mine * batch_.chunk);
    step_seconds_ = step_seconds_ == 0.0 ? seconds : 0.9 * step_seconds_ + 0.1 * seconds;
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
      flags_[static_cast<size_t>(batch.ids.empty() ? i : batch.ids[static_cast<size_t>(i)])] |=
          kNeedsReset;
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

void VectorEnv::CheckFree(std::span<const int32_t> ids, const char* what) {
  if (in_flight_.load(std::memory_order_acquire) == 0) return;
  std::lock_guard lock(queue_mutex_);
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
  Call call(this);
  Enqueue(ids, Request::kStep, &actions, {}, {});
}

void VectorEnv::SendReset(std::span<const int32_t> ids, Seeds seeds,
                          std::span<const double> reset_options) {
  Call call(this);
  Enqueue(ids, Request::kReset, nullptr, seeds, reset_options);
}

void VectorEnv::Enqueue(std::span<const int32_t> ids, Request request, const ActionViews* actions,
                        Seeds seeds, std::span<const double> reset_options) {
  CheckIds(ids);
  {
    const std::lock_guard rows_lock(rows_mutex_);
    std::lock_guard lock(queue_mutex_);
    std::vector<int32_t> busy;
    std::vector<int32_t> unreset;
    for (const int32_t id : ids) {
      const auto index = static_cast<size_t>(id);
      if (busy_[index] != 0) {
        busy.push_back(id);
      } else if (request == Request::kStep && (flags_[index] & kNeedsReset) != 0) {
        unreset.push_back(id);
      }
    }
    if (!busy.empty()) {
      throw UsageError(Code::kBusy, "send: environments " + JoinIds(busy) +
                                        " have been sent and not received; call recv() first");
    }
    if (!unreset.empty()) {
      throw UsageError(Code::kResetNeeded,
                       "send: reset environments " + JoinIds(unreset) +
                           " first (never reset, ended with autoreset disabled, "
                           "or interrupted)");
    }
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
  if (num_threads_ > 1) pool_->Wake();
}

VectorEnv::Ready VectorEnv::Wait(int min_envs, int max_envs, std::optional<double> timeout_seconds,
                                 const Interrupted& interrupted) {
  Call call(this);
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
  std::lock_guard failures_lock(failures_mutex_);
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
  Call call(this);
  std::vector<std::unique_ptr<FinalStep>> finals;
  const OutputViews& from = async_->views;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int32_t id = ids[i];
    std::memcpy(static_cast<uint8_t*>(out.obs) + i * obs_bytes_, Obs(id), obs_bytes_);
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
  std::lock_guard lock(queue_mutex_);
  for (const int32_t id : ids) busy_[static_cast<size_t>(id)] = 0;
  in_flight_.fetch_sub(static_cast<int>(ids.size()));
  return finals;
}

// ---- state ----

namespace {

// A snapshot: this header, the row, the observation.
struct StateHeader {
  uint64_t fingerprint;
  Random random;
  int32_t elapsed;
  uint8_t flags;
  uint8_t padding[3];
};

uint64_t Fnv1a(uint64_t hash, const void* data, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace

uint64_t VectorEnv::Fingerprint() const {
  constexpr uint32_t kStateVersion = 1;
  uint64_t hash = Fnv1a(0xcbf29ce484222325ULL, &kStateVersion, sizeof(kStateVersion));
  const int sizes[] = {spec().obs_size, spec().action_size(), spec().state_size, spec().task_offset,
                       static_cast<int>(options_.obs_dtype)};
  hash = Fnv1a(hash, sizes, sizeof(sizes));
  hash = Fnv1a(hash, options_.identity.data(), options_.identity.size());
  for (const auto& [name, slot] : fields_) hash = Fnv1a(hash, name.data(), name.size());
  return hash;
}

size_t VectorEnv::state_bytes() const {
  return sizeof(StateHeader) + stride_ * sizeof(double) + obs_bytes_;
}

void VectorEnv::GetState(std::span<const int32_t> ids, uint8_t* states) {
  const Exclusive exclusive(this);
  CheckIds(ids);
  CheckFree(ids, "get_state");
  for (const int32_t id : ids) {
    const auto index = static_cast<size_t>(id);
    const StateHeader header{Fingerprint(), random_[index], elapsed_[index], flags_[index], {}};
    std::memcpy(states, &header, sizeof(header));
    states += sizeof(header);
    std::memcpy(states, Row(id), stride_ * sizeof(double));
    states += stride_ * sizeof(double);
    std::memcpy(states, Obs(id), obs_bytes_);
    states += obs_bytes_;
  }
}

void VectorEnv::SetState(std::span<const int32_t> ids, const uint8_t* states) {
  const Exclusive exclusive(this);
  CheckIds(ids);
  CheckFree(ids, "set_state");
  const uint64_t expected = Fingerprint();
  for (size_t i = 0; i < ids.size(); ++i) {
    uint64_t fingerprint = 0;
    std::memcpy(&fingerprint, states + i * state_bytes(), sizeof(fingerprint));
    if (fingerprint != expected) {
      throw UsageError(Code::kValue,
                       "state: row " + std::to_string(i) +
                           ": expected a state of such an environment (same id, arguments, "
                           "autoreset_mode, obs_dtype and model fields)");
    }
  }
  for (const int32_t id : ids) {
    const auto index = static_cast<size_t>(id);
    StateHeader header;
    std::memcpy(&header, states, sizeof(header));
    states += sizeof(header);
    random_[index] = header.random;
    elapsed_[index] = header.elapsed;
    flags_[index] = header.flags;
    std::memcpy(Row(id), states, stride_ * sizeof(double));
    states += stride_ * sizeof(double);
    std::memcpy(Obs(id), states, obs_bytes_);
    states += obs_bytes_;
  }
}

void VectorEnv::Seed(Seeds seeds) {
  const Exclusive exclusive(this);
  CheckFree({}, "seed");
  for (size_t i = 0; i < seeds.size(); ++i) random_[i] = Random(seeds[i]);
}

void VectorEnv::CopyObservations(void* obs) {
  const Exclusive exclusive(this);
  CheckFree({}, "reset");
  std::memcpy(obs, obs_.data(), obs_.size());
}

void VectorEnv::SetTasks(std::span<const int32_t> ids, const double* tasks) {
  const Exclusive exclusive(this);
  CheckIds(ids);
  CheckFree(ids, "reset_task");
  for (const int32_t id : ids) {
    std::copy_n(tasks, spec().task_size(), Row(id) + spec().task_offset);
    tasks += spec().task_size();
  }
}

void VectorEnv::GetTasks(std::span<const int32_t> ids, double* tasks) {
  const Exclusive exclusive(this);
  CheckIds(ids);
  for (const int32_t id : ids) {
    tasks = std::copy_n(Row(id) + spec().task_offset, spec().task_size(), tasks);
  }
}

void VectorEnv::CheckUsable(std::span<const int32_t> ids, const char* what) {
  Call call(this);
  CheckIds(ids);
  CheckFree(ids, what);
}

FieldSlot VectorEnv::AddField(const std::string& name) {
  const Exclusive exclusive(this);
  for (const auto& [known, slot] : fields_) {
    if (known == name) return slot;
  }
  CheckFree({}, "set_model_field");
  const FieldSlot slot = envs_[0]->DescribeField(name);
  for (const auto& env : envs_) env->AddField(name);
  const size_t stride = stride_ + slot.defaults.size();
  std::vector<double> rows(static_cast<size_t>(num_envs()) * stride);
  for (size_t i = 0; i < static_cast<size_t>(num_envs()); ++i) {
    std::copy_n(&rows_[i * stride_], stride_, &rows[i * stride]);
    std::copy(slot.defaults.begin(), slot.defaults.end(), &rows[i * stride + stride_]);
  }
  rows_.swap(rows);
  stride_ = stride;
  fields_.emplace_back(name, slot);
  return slot;
}

FieldSlot VectorEnv::DescribeField(const std::string& name) {
  const Exclusive exclusive(this);
  for (const auto& [known, slot] : fields_) {
    if (known == name) return slot;
  }
  return envs_[0]->DescribeField(name);
}

bool VectorEnv::HasField(const std::string& name) {
  const Exclusive exclusive(this);
  return std::any_of(fields_.begin(), fields_.end(),
                     [&](const auto& item) { return item.first == name; });
}

void VectorEnv::SetField(const FieldSlot& slot, std::span<const int32_t> ids,
                         const double* values) {
  const Exclusive exclusive(this);
  CheckIds(ids);
  CheckFree(ids, "set_model_field");
  for (const int32_t id : ids) {
    std::copy_n(values, slot.defaults.size(), Row(id) + slot.offset);
    values += slot.defaults.size();
  }
}

void VectorEnv::GetField(const FieldSlot& slot, std::span<const int32_t> ids, double* values) {
  const Exclusive exclusive(this);
  CheckIds(ids);
  for (const int32_t id : ids) {
    values = std::copy_n(Row(id) + slot.offset, slot.defaults.size(), values);
  }
}

void VectorEnv::CopyRow(int32_t id, double* row) {
  const Exclusive exclusive(this);
  const int32_t ids[] = {id};
  CheckIds(ids);
  CheckFree(ids, "render");
  std::copy_n(Row(id), stride_, row);
}

std::array<uint64_t, 4> VectorEnv::RandomState(int32_t id) {
  const Exclusive exclusive(this);
  const int32_t ids[] = {id};
  CheckIds(ids);
  CheckFree(ids, "np_random");
  return random_[static_cast<size_t>(id)].state_words();
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
