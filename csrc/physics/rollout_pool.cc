#include "physics/rollout_pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

namespace pyfastenv::physics {

namespace {

// Lanes take their inputs from the call. Without controls they are what the data have, which may be
// reset in between: left to mj_step unless it is a ctrl of zero. So are data with less room for
// contacts than the model's own.
bool InputsSuitLanes(const RolloutRequest& request, const mjModel& m) {
  const Motion& motion = request.motion;
  const auto is_small = [&](const mjData* data) { return data->narena < m.narena; };
  if (std::any_of(request.data.begin(), request.data.end(), is_small)) return false;
  if (motion.controls != nullptr || motion.control_spec == 0) return true;
  if (motion.control_spec != mjSTATE_CTRL) return false;
  return std::all_of(request.data.begin(), request.data.end(), [&](const mjData* data) {
    const auto is_zero = [](double u) { return u == 0 && !std::signbit(u); };
    return std::all_of(data->ctrl, data->ctrl + m.nu, is_zero);
  });
}

// Writes the row that a rollout begins with.
void SetRow(const RolloutRequest& request, int rollout, const StateLayout& layout, double* row) {
  const mjModel& m = request.model(rollout);
  const auto which = static_cast<size_t>(rollout);
  const double* initial = request.initial_states + which * request.initial_state_stride;
  for (const auto& [bits, begin, size] : layout.parts()) {
    double* const part = row + begin;
    if ((bits & mjSTATE_FULLPHYSICS) != 0) {
      std::copy_n(initial, size, part);
      initial += size;
    } else if (bits == mjSTATE_WARMSTART && request.warmstarts != nullptr) {
      std::copy_n(request.warmstarts + which * request.warmstart_stride, size, part);
    } else if (bits == mjSTATE_EQ_ACTIVE) {
      std::copy_n(m.eq_active0, size, part);
    } else {
      std::fill_n(part, size, 0.0);
    }
    const bool of_mocap = bits == mjSTATE_MOCAP_POS || bits == mjSTATE_MOCAP_QUAT;
    for (int body = 0; of_mocap && body < m.nbody; ++body) {
      const int mocap = m.body_mocapid[body];
      if (mocap < 0) continue;
      if (bits == mjSTATE_MOCAP_POS) mju_copy3(part + 3 * mocap, m.body_pos + 3 * body);
      if (bits == mjSTATE_MOCAP_QUAT) mju_copy4(part + 4 * mocap, m.body_quat + 4 * body);
    }
  }
}

// The classes of several models, and of which each rollout is. Models that belong to none of the
// first kMostClasses are of none (-1).
struct Classes {
  static constexpr size_t kMostClasses = 16;

  explicit Classes(std::span<const mjModel* const> models) {
    std::unordered_map<const mjModel*, int> known;
    for (const mjModel* model : models) {
      const auto [found, is_new] = known.try_emplace(model, -1);
      if (is_new) found->second = Find(*model);
      of_rollout.push_back(found->second);
    }
  }

  std::vector<ModelClass> classes;
  std::vector<int> of_rollout;

 private:
  int Find(const mjModel& model) {
    for (size_t i = 0; i < classes.size(); ++i) {
      if (classes[i].Take(model)) return static_cast<int>(i);
    }
    if (classes.size() == kMostClasses) return -1;
    classes.emplace_back(model);
    return static_cast<int>(classes.size()) - 1;
  }
};

}  // namespace

std::vector<Job> RolloutPool::Divide(const RolloutRequest& request) {
  std::vector<Job> jobs;
  const auto& models = request.models;
  order_.resize(models.size());
  std::iota(order_.begin(), order_.end(), 0);
  if (std::all_of(models.begin(), models.end(), [&](auto* m) { return m == models[0]; })) {
    AddJobs(request, order_, 0, jobs);
    return jobs;
  }
  // class by class; the last rollout's comes last, as what the data hold afterwards is its
  const Classes found(models);
  const int last = found.of_rollout.back();
  const auto turn = [&](int rollout) {
    const int of = found.of_rollout[static_cast<size_t>(rollout)];
    return of == last ? std::numeric_limits<int>::max() : of;
  };
  std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) { return turn(a) < turn(b); });
  for (auto begin = order_.begin(); begin != order_.end();) {
    const auto end =
        std::find_if(begin, order_.end(), [&](int r) { return turn(r) != turn(*begin); });
    const int of = found.of_rollout[static_cast<size_t>(*begin)];
    const std::span<const int> rollouts(begin, end);
    if (of >= 0) {
      AddJobs(request, rollouts, found.classes[static_cast<size_t>(of)].numbers, jobs);
    } else {
      for (size_t i = 0; i < rollouts.size(); ++i) jobs.push_back({rollouts.subspan(i, 1), {}});
    }
    begin = end;
  }
  return jobs;
}

// Of rollouts whose models differ in these numbers at most.
void RolloutPool::AddJobs(const RolloutRequest& request, std::span<const int> rollouts,
                          uint64_t numbers, std::vector<Job>& jobs) {
  const mjModel& m = request.model(rollouts[0]);
  const auto count = static_cast<int>(rollouts.size());
  const int num_steps = request.motion.num_steps;
  PlanInUse lanes;
  int groups = 0;
  if (InputsSuitLanes(request, m)) {
    // lanes that all workers together have for these rollouts
    const lanes::Kernels& kernels = lanes::BestKernels();
    const int width = kernels.width;
    const auto share =
        static_cast<int64_t>(request.data.size() * rollouts.size() / request.models.size());
    groups = CountLaneGroups(count, std::max(1, static_cast<int>(share)), width);
    if (groups > 0 && (numbers != 0 || !plans_.LeavesToMujoco(m, int64_t{groups} * num_steps))) {
      const auto& records = request.motion.records;
      const bool senses = std::any_of(records.begin(), records.end(),
                                      [](const Record& record) { return record.sensordata; });
      lanes = plans_.Find(m, kernels, int64_t{count} * num_steps, senses, numbers);
    }
  }
  if (lanes.plan == nullptr) groups = (count + request.chunk_size - 1) / request.chunk_size;
  Split(rollouts, groups, lanes, jobs);
}

Outcome RolloutPool::Run(RolloutRequest request, const Interrupted& interrupted) {
  const CallGate::Exclusive exclusive(workers_.gate());
  const std::vector<Job> jobs = Divide(request);
  const size_t count = request.models.size();
  Simulations simulations;
  simulations.models.assign(request.models.begin(), request.models.end());
  simulations.data = request.data;
  Motion& motion = request.motion;
  motion.stops = motion.marks_failures = true;
  motion.what = "a rollout";
  motion.kept = motion.controls == nullptr ? mjSTATE_USERDATA | motion.control_spec
                                           : mjSTATE_USERDATA & ~motion.control_spec;
  motion.set_row = [&](int32_t rollout, const StateLayout& layout, double* row) {
    SetRow(request, rollout, layout, row);
  };
  const Task task{simulations, {}, &motion, nullptr, motion.num_steps};
  return workers_.Run(task, jobs, count, /*leaves_data=*/true, interrupted);
}

}  // namespace pyfastenv::physics
