// The environment as the pool sees it.
//
// An environment's whole existence between two steps is a *row* of doubles (its `state_size`); the
// Environment object is the machine that runs rows, one object per worker. Whoever owns the rows
// calls, on one thread at a time:
//
//   Load(row)  ->  Step(...) or Reset(...), any number of times  ->  Save(row)
//
// Observe, and the info written by Step and Reset, belong to the last Step or Reset. After an
// exception the object is usable again from the next Load on, and the row is as it was.
//
// A row ends in two sections that callers may write: the task (parameters of a meta-RL task) and
// the per-environment model fields added with AddField. Load keeps a pointer into them: the row
// must stay in place until the next Load.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/action.h"
#include "npy/dtype.h"
#include "npy/random.h"

namespace pyfastenv {

/// A value of gymnasium's `info`: `size` 0 is a scalar, n a vector of shape (n,).
struct InfoField {
  enum class Type { kFloat64, kInt64, kActionDType };
  enum class When { kStep, kAlways };  // kAlways: reset's info has it too

  std::string name;
  When when = When::kStep;
  Type type = Type::kFloat64;
  int size = 0;

  int width() const { return size == 0 ? 1 : size; }
};

/// A parameter of a meta-RL task, and how sample_tasks draws it.
struct TaskField {
  enum class Sampler { kSign, kUniform };

  std::string name;
  int size = 1;
  Sampler sampler = Sampler::kUniform;
  double low = 0.0;
  double high = 0.0;
};

/// A number that reset(options={...}) may give.
struct ResetOption {
  std::string name;
  double fallback = 0.0;
};

struct EnvSpec {
  // spaces: Discrete(num_actions) where num_actions > 0, else Box(action_low, action_high, float32)
  int obs_size = 0;
  DType obs_dtype = DType::kFloat64;  // gymnasium's; callers may ask for the other
  std::vector<double> obs_low, obs_high;
  int num_actions = 0;
  std::vector<double> action_low, action_high;

  std::vector<InfoField> infos;
  std::vector<TaskField> tasks;
  std::vector<ResetOption> reset_options;
  double render_fps = 0.0;
  std::string model_path;  // of the MuJoCo model, or empty

  // layout of a row: [environment's own | task | fields]
  int state_size = 0;
  int task_offset = 0;

  int action_size() const { return num_actions > 0 ? 1 : static_cast<int>(action_low.size()); }
  int task_size() const {
    int size = 0;
    for (const auto& task : tasks) size += task.size;
    return size;
  }
  int info_size() const {
    int size = 0;
    for (const auto& info : infos) size += info.width();
    return size;
  }
};

struct StepResult {
  double reward = 0.0;
  bool terminated = false;
  bool diverged = false;  // the physics blew up; the episode has ended
};

/// Per-environment values of a model field, a section of every row.
struct FieldSlot {
  int offset = 0;
  std::vector<int> shape;
  std::vector<double> defaults;
};

class Environment {
 public:
  virtual ~Environment() = default;

  const EnvSpec& spec() const { return spec_; }

  virtual void Load(const double* row) = 0;
  /// Leaves the task and field sections alone: callers may read them meanwhile.
  virtual void Save(double* row) const = 0;

  /// Starts an episode. `options` has one value per spec().reset_options.
  virtual void Reset(Random& random, std::span<const double> options, double* info) = 0;

  /// Runs one step. `info` has room for spec().info_size() doubles.
  virtual StepResult Step(const Action& action, double* info) = 0;

  /// Writes spec().obs_size doubles.
  virtual void Observe(double* obs) const = 0;

  /// Shape, values in the model, and place in the row (if it were added next) of a model field.
  /// Throws std::invalid_argument for an unknown name.
  virtual FieldSlot DescribeField(const std::string& name) const = 0;
  /// Appends a per-environment copy of a model field to the row, growing spec().state_size.
  /// Every worker's object must add the same.
  virtual void AddField(const std::string& name) = 0;

  /// A first row, before any Reset.
  virtual std::vector<double> InitialRow() const = 0;

 protected:
  EnvSpec spec_;
};

}  // namespace pyfastenv
