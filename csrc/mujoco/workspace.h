// One worker's mjData, and its own header of the shared model, on which it runs the state rows of
// many environments.
//
// The header is a copy of struct mjModel whose arrays are the shared model's. A per-environment
// field is a pointer in it that is swapped to the environment's values before each step.
//
// A row is mjSTATE_INTEGRATION: everything a step depends on. Derived quantities (body positions,
// contact forces …) in data() belong to the last Step or Forward, not to the loaded row. Not
// thread-safe. Every member function that runs the engine may throw MujocoError; the next Load
// repairs the workspace.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mujoco/error_trap.h"
#include "mujoco/model.h"
#include "mujoco/model_fields.h"

namespace pyfastenv {

class Workspace {
 public:
  Workspace(SharedModel model, ModelParts parts);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  const mjModel& model() const { return model_; }
  /// The same header with no environment's fields in it.
  const mjModel& plain_model() const { return plain_model_; }
  /// The model that it is a header of, with all its parts.
  const mjModel& whole_model() const { return *shared_; }
  mjData& data() { return *data_; }
  const mjData& data() const { return *data_; }

  int state_size() const { return state_size_; }
  const std::vector<double>& initial_state() const { return initial_state_; }

  void Load(const double* state);
  void Save(double* state) const;

  /// Only the motion: time, positions, velocities, activations. The rest of mjData's state is
  /// another row's until LoadRest, which must come before the engine runs.
  void LoadMotion(const double* state);
  void LoadRest(const double* state);
  /// Writes the motion into a row.
  void SaveMotion(double* state) const;
  /// Fills mjData with numbers that nobody can mistake, state and all: arrays and arena with NaN,
  /// counts with -1. For tests, before a Load or LoadMotion. Who then reads what nobody has
  /// written, is found out.
  void Poison();

  /// mj_resetData: the model's initial state, everything derived zero.
  void ResetData();
  /// The same for all that a following Forward leaves visible: state and contact forces. Ten times
  /// cheaper, which counts where episodes last a few steps.
  void Restart();
  /// mj_forward.
  void Forward();
  /// `num_steps` calls of mj_step, then mj_rnePostConstraint if `external_forces` (cfrc_ext).
  void Step(int num_steps, bool external_forces);
  /// Any other calls of the engine on model() and data(): plain C (mujoco/error_trap.h).
  template <class F>
  void Run(F f) {
    broken_ = true;
    Trapped(f);
    broken_ = false;
  }
  /// Whether the engine leaves out what actuators do.
  void SetPassive(bool passive);
  /// Whether an error of the engine has made data() useless; the next Load repairs it.
  bool broken() const { return broken_; }
  /// Whether the engine met a bad number since the last reset, or the state now holds one.
  bool Diverged() const;

  /// A field's values in the model file.
  std::vector<double> FieldDefaults(const ModelField& field) const;
  /// Which fields of this worker's model come from the rows, in two phases: Prepare may throw and
  /// changes nothing yet; Adopt switches, and until the next SwapFields all values are the model's.
  void PrepareFields(std::vector<ModelField> fields) { prepared_ = std::move(fields); }
  void AdoptFields() noexcept;
  /// Points an array field at values of the caller's, for good; one that no row has.
  void PointField(const ModelField& field, double* values) { model_.*field.array = values; }
  void PointNarrow(const std::string& name, double* values) {
    PointNarrowField(&model_, name, values);
  }
  /// Points these fields at the values of a row, one field after another. The caller keeps them
  /// until the next swap; swap before Load, which may make mjData anew from the model.
  void SwapFields(const double* values);

 private:
  void MakeData();
  bool IsConstant(std::string_view name) const;

  SharedModel shared_;
  const mjModel plain_model_;  // header: arrays belong to shared_
  mjModel model_;              // the same, or to the rows of environments
  mjData* data_ = nullptr;
  bool broken_ = false;
  int state_size_;
  std::vector<double> initial_state_;
  std::vector<ModelField> expanded_;
  std::vector<ModelField> prepared_;
  // mj_resetData leads elsewhere than initial_state_: fields shape it, or a plugin keeps more
  bool restart_differs_ = false;
};

}  // namespace pyfastenv
