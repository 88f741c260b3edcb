// What gymnasium's MuJoCo environments share: the model, frame skip, reset noise, row layout and
// the order of a step. A task derives from MujocoEnv and says only what is its own.
//
// A task calls Simulate once in a step, with the step's action, and changes nothing of mjData but
// positions and velocities. Then its physics may have run before (PrepareSteps), beside that of
// other environments. What it reads of mjData, besides time, positions, velocities and control, it
// declares (Robot::reads), and reads after Simulate only.
//
// Row: [mjSTATE_INTEGRATION | cache | task | model fields]. The cache holds the numbers a task
// reads *before* a step that are not part of the physics state: gymnasium reads body positions that
// lag one substep behind the state, and so must we.
//
// Bit-identity: formulas stand in gymnasium's order of operations, with NumPy's functions
// (npy/math.h); the build forbids fused multiply-add.
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine_choice.h"
#include "core/env.h"
#include "core/params.h"
#include "envs/mujoco/lane_reads.h"
#include "envs/mujoco/prepared_steps.h"
#include "envs/registry.h"
#include "mujoco/model.h"
#include "mujoco/workspace.h"
#include "npy/math.h"

namespace pyfastenv {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

class MujocoEnv : public Environment {
 public:
  void Load(const double* row) final;
  void Save(double* row) const final;
  void Reset(Random& random, std::span<const double> options, InfoRow info) final;
  StepResult Step(const Action& action, Random& random, InfoRow info) final;
  RowLayout InitialLayout() const final;
  std::vector<double> InitialRow() const final;
  RowField DescribeField(const std::string& name) const override;
  void Prepare(const RowLayout& layout) final;
  void Adopt() noexcept final;
  int group_size() const final;
  void PrepareSteps(std::span<ComingStep> steps) noexcept final;
  EngineReport engine() const final;

  /// Reset without its infos, and the episode's end without the rest: what the physics limit needs.
  Workspace& workspace() { return workspace_; }
  int frame_skip() const { return frame_skip_; }

 protected:
  using Field = lanes::Field;

  /// A field of the model of which every environment has its own numbers.
  using OwnField = FieldPlace;  // in the row; Robot's, in the cache
  struct Robot {
    const char* xml_file;
    int frame_skip;
    double reset_noise_scale = 0.0;
    enum class Noise {
      kUniform,
      kNormal
    } velocity_noise = Noise::kUniform;  // of ResetModel's draws
    LaneReads reads = {};
    bool external_forces = false;  // … even where that does not show in `reads`
    bool passive_reset = false;    // a reset's physics leaves actuators out
    bool moves_mocap = false;      // Control says where mocap bodies are, too
    int control_every = 0;         // substeps under one control; 0: all of a step
    std::string refusal = {};      // why lanes cannot do this task; empty: they may
    int cache_size = 0;
    int cache_per_body = 0;                 // more of it, by the model's bodies
    std::vector<OwnField> own_fields = {};  // of the model, in the cache, side by side
    bool v4_takes_xml_file = false;
    // the least that a user's model must have for the task's formulas to make sense
    int min_nq = 1;
    int min_nv = 1;
  };

  MujocoEnv(SpecBuilder& spec, const Params& params, ModelCache& models, GymVersion version,
            const Robot& robot);

  // -- what a task says --

  /// Draws qpos and qvel of a new episode, in gymnasium's order of draws. By default init_qpos +
  /// uniform(-noise, noise), then init_qvel + the same or noise * standard_normal.
  virtual void ResetModel(Random& random);
  /// Runs one step, Simulate included, and writes all infos but those of PositionInfo.
  virtual StepResult StepTask(const Action& action, InfoRow info) = 0;
  /// Writes the infos of the state that a reset or step has led to: all that reset reports
  /// (InfoField::When::kAlways) must be among them. Called after StepTask.
  virtual void PositionInfo(InfoRow /*info*/) const {}
  /// Refreshes cache() after a reset or a diverged step.
  virtual void UpdateCache() {}
  /// The facts a control may depend on besides the action: those of the loaded environment, or of
  /// one whose step is prepared.
  struct Situation {
    const mjtNum* time;
    const mjtNum* qpos;
    const mjtNum* qvel;
    const double* cache;
    const double* task;
  };
  /// Writes the control of a step or of its next control_every substeps, (nu); behind it, of a
  /// robot that moves_mocap, places (nmocap, 3) and orientations (nmocap, 4). The control before
  /// stands there. If it throws while a step is prepared, that step is not.
  virtual void Control(const Action& action, const Situation& /*from*/, mjtNum* ctrl) {
    action.CopyTo(ctrl);
  }

