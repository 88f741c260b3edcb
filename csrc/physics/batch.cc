#include "physics/batch.h"

#include <algorithm>
#include <numeric>

#include "lanes/kernels.h"
#include "mujoco/model_features.h"

namespace pyfastenv::physics {

void Batch::AddOutput(const BoundOutput& output) {
  const CallGate::Exclusive exclusive(workers_.gate());
  simulations_.outputs.push_back(output);
}

void Batch::SetFields(std::vector<BoundField> fields) {
  const CallGate::Exclusive exclusive(workers_.gate());
  simulations_.fields = std::move(fields);
  numbers_ = 0;
  for (const BoundField& own : simulations_.fields) {
    if (!own.read) continue;
    if (own.number == lanes::Number::kCount) {
      numbers_.reset();
      break;
    }
    *numbers_ |= uint64_t{1} << static_cast<int>(own.number);
  }
  ForgetModels();
}

void Batch::SetModels(std::vector<const mjModel*> models) {
  const CallGate::Exclusive exclusive(workers_.gate());
  simulations_.models = std::move(models);
  numbers_ = 0;
  if (!simulations_.models.empty()) {
    ModelClass alike(*simulations_.models[0]);
    const auto takes = [&](const mjModel* model) { return alike.Take(*model); };
    const bool all = std::all_of(simulations_.models.begin(), simulations_.models.end(), takes);
    numbers_ = all ? std::optional(alike.numbers) : std::nullopt;
  }
  ForgetModels();
}

void Batch::ForgetModels() {
  workers_.ForgetModels();
  lanes_ = {};
  steps_asked_ = 0;
}

// How many of its steps lanes may do, and give what is read of them. Where none is asked for but
// mj_forward, they do one: what mj_step computes before it moves on.
int Batch::LaneSteps(const Motion& motion) const {
  const auto in_lanes = [&](const Output& output) {
    return output.sensordata ||
           (output.lane_field && lanes::Computes(FirstModel(), *output.lane_field));
  };
  for (const Record& record : motion.records) {
    if (record.spec == 0 && !in_lanes(record)) return 0;
  }
  const auto& outputs = simulations_.outputs;
  bool all = std::all_of(outputs.begin(), outputs.end(), in_lanes);
  if (FirstModel().opt.integrator == mjINT_RK4) {
    // sensors are those of a step's first evaluation, which lanes may make again for them; fields
    // are those of its last
    const auto senses = [](const Output& output) { return output.sensordata; };
    const auto is_field = [](const Output& output) { return output.lane_field.has_value(); };
    const auto& records = motion.records;
    const bool senses_each = std::any_of(records.begin(), records.end(), senses);
    const bool reads_each = std::any_of(records.begin(), records.end(), is_field);
    if (senses_each && reads_each) return 0;
    const bool senses_last = senses_each || std::any_of(outputs.begin(), outputs.end(), senses);
    const bool reads_last = reads_each || std::any_of(outputs.begin(), outputs.end(), is_field);
    all = all && !(senses_last && reads_last);
  }
  if (motion.num_steps > 0) {
    return all && motion.stage == mjSTAGE_NONE ? motion.num_steps : motion.num_steps - 1;
  }
  // the outputs of a Runge-Kutta step are those of its last stage
  return all && motion.stage == mjSTAGE_ACC && FirstModel().opt.integrator != mjINT_RK4 ? 1 : 0;
}

PlanInUse Batch::FindLanes(const Motion& motion, size_t count) {
  // callbacks are not the model's: they may be set at any time
  if (simulations_.persistent || !numbers_ || ActiveCallback() != nullptr) return {};
  const auto senses = [](const Output& output) { return output.sensordata; };
  const bool sensed =
      std::any_of(simulations_.outputs.begin(), simulations_.outputs.end(), senses) ||
      std::any_of(motion.records.begin(), motion.records.end(), senses);
  if (sensed != sensed_) {
    sensed_ = sensed;
    lanes_ = {};
    steps_asked_ = 0;
  }
  // the plan, or that there is none, has been found
  if (lanes_.plan != nullptr || steps_asked_ >= PlanCache::kStepsThatPay) return lanes_;
  const int64_t steps = static_cast<int64_t>(count) * std::max(1, motion.num_steps);
  steps_asked_ += steps;
  lanes_ = plans_.Find(FirstModel(), lanes::BestKernels(), steps, sensed, *numbers_);
  return lanes_;
}

std::vector<Job> Batch::Divide(const Motion* motion, int lane_steps, size_t count) {
  const auto num_workers = workers_.size();
  const auto num_items = static_cast<int>(count);
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), 0);
  PlanInUse lanes;
  int groups = 0;
  if (lane_steps > 0) {
    groups = CountLaneGroups(num_items, num_workers, lanes::BestKernels().width);
    if (groups > 0) lanes = FindLanes(*motion, count);
  }
  // a worker's share in ten parts, by mj_step
  if (lanes.plan == nullptr) groups = std::min(num_items, 10 * num_workers);
  std::vector<Job> jobs;
  jobs.reserve(static_cast<size_t>(groups));
  Split(order_, groups, lanes, jobs);
  return jobs;
}

Outcome Batch::Move(std::span<const int32_t> ids, const Motion& motion,
                    const Interrupted& interrupted) {
  return Run(ids, &motion, nullptr, interrupted);
}

Outcome Batch::Apply(std::span<const int32_t> ids, const Operation& operation,
                     const Interrupted& interrupted) {
  return Run(ids, nullptr, &operation, interrupted);
}

Outcome Batch::Run(std::span<const int32_t> ids, const Motion* motion, const Operation* operation,
                   const Interrupted& interrupted) {
  const CallGate::Exclusive exclusive(workers_.gate());
  const int lane_steps = motion == nullptr ? 0 : LaneSteps(*motion);
  const std::vector<Job> jobs = Divide(motion, lane_steps, ids.size());
  const Task task{simulations_, ids, motion, operation, lane_steps};
  return workers_.Run(task, jobs, ids.size(), /*leaves_data=*/false, interrupted);
}

}  // namespace pyfastenv::physics
