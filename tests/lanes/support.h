// Robots and their states for the tests and benchmarks of lanes.
#pragma once

#include <mujoco/mujoco.h>

#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "lanes/lane_stepper.h"
#include "lanes/own_numbers.h"

namespace pyfastenv::lanes {

struct DeleteModel {
  void operator()(mjModel* m) const { mj_deleteModel(m); }
};
struct DeleteData {
  void operator()(mjData* d) const { mj_deleteData(d); }
};
using ModelPtr = std::unique_ptr<mjModel, DeleteModel>;
using DataPtr = std::unique_ptr<mjData, DeleteData>;

struct Robot {
  const char* name;
  const char* file;  // in gymnasium's assets
  int frame_skip;    // substeps per environment step
};

inline void PrintTo(const Robot& robot, std::ostream* out) { *out << robot.name; }

/// gymnasium's v5 robots that lanes do.
const std::vector<Robot>& Robots();

/// Throws std::runtime_error. The directory of models is PYFASTENV_ASSETS_DIR.
ModelPtr LoadRobot(const Robot& robot);
ModelPtr LoadXml(const std::string& xml);
DataPtr MakeData(const mjModel& m);

/// Widths that this processor can run, widest first.
std::vector<int> Widths();

/// A plan for so many lanes, not tried out, so that tests show what differs; throws
/// std::runtime_error with the refusal.
std::shared_ptr<const Plan> MakePlan(const mjModel& m, int width,
                                     const std::vector<std::string>& fields = {});

/// Random states and controls, from a seed.
class Randomizer {
 public:
  Randomizer(const mjModel& m, uint64_t seed) : m_(m), random_(seed) {}

  /// The default pose, disturbed in all dofs, and moving: by a tenth of `scale` 1 as in gymnasium's
  /// resets; by 1 wildly, into the floor and beyond joint limits.
  void Reset(mjData& d, double scale);
  /// Controls uniform in ± `amplitude` times their bounds.
  void DrawControls(mjData& d, double amplitude);
  /// Forces on some dofs and bodies, or none.
  void Push(mjData& d);

 private:
  double Uniform() { return std::uniform_real_distribution<double>(-1, 1)(random_); }

  const mjModel& m_;
  std::mt19937_64 random_;
};

/// A row per environment.
class RowSet {
 public:
  RowSet(const mjModel& m, int count)
      : size_(static_cast<size_t>(mj_stateSize(&m, mjSTATE_INTEGRATION))),
        values_(size_ * static_cast<size_t>(count)) {
    for (int i = 0; i < count; ++i)
      pointers_.push_back(values_.data() + size_ * static_cast<size_t>(i));
  }
  RowSet(const RowSet&) = delete;
  RowSet& operator=(const RowSet&) = delete;

  size_t size() const { return size_; }
  double* row(int i) { return pointers_[static_cast<size_t>(i)]; }
  const double* row(int i) const { return pointers_[static_cast<size_t>(i)]; }
  /// Rows from the i-th on, as LaneStepper takes them.
  double* const* from(int i) { return pointers_.data() + i; }
  void Copy(const RowSet& other) { values_ = other.values_; }

 private:
  size_t size_;
  std::vector<double> values_;
  std::vector<double*> pointers_;
};

}  // namespace pyfastenv::lanes