  // -- what a task uses --

  /// Runs frame_skip steps of physics under the action's Control, or takes what was prepared.
  /// mjData has the last control afterwards.
  void Simulate(const Action& action);
  /// The same under the control that mjData holds.
  void SimulateControl(int num_steps);
  /// Whether places and velocities in mjData are those of the state that Simulate has led to, as if
  /// mj_step1 had followed: as Robot::reads asks, if lanes did the step.
  bool IsRefreshed() const { return reads_.refreshed && taken_ && ahead_ != nullptr; }
  /// Makes mjData hold the whole state (of which a prepared step needs the motion only), besides
  /// the control if it has been set; required by whoever reads or writes more of it.
  void LoadWholeState(bool control_is_set);
  /// The same before the physics, where a prepared step may still be taken: if all that it began
  /// with is the same when Simulate is called.
  void LoadStateAhead();

  const mjModel& model() const { return workspace_.model(); }
  mjData& data() { return workspace_.data(); }
  const mjData& data() const { return workspace_.data(); }
  const mjtNum* qpos() const { return data().qpos; }
  const mjtNum* qvel() const { return data().qvel; }
  const std::vector<double>& init_qpos() const { return init_qpos_; }
  double dt() const { return dt_; }
  double* cache() { return cache_.data(); }
  const double* cache() const { return cache_.data(); }
  const double* task() const { return task_.data(); }
  /// The environment's stream, in ResetModel and StepTask.
  Random& random() { return *random_; }

  int BodyId(const std::string& name) const;
  const mjtNum* body_xpos(int body) const { return data().xpos + 3 * static_cast<ptrdiff_t>(body); }

  /// Whether all positions and velocities are.
  bool IsFinite() const;
  /// Appends positions, without the first ones, and velocities.
  double* AppendMotion(double* obs, int skipped_positions = 0) const;

 private:
  static std::string ModelPath(const Params& params, const ModelCache& models, GymVersion version,
                               const Robot& robot);
  std::unique_ptr<PreparedSteps> MakeLanes(const LanePlans& plans,
                                           const std::vector<OwnField>& fields,
                                           std::string& refusal) const;
  // where a control goes
  struct Controlled {
    mjtNum *ctrl, *mocap_pos, *mocap_quat;
  };
  Controlled InData() { return {data().ctrl, data().mocap_pos, data().mocap_quat}; }
  // … which holds the control before
  void Ask(const Action& action, const Situation& from, const Controlled& to);
  // a control as Control writes it, read and written
  void Get(const Controlled& from, mjtNum* control) const;
  void Put(const mjtNum* control, const Controlled& to) const;
  void ControlLoaded(const Action& action);
  void ControlAhead(const ComingStep& step, const double* state, double* controlled) noexcept;
  bool IsPrepared(const Action* action);
  void TakePrepared();
  void StepByEither(const Action* action, int num_steps);
  void StepByMujoco(const Action* action, int num_steps);
  bool IsAsPrepared(const PreparedSteps::Step& step);
  bool HasSameControls(const Action& action);

  Workspace workspace_;
  int frame_skip_;
  int control_every_;  // frame_skip at most
  const double reset_noise_scale_;
  const Robot::Noise velocity_noise_;
  bool external_forces_;  // the task reads cfrc_ext
  bool passive_reset_;
  double dt_;
  std::vector<double> init_qpos_, init_qvel_;
  std::vector<double> cache_;
  std::vector<double> task_;
  const size_t num_mocap_;     // bodies that Control moves
  std::vector<mjtNum> asked_;  // (nu + 7 num_mocap_)
  // where the row's task and fields begin; the same in every layout of this environment
  int task_offset_ = 0;
  int fields_offset_ = 0;
  Random* random_ = nullptr;  // of the call under way

