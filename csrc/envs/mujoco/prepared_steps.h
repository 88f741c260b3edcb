// The physics of coming steps, run in lanes before the steps are taken: "physics first".
//
// An environment's step has physics in its middle, which depends on nothing but the row and the
// control. So the physics of a group of coming steps is run at once, one environment per SIMD lane,
// and each result waits here until its environment's Simulate takes it. Whoever takes one compares
// with what was prepared, bit for bit: a group changes no result. A control that is asked for again
// between substeps is asked for here too, of the states in between, which are kept to be compared.
//
// One per worker; not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "envs/mujoco/lane_reads.h"
#include "lanes/difference.h"
#include "lanes/lane_stepper.h"
#include "mujoco/lane_plans.h"

namespace pyfastenv {

class PreparedSteps {
 public:
  /// The step of one environment: its state before and after, in mjSTATE_INTEGRATION's layout.
  /// `before` has the step's control, `after` too. And its own numbers of model fields, one after
  /// another.
  struct Step {
    const double* row = nullptr;
    std::vector<double> before, after, numbers;
    std::vector<std::vector<double>> between;  // where control was asked for again, with its answer
    const lanes::LaneStepper* stepper = nullptr;  // null: lanes could not do it
    int lane = 0;
  };

  /// `state_size` is mjSTATE_INTEGRATION's. `model` has the sensors that are read.
  /// `control_every`: substeps under one control, of which the places of the first `num_mocap`
  /// mocap bodies are a part. `field_offsets`: where a row has each of the plans' fields; the first
  /// `num_written` of them, one behind the other, may be written between Find and the step.
  PreparedSteps(const LanePlans& plans, const mjModel& model, int state_size, int frame_skip,
                int control_every, size_t num_mocap, LaneReads reads,
                const std::vector<int>& field_offsets, size_t num_written);

  /// The most steps that are prepared at a time.
  int group_size() const { return static_cast<int>(steps_.size()); }

  /// Begins a group; what was prepared before is forgotten.
  void Clear() { count_ = 0; }
  /// Adds a step that starts from this row, and returns the state into which its control goes.
  double* Add(const double* row);
  /// Writes the control of the group's i-th step in a state (of mjSTATE_INTEGRATION's layout) into
  /// another, or the same.
  using Control = std::function<void(size_t i, const double* from, double* to)>;
  /// Runs the group's physics. `control` is asked for what comes after the first control_every
  /// substeps. Returns how many steps lanes could not do.
  int Run(const Control& control);
  /// How many steps the group has.
  int count() const { return static_cast<int>(count_); }

  /// Constraint rows in the last substep of the i-th step; very many if lanes could not do it.
  int CountRows(size_t i) const {
    const Step& step = steps_[i];
    return step.stepper != nullptr ? step.stepper->CountRows(step.lane) : kVeryMany;
  }

  /// The step prepared for the row at this address, if its state is still the same.
  const Step* Find(const double* row) const;
  /// Whether it is the step of the motion and control that mjData holds, and of these fields that
  /// may have been written.
  bool IsFor(const Step& step, const mjData& data, const double* written) const;
  /// Whether the step began with this state.
  static bool BeganWith(const Step& step, const std::vector<double>& state);
  const lanes::RowLayout& layout() const { return layout_; }
  /// Whether a state (`before`, `after`, or one between them) has this control.
  bool HasControl(const std::vector<double>& state, const double* control) const;
  void CopyControl(const double* state, mjData& data) const;
  /// Compares a step with what mj_step has left in mjData, whose state is `theirs`: the state, and
  /// the fields that are read. Says where they differ; empty if they do not. `model`: with the
  /// environment's fields.
  std::string FindDifference(const Step& step, const mjModel& model, const mjData& data,
                             const double* theirs) const;

  /// Copies what is read of mjData after the step into it, but for sensors. `model`: with the
  /// environment's fields. Until the next Clear.
  void Read(const Step& step, const mjModel& model, mjData& data) const;
  bool reads_sensors() const { return reads_.sensors != lanes::Sensors::kNone; }
  /// The same for sensordata, by the engine: plain C. `data` has the new motion; what it has
  /// afterwards may be that of the last evaluation.
  void ReadSensors(const Step& step, const mjModel& model, mjData& data) const;

 private:
  static constexpr int kVeryMany = 1000;

  std::vector<std::unique_ptr<lanes::LaneStepper>> steppers_;  // the narrowest first
  const LaneReads reads_;  // no sensors if the model has none of them
  const int frame_skip_;
  const int control_every_;
  const size_t num_mocap_;
  const bool keeps_fields_;
  struct OwnField {
    int offset;  // in a row
    size_t size;
  };
  bool SameNumbers(const Step& step, const double* row) const;
  const double* ControlAt(const Step& step, int substep) const;
  std::string Locate(const Step& step, const mjModel& model, const lanes::Difference& at_end) const;

  std::vector<OwnField> fields_;
  size_t num_written_ = 0;              // numbers of fields that may have been written
  std::vector<const double*> numbers_;  // of the group, for LaneStepper
  const lanes::RowLayout layout_;       // of the state
  const size_t num_positions_, num_velocities_, num_activations_, num_controls_;
  std::vector<Step> steps_;  // as many as the widest plan has lanes
  size_t count_ = 0;
};

}  // namespace pyfastenv
