// Steps the physics of up to width() environments at once, bit for bit as mj_step does.
//
// One LaneStepper per worker: it holds the scratch memory. Not thread-safe; the plan may be shared.
// No function throws except the constructor (memory).
#pragma once

#include <mujoco/mujoco.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "lanes/constraint_solver.h"
#include "lanes/narrow_phase.h"
#include "lanes/plan.h"

namespace pyfastenv::lanes {

class LaneStepper {
 public:
  explicit LaneStepper(std::shared_ptr<const Plan> plan);

  const Plan& plan() const { return *plan_; }
  int width() const { return plan_->width(); }

  /// Steps `count` (1 to width()) environments `num_steps` times under the controls and applied
  /// forces in their rows.
  ///
  /// `rows` are states as mj_getState(mjSTATE_INTEGRATION) gives them, `new_rows` where they go
  /// afterwards (the same row or another; only time, qpos, qvel, act and the warm start are
  /// written). Returns a bit per environment that lanes could not step: its new row is untouched,
  /// and mj_step must do it from `rows`. That happens with numbers that make MuJoCo warn or reset,
  /// more contacts than MaxContacts, and a solver that loses rank.
  ///
  /// Unless `keep_fields`, all substeps run straight-line code where there is some; then what can
  /// be read afterwards (NeedsKeeping) are the state, qfrc_smooth, qacc_smooth, qfrc_constraint,
  /// qacc and external forces. Keeping fields costs an evaluation by stages.
  ///
  /// `numbers`: if the plan has fields(), where each environment's own numbers of them stand, one
  /// environment after another. Those that ask for another kind of step than the model's (no
  /// damping where it has some) are left to mj_step too. Null, for such a plan: those of the last
  /// Step, of as many environments.
  ///
  /// `sensors`: makes ReadSensors possible, for a plan that has sensors.
  unsigned Step(const double* const* rows, double* const* new_rows, int count, int num_steps,
                bool keep_fields = true, const double* const* numbers = nullptr,
                bool sensors = false);

  /// Sets the models that the next Steps' environments have, before a Step of models that the plan
  /// was not made of: meshes' hulls and faces are read there, not of the plan's copy.
  void SetModels(const mjModel* const* models, int count) {
    if (narrow_phase_ != nullptr) narrow_phase_->SetModels(models, count);
  }

  /// The numbers of a lane in the last Step or Forward.
  const Numbers& numbers(int lane) const { return numbers_[static_cast<size_t>(lane)]; }

  /// Counts the time of every Step from now on by phases; nullptr: no longer.
  void CountPhases(PhaseTicks* phases) { kernels_.count_phases(scratch_, phases); }

  /// mj_forward of the rows: fields of the position, velocity and controls, nothing moves. The same
  /// bits.
  unsigned Forward(const double* const* rows, int count, const double* const* numbers = nullptr);

  /// Computes places and velocities (IsRefreshed) anew, of the state that the last Step has led to.
  /// Of the state before stay what depends on the controls, and contacts.
  void Refresh() { kernels_.refresh(tables_, scratch_); }

  /// Makes Field::cfrc_ext readable: contacts' forces on bodies, as mj_rnePostConstraint after
  /// mj_step.
  void ComputeExternalForces();

  /// Reads a field of mjData after the last Step or Forward, of one environment in its group:
  /// Size(field) numbers.
  void Read(Field field, int lane, double* out) const;
  /// The same into the field's array of mjData.
  void Read(Field field, int lane, mjData& data) const;
  /// Into mjData's time, qpos and qvel, the state that the fields kept by Step are of: the
  /// integrator has moved on from it. (Of a Runge-Kutta step: that it began with.)
  void ReadEvaluated(int lane, mjData& data) const;
  /// sensordata after a Step with `sensors`, as mj_step leaves it: plan().sensors() says which.
  void ReadSensors(int lane, double* out) const {
    kernels_.read_sensors(tables_, scratch_, lane, out);
  }
  int Size(Field field) const;
  /// Whether a field can be read only after a Step that keeps fields.
  static bool NeedsKeeping(Field field);
  /// mjData's name of a field.
  static const char* Name(Field field);

  /// The last evaluation's contacts and constraint rows of a lane, in MuJoCo's order.
  int CountContacts(int lane) const;
  ContactView Contact(int index, int lane) const;
  int CountRows(int lane) const;
  RowView Row(int index, int lane) const;
  /// The forces of all of a lane's rows, CountRows(lane).
  void ReadRowForces(int lane, double* out) const { kernels_.row_forces(scratch_, lane, out); }

 private:
  unsigned Load(const double* const* rows, int count, const double* const* numbers);
  unsigned SetNumbers(const double* const* numbers, int count);

  std::shared_ptr<const Plan> plan_;
  const Tables& tables_;
  const Kernels& kernels_;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  // null if the plan needs none
  std::unique_ptr<NarrowPhase> narrow_phase_;
  std::unique_ptr<ConstraintSolver> constraints_;
  std::unique_ptr<void, Free> memory_;
  void* scratch_;
  std::vector<Numbers> numbers_;  // (width)
  std::vector<double> derived_;   // (width, Derivation::Size), if the plan has fields
  unsigned unusual_ = 0;          // lanes whose numbers are not of the plan's kind
};

}  // namespace pyfastenv::lanes