  Engine engine_;
  const LaneReads reads_;
  const std::string task_refusal_;
  std::vector<OwnField> drawn_;       // by the task, in the cache
  std::shared_ptr<LaneTrust> trust_;  // in the model; null if nobody wanted lanes
  EngineTurns turns_;
  EngineTurns::Turn turn_ = EngineTurns::Turn::kLanes;  // of the steps last prepared
  std::vector<double> compared_;                        // a state, (state_size)
  std::unique_ptr<PreparedSteps> lanes_;                // null: mj_step alone
  std::unique_ptr<PreparedSteps> prepared_lanes_;       // for the layout last prepared for
  const bool poisons_;  // for tests: what a task has not declared is NaN
  // read by any thread
  std::atomic<int> group_size_{0};
  mutable std::mutex refusal_mutex_;  // guards refusal_
  std::string refusal_;               // why there are no lanes; empty if nobody wanted them
  std::string prepared_refusal_;
  // of the loaded row
  const double* row_ = nullptr;
  const PreparedSteps::Step* ahead_ = nullptr;  // its prepared step; mjData holds its motion alone
  bool taken_ = false;                          // … after that step
  bool found_ = false;                          // it had one when it was loaded
  bool is_whole_ = false;                       // mjData holds the whole state nevertheless
  // written by this object's thread, read by any
  std::atomic<int64_t> lane_steps_{0}, misses_{0}, checks_{0}, differences_{0};
};

/// Declares Box(-inf, inf) observations.
void SetObservation(SpecBuilder& spec, int size);

/// Declare an info: a number of each step; one that reset reports too (or, in v4, does not); one in
/// the actions' dtype.
inline InfoSlot AddInfo(SpecBuilder& spec, const char* name,
                        InfoField::Type type = InfoField::Type::kFloat64) {
  return spec->AddInfo({.name = name, .type = type});
}
inline InfoSlot AddPositionInfo(SpecBuilder& spec, const char* name,
                                GymVersion version = GymVersion::kV5,
                                int size = InfoField::kScalar) {
  const bool always = version == GymVersion::kV5;
  return spec->AddInfo({.name = name,
                        .when = always ? InfoField::When::kAlways : InfoField::When::kStep,
                        .size = size});
}
inline InfoSlot AddActionInfo(SpecBuilder& spec, const char* name) {
  return AddInfo(spec, name, InfoField::Type::kActionDType);
}

/// The type of an info that is an argument times a bool: in v5 an integer stays one; v4 multiplies
/// by a float.
inline InfoField::Type TypeOf(const Params& params, const char* name, GymVersion version) {
  const bool integer = version == GymVersion::kV5 && params.GivenAsInteger(name);
  return integer ? InfoField::Type::kInt64 : InfoField::Type::kFloat64;
}

/// `weight * np.sum(np.square(action))`, in the action's dtype.
inline NumpyScalar ControlCost(double weight, const Action& action) {
  return NumpyScalar(weight) * action.SumOfSquares();
}

/// Copies an array to `out` and returns its end.
inline double* Append(double* out, const mjtNum* values, ptrdiff_t n) {
  return std::copy_n(values, n, out);
}

inline double* AppendClipped(double* out, const mjtNum* values, ptrdiff_t n, double low,
                             double high) {
  return std::transform(values, values + n, out, [=](double x) { return npy::Clip(x, low, high); });
}

/// np.sum(np.square(np.clip(values, low, high))).
inline double ClippedSumOfSquares(const mjtNum* values, ptrdiff_t n, double low, double high) {
  const auto square = [=](ptrdiff_t i) {
    const double value = npy::Clip(values[i], low, high);
    return value * value;
  };
  return npy::PairwiseSum<double>(square, 0, n);
}

}  // namespace pyfastenv
