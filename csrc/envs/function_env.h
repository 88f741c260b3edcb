// FunctionEnv: a MuJoCo environment made of function pointers and a description of them.
//
// It is a MujocoEnv like the built-in ones; what they override is here a call through a pointer.
// The functions never see a C++ exception: what they call back (envs/task_symbols.h) returns a
// status, and what went wrong waits in this object until the function has returned.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/errors.h"
#include "envs/mujoco/mujoco_env.h"
#include "envs/task_frame.h"

namespace pyfastenv {

/// A field of the model that each environment has for itself: drawn by every episode from the
/// model's own values, or (kOwn) those values until the task's functions write others.
struct FieldDraw {
  enum class Kind { kScale, kShift, kUniform, kOwn };

  std::string field;
  Kind kind = Kind::kScale;
  double low = 1.0;
  double high = 1.0;
  bool together = false;  // one number for the whole field
};

/// All that the pool is told about a task. Shared by its workers, immutable.
struct TaskDescription {
  std::string name;
  std::string identity;  // of code, parameters and model: snapshots of others are refused
  SharedModel model;
  ModelParts parts = ModelParts::kPhysics;
  int frame_skip = 1;
  int control_every = 0;  // substeps between two calls of control; 0: once per step
  int max_episode_steps = 0;
  bool external_forces = false;    // cfrc_ext, cfrc_int and cacc are wanted after simulate
  bool up_to_date = false;         // mj_step1 follows simulate
  bool passive_reset = false;      // a reset's physics leaves actuators out
  bool moves_mocap = false;        // control says where mocap bodies are, too
  std::vector<std::string> reads;  // of mjData beyond its state: what lanes would have to compute

  DType action_dtype = DType::kFloat64;
  int num_actions = 0;                          // of a discrete action, or
  std::vector<double> action_low, action_high;  // of a vector
  int obs_size = 0;
  int memory_size = 0;
  int lasting_size = 0;  // of memory, its last numbers, which outlive episodes
  std::vector<InfoField> infos;
  std::vector<TaskField> commands;
  std::vector<double> params;  // the bits of doubles and int64s
  std::vector<FieldDraw> draws;
  std::vector<std::string> own_narrow;  // of kOwn too: narrow fields (mujoco/model_fields.h)

  TaskFunction reset = nullptr;
  TaskFunction control = nullptr;  // null: the action is the control
  TaskFunction step = nullptr;
  TaskFunction observation = nullptr;

  /// Encodes the exception that a function left, in bytes that outlive it.
  std::string (*encode_exception)(const void* exception) = nullptr;
};

/// The fields of the model that each environment has for itself, in its cache; narrow ones last.
std::vector<FieldPlace> DrawnFields(const TaskDescription& task);

class FunctionEnv final : public MujocoEnv {
 public:
  FunctionEnv(std::shared_ptr<const TaskDescription> task, ModelCache& models,
              SpecBuilder&& spec = {});

  // -- what compiled functions call back; they return 0, or 1 if the function must give up, as
  // control must, which may be asked about an environment that is not loaded --

  /// Runs `num_steps` substeps with the controls in data; 0: frame_skip, with those of control.
  int32_t Simulate(const TaskFrame& frame, int64_t num_steps) noexcept;
  int32_t Forward(const TaskFrame& frame) noexcept;
  /// mj_step1, mj_step2, or mj_step so many times: physics that is no part of a step.
  enum class Advance { kStep1, kStep2, kStep };
  int32_t AdvanceBy(const TaskFrame& frame, Advance what, int64_t num_steps) noexcept;
  /// Gets ready what of the state is not the motion (time, positions, velocities).
  int32_t LoadState(const TaskFrame& frame) noexcept;
  /// Runs a call of the engine: plain C, on the frame's model and data.
  template <class F>
  int32_t RunEngine(F f) noexcept {
    return Guard([&] { workspace().Run(f); });
  }

  void ForgetEpisodes() override;

 protected:
  void ResetModel(Random& random) override;
  StepResult StepTask(const Action& action, InfoRow info) override;
  void Control(const Action& action, const Situation& from, mjtNum* ctrl) override;
  void PositionInfo(InfoRow info) const override;
  void UpdateCache() override;
  void Observe(double* obs) const override;
  RowField DescribeField(const std::string& name) const override;

 private:
  void ForgetEpisode();
  void RefuseInControl(const TaskFrame& frame) const;
  void SetFresh(int64_t bits);
  void PointFields();
  void DrawFields(Random& random);
  /// What is wrong with geom_type, if the task writes it: MuJoCo takes any number as an index.
  std::string WrongType() const;
  void Convert(const Action& action, double* out) const;
  void Call(TaskFunction function, const char* name, TaskFrame& frame);
  [[noreturn]] void Fail(FunctionFailure failure, const std::string& what);
  template <class F>
  int32_t Guard(F f) noexcept {
    try {
      if (const std::string wrong = WrongType(); !wrong.empty()) throw std::runtime_error(wrong);
      f();
      return 0;
    } catch (...) {
      failure_ = std::current_exception();
      return 1;
    }
  }

  const std::shared_ptr<const TaskDescription> task_;
  TaskFrame frame_{};
  // control may be asked about an environment that is not loaded: it sees an mjData of its own, of
  // which only the motion may be read
  TaskFrame control_frame_{};
  std::unique_ptr<mjData> control_data_;
  std::vector<double> control_action_;
  // of task_->draws; their values stand in cache(), after memory, and narrow fields after them
  std::vector<ModelField> drawn_;
  std::vector<double> info_;       // of the call under way
  std::vector<double> action_;     // in action_dtype
  const Action* given_ = nullptr;  // the action of the step under way
  std::exception_ptr failure_;     // of a call back
  bool stepping_ = false;          // the last call was a step
};

/// Makes one worker's environment; `models` for its engine alone.
std::unique_ptr<Environment> MakeFunctionEnv(std::shared_ptr<const TaskDescription> task,
                                             ModelCache& models);

}  // namespace pyfastenv
