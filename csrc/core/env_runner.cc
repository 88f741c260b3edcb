#include "core/env_runner.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace pyfastenv {

namespace {

std::vector<std::unique_ptr<Environment>> MakeMany(const MakeEnvironment& make, int count) {
  std::vector<std::unique_ptr<Environment>> envs;
  for (int i = 0; i < count; ++i) {
    envs.push_back(make());
  }
  return envs;
}

std::vector<std::unique_ptr<FrameSource>> MakeSources(const MakeFrameSource& make, int count) {
  std::vector<std::unique_ptr<FrameSource>> sources;
  for (int i = 0; make && i < count; ++i) sources.push_back(make());
  return sources;
}

void Increase(std::atomic<int64_t>& counter, int64_t n) {
  // one writer: no read-modify-write needed
  if (n != 0) counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}  // namespace

EnvRunner::EnvRunner(const MakeEnvironment& make, const MakeFrameSource& make_frames,
                     int num_workers)
    : envs_(MakeMany(make, num_workers)),
      frames_(MakeSources(make_frames, num_workers)),
      spec_(envs_[0]->spec()),
      workers_(static_cast<size_t>(num_workers)) {
  for (auto& worker : workers_) {
    worker.info.resize(static_cast<size_t>(spec().info_size()));
    worker.obs.resize(static_cast<size_t>(spec().obs_size));
  }
  const RowLayout layout = envs_[0]->InitialLayout();
  Prepare(layout);
  Adopt(layout);
}

void EnvRunner::Prepare(const RowLayout& layout) {
  for (const auto& env : envs_) env->Prepare(layout);
  for (const auto& source : frames_) source->Prepare(layout);
  if (frames_.empty()) return;
  for (auto& worker : workers_) worker.row.reserve(static_cast<size_t>(layout.size()));
}

void EnvRunner::Adopt(const RowLayout& layout) noexcept {
  for (const auto& env : envs_) env->Adopt();
  for (const auto& source : frames_) source->Adopt(layout);
}

void EnvRunner::Attach(EnvStore* store, const EpisodeRules* rules) {
  store_ = store;
  rules_ = rules;
  if (rules->autoreset_mode == AutoresetMode::kSameStep) {
    finals_.resize(static_cast<size_t>(store->num_envs()));
  }
  if (frames_.empty()) return;
  for (auto& worker : workers_) worker.frame.resize(store->obs_layout().frames.frame_bytes());
}

void EnvRunner::Run(int worker, const Job& job, const OutputViews& out,
                    FailureList& failures) noexcept {
  try {
    RunOrThrow(worker, job, out);
  } catch (...) {
    failures.AddCurrentException(job.id);
    Count(worker, {.failures = 1});
    WriteFailed(job.id, out);
  }
}

void EnvRunner::RunGroup(int worker, std::span<const Job> jobs, const OutputViews& out,
                         FailureList& failures, GroupOrder* order) noexcept {
  if (prepares()) {
    ComingStep coming[kMaxGroup];
    int32_t ids[kMaxGroup];
    size_t count = 0;
    for (const Job& job : jobs) {
      const bool resets =
          job.kind == Job::Kind::kReset || (store_->flags(job.id) & kAutoreset) != 0;
      if (resets) continue;
      ids[count] = job.id;
      coming[count++] = {store_->row(job.id), job.action};
    }
    environment(worker).PrepareSteps({coming, count});
    for (size_t i = 0; order != nullptr && i < count; ++i) {
      order->Note(ids[i], coming[i].num_rows);
    }
  }
  for (const Job& job : jobs) Run(worker, job, out, failures);
}

EngineReport EnvRunner::engine() const {
  EngineReport sum = envs_[0]->engine();
  for (size_t i = 1; i < envs_.size(); ++i) {
    const EngineReport report = envs_[i]->engine();
    sum.lane_steps += report.lane_steps;
    sum.misses += report.misses;
    sum.checks += report.checks;
    sum.differences += report.differences;
  }
  return sum;
}

void EnvRunner::RunOrThrow(int worker_index, const Job& job, const OutputViews& out) {
  const int32_t id = job.id;
  Environment& env = environment(worker_index);
  Worker& worker = workers_[static_cast<size_t>(worker_index)];
  double* info = worker.info.data();

  // on copies, until nothing can throw any more
  Progress progress = store_->progress(id);
  std::optional<Random> policy_random;
  Transition transition;
  std::unique_ptr<FinalStep> final_step;
  env.Load(store_->row(id));
  if (!frames_.empty()) {  // with the callers' task and fields
    worker.row.assign(store_->row(id), store_->row(id) + store_->layout().size());
  }
  if (job.kind == Job::Kind::kReset) {
    if (job.seed != nullptr && !job.seed->empty()) {
      progress.random = Random(*job.seed);
      policy_random = EnvStore::PolicyStream(*job.seed);
      env.ForgetEpisodes();
    }
    env.Reset(progress.random, job.reset_options, info);
    progress = {progress.random, 0.0, 0, 0};
  } else {
    transition = Advance(env, *rules_, job.action, progress, info, [&](const Transition& last) {
      if (rules_->autoreset_mode != AutoresetMode::kSameStep) return;
      final_step = std::make_unique<FinalStep>();
      final_step->env_id = id;
      final_step->obs.assign(store_->obs(id), store_->obs(id) + store_->obs_bytes());
      Observe(worker_index, progress.elapsed);
      StoreObs(worker, progress.elapsed, final_step->obs.data());
      final_step->info = worker.info;
      final_step->kind = last.kind;
    });
  }
  Observe(worker_index, progress.elapsed);

  env.Save(store_->row(id));
  store_->Commit(id, progress);
  if (policy_random) store_->policy_random(id) = *policy_random;
  StoreObs(worker, progress.elapsed, store_->obs(id));
  Count(worker_index, {.steps = transition.stepped() ? 1 : 0,
                       .episodes = transition.ended() ? 1 : 0,
                       .diverged = (transition.kind & kDiverged) != 0 ? 1 : 0});
  if (final_step) finals_[static_cast<size_t>(id)] = std::move(final_step);
  if (out.obs != nullptr) {
    std::memcpy(static_cast<uint8_t*>(out.obs) + static_cast<size_t>(id) * store_->obs_bytes(),
                store_->obs(id), store_->obs_bytes());
  }
  out.rewards[id] = transition.reward;
  out.terminations[id] = transition.terminated ? 1 : 0;
  out.truncations[id] = transition.truncated ? 1 : 0;
  out.kinds[id] = transition.kind;
  WriteInfo(out, id, info, transition.kind);
}

void EnvRunner::Observe(int worker_index, int elapsed) {
  Worker& worker = workers_[static_cast<size_t>(worker_index)];
  const Environment& env = environment(worker_index);
  env.Observe(worker.obs.data());
  if (!store_->obs_layout().frames.IsDue(elapsed)) return;
  env.Save(worker.row.data());
  frames_[static_cast<size_t>(worker_index)]->Draw(worker.row.data(), worker.frame.data());
}

void EnvRunner::StoreObs(const Worker& worker, int elapsed, uint8_t* obs) const noexcept {
  const ObsLayout& layout = store_->obs_layout();
  if (layout.has_numbers) StoreAs(layout.dtype, worker.obs.data(), layout.size, obs);
  if (!layout.frames.IsDue(elapsed)) return;
  uint8_t* frames = obs + layout.frames_offset();
  if (elapsed == 0) {
    layout.frames.Fill(worker.frame.data(), frames);
  } else {
    layout.frames.Push(worker.frame.data(), frames);
  }
}

void EnvRunner::WriteFailed(int32_t id, const OutputViews& out) noexcept {
  if (out.obs != nullptr) {
    std::memset(static_cast<uint8_t*>(out.obs) + static_cast<size_t>(id) * store_->obs_bytes(), 0,
                store_->obs_bytes());
  }
  out.rewards[id] = 0.0;
  out.terminations[id] = out.truncations[id] = 0;
  out.kinds[id] = kFailed;
  WriteInfo(out, id, nullptr, kNoInfo);
}

void EnvRunner::WriteInfo(const OutputViews& out, int32_t id, const double* info,
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

std::vector<std::unique_ptr<FinalStep>> EnvRunner::TakeFinals(std::span<const int32_t> ids,
                                                              const uint8_t* kinds) {
  std::vector<std::unique_ptr<FinalStep>> taken;
  if (finals_.empty()) return taken;
  const auto has_final = [kinds](int32_t id) { return (kinds[id] & kFinal) != 0; };
  taken.reserve(static_cast<size_t>(std::count_if(ids.begin(), ids.end(), has_final)));
  for (const int32_t id : ids) {
    if (has_final(id)) taken.push_back(std::move(finals_[static_cast<size_t>(id)]));
  }
  return taken;
}

void EnvRunner::Count(int worker_index, const Stats& more) {
  Worker& worker = workers_[static_cast<size_t>(worker_index)];
  Increase(worker.steps, more.steps);
  Increase(worker.episodes, more.episodes);
  Increase(worker.diverged, more.diverged);
  Increase(worker.failures, more.failures);
}

Stats EnvRunner::stats() const {
  Stats sum;
  for (const Worker& worker : workers_) {
    sum.Add({worker.steps.load(std::memory_order_relaxed),
             worker.episodes.load(std::memory_order_relaxed),
             worker.diverged.load(std::memory_order_relaxed),
             worker.failures.load(std::memory_order_relaxed)});
  }
  return sum;
}

}  // namespace pyfastenv
