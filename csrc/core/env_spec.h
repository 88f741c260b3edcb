// What an environment is: spaces, infos, tasks, options. Declared while its constructor runs,
// immutable from then on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "npy/dtype.h"

namespace pyfastenv {

/// A value of gymnasium's `info`: a scalar, or a vector of shape (size,), which may be empty.
struct InfoField {
  static constexpr int kScalar = -1;
  enum class Type { kFloat64, kFloat32, kInt64, kActionDType };
  enum class When { kStep, kAlways };  // kAlways: reset's info has it too

  std::string name;
  When when = When::kStep;
  Type type = Type::kFloat64;
  int size = kScalar;

  int width() const { return size == kScalar ? 1 : size; }
};

/// Where an info stands among an environment's infos. Made by EnvSpec::AddInfo.
struct InfoSlot {
  int offset = 0;
  int width = 0;
};

/// Writes one environment's infos through their slots; does not own them.
class InfoRow {
 public:
  InfoRow(double* values) : values_(values) {}  // NOLINT(google-explicit-constructor): a view

  /// A scalar.
  double& operator[](InfoSlot slot) const { return values_[slot.offset]; }
  /// A vector of slot.width numbers.
  std::span<double> vector(InfoSlot slot) const {
    return {values_ + slot.offset, static_cast<size_t>(slot.width)};
  }

 private:
  double* values_;
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
  // spaces: Discrete(num_actions) where num_actions > 0, else Box(action_low, action_high,
  // action_dtype)
  int obs_size = 0;
  DType obs_dtype = DType::kFloat64;  // gymnasium's; callers may ask for the other
  std::vector<double> obs_low, obs_high;
  int num_actions = 0;
  std::vector<double> action_low, action_high;
  DType action_dtype = DType::kFloat32;  // of messages; actions are taken in either

  std::vector<InfoField> infos;  // in the order in which gymnasium's dict has them
  std::vector<TaskField> tasks;
  std::vector<ResetOption> reset_options;
  double render_fps = 0.0;
  std::string model_path;  // of the MuJoCo model, or empty

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

  /// Declares one info more and returns where it is written.
  InfoSlot AddInfo(InfoField field) {
    const InfoSlot slot{info_size(), field.width()};
    infos.push_back(std::move(field));
    return slot;
  }
};

/// A spec while it is being declared. An environment's constructors hand one on by reference, each
/// adding what it knows; the finished environment only has the const view. So a spec cannot change
/// under the threads that read it:
///
///   explicit MyEnv(SpecBuilder&& spec = {}) : Environment(spec) { spec->num_actions = 3; }
class SpecBuilder {
 public:
  SpecBuilder() : spec_(std::make_shared<EnvSpec>()) {}
  SpecBuilder(const SpecBuilder&) = delete;
  SpecBuilder& operator=(const SpecBuilder&) = delete;

  EnvSpec* operator->() { return spec_.get(); }
  std::shared_ptr<const EnvSpec> view() const { return spec_; }

 private:
  std::shared_ptr<EnvSpec> spec_;
};

}  // namespace pyfastenv
