#include "lanes/self_check.h"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "lanes/difference.h"
#include "lanes/lane_stepper.h"
#include "lanes/own_numbers.h"
#include "lanes/start_states.h"
#include "mujoco/owned.h"

namespace pyfastenv::lanes {

namespace {

constexpr int kMostTrajectories = 160;
constexpr int kSteps = 8;
constexpr int kFewestSteps = 3;        // of one group, whatever they take
constexpr int64_t kWork = 13'000'000;  // of mj_step; lanes take half as long

// Pairs of geoms for which lanes ask MuJoCo, whose collision functions are what takes longest in
// models of meshes.
int64_t CountNarrowPhases(const mjData& d, const Tables& tables) {
  const double* bounds =
      tables.numbers.pair_limits + static_cast<int>(PairLimit::kBound) * tables.num_pairs;
  return std::count_if(tables.pair, tables.pair + tables.num_pairs, [&](const Pair& pair) {
    if (pair.kind != PairKind::kOther) return false;
    if (pair.plane) return true;
    mjtNum apart[3];
    mju_sub3(apart, d.geom_xpos + 3 * pair.geom1, d.geom_xpos + 3 * pair.geom2);
    const double bound = bounds[&pair - tables.pair];
    return mju_dot3(apart, apart) <= bound * bound;
  });
}

// Nanoseconds that mj_step took for this step, about, counted by what it did instead of by a clock:
// whether a plan is refused must not depend on how busy the machine is.
int64_t WorkOf(const mjModel& m, const mjData& d, const Tables& tables) {
  int64_t iterations = 0;
  for (int i = 0; i < std::clamp(d.nisland, 1, mjNISLAND); ++i) iterations += d.solver_niter[i];
  const int64_t row = SolvesDual(m) ? d.nefc : m.nv + 8;
  const int64_t evaluation = 300 * m.nv + 100 * m.ngeom + iterations * d.nefc * row +
                             10'000 * CountNarrowPhases(d, tables);
  return m.opt.integrator == mjINT_RK4 ? 4 * evaluation : evaluation;
}

// Steps groups of states both ways, as many as the widest plan has lanes.
class Trial {
 public:
  Trial(const mjModel& model, std::span<const std::shared_ptr<const Plan>> plans)
      : m_(model),
        data_(MakeData(model)),
        tables_(plans.back()->tables()),
        size_(static_cast<size_t>(tables_.row.size)),
        width_(plans.back()->width()),
        numbers_(model, *plans.back(), width_) {
    for (const auto& plan : plans) lanes_.push_back(std::make_unique<LaneStepper>(plan));
    for (std::vector<double>* rows : {&before_, &ours_, &theirs_}) {
      rows->resize(size_ * static_cast<size_t>(width_));
    }
  }

  // Returns what differed first.
  std::string Run() {
    StartStates starts(m_, *data_, *lanes_.back());
    for (int first = 0; first < kMostTrajectories; first += width_) {
      for (int l = 0; l < width_; ++l) numbers_.Draw(l, 0.2, random_);
      for (int l = 0; l < width_; ++l) starts.Draw(first + l, Row(before_, l));
      for (int k = 0; k < kSteps; ++k) {
        if (work_ > kWork && (first > 0 || k >= kFewestSteps)) return {};
        for (int l = 0; l < width_; ++l) starts.DrawControls(first + l, k, Row(before_, l));
        for (int l = 0; l < width_; ++l) StepByMujoco(l);
        for (const auto& lanes : lanes_) {
          std::string difference = StepInLanes(*lanes, first, k);
          if (!difference.empty()) return difference;
        }
        before_ = theirs_;
      }
    }
    return {};
  }

 private:
  double* Row(std::vector<double>& rows, int l) {
    return rows.data() + static_cast<size_t>(l) * size_;
  }

  void StepByMujoco(int l) {
    const mjModel own = numbers_.Of(l);
    mj_setState(&m_, data_.get(), Row(before_, l), mjSTATE_INTEGRATION);
    Trapped([&] { mj_step(&own, data_.get()); });
    mj_getState(&m_, data_.get(), Row(theirs_, l), mjSTATE_INTEGRATION);
    work_ += WorkOf(m_, *data_, tables_);
  }

  // A plan of fewer lanes steps a part of the group, another one in every step.
  std::string StepInLanes(LaneStepper& lanes, int first, int step) {
    const int width = lanes.width();
    const int begin = step * width % width_;
    std::vector<const double*> from;
    std::vector<double*> to;
    for (int l = begin; l < begin + width; ++l) {
      from.push_back(Row(before_, l));
      to.push_back(Row(ours_, l));
    }
    ours_ = before_;
    const bool keep_fields = step % 2 == 0;  // half of the steps by straight-line code
    const unsigned redo =
        lanes.Step(from.data(), to.data(), width, 1, keep_fields, numbers_.from(begin));
    for (int l = begin; l < begin + width; ++l) {
      if ((redo >> (l - begin) & 1) != 0) continue;
      const auto difference = FindDifference(Row(ours_, l), Row(theirs_, l), tables_.row.size);
      if (!difference) continue;
      const char* start = StartStates::NameOf(m_, StartStates::KindOf(first + l));
      const std::string where = "step " + std::to_string(step) + " of a trial " + start;
      return Describe(m_, width, where, *difference);
    }
    return {};
  }

  const mjModel& m_;
  const DataPointer data_;
  const Tables& tables_;
  const size_t size_;
  const int width_;  // of the widest plan
  OwnNumbers numbers_;
  std::mt19937_64 random_{1};
  std::vector<std::unique_ptr<LaneStepper>> lanes_;
  std::vector<double> before_, ours_, theirs_;  // a row per environment
  int64_t work_ = 0;
};

}  // namespace

std::string SelfCheck(const mjModel& model, std::span<const std::shared_ptr<const Plan>> plans) {
  try {
    return Trial(model, plans).Run();
  } catch (const MujocoError& error) {
    return std::string("lanes could not be tried, an error of MuJoCo's: ").append(error.what());
  }
}

}  // namespace pyfastenv::lanes
