// The environment as the pool sees it.
//
// An environment's whole existence between two steps is a *row* of doubles (core/row_layout.h); the
// Environment object is the machine that runs rows, one object per worker. Whoever owns the rows
// makes it adopt their layout, and then calls, on one thread at a time:
//
//   Load(row)  ->  Step(...) or Reset(...), any number of times  ->  Save(row)
//
// Observe, and the info written by Step and Reset, belong to the last Step or Reset. After an
// exception the object is usable again from the next Load on, and the row is as it was.
//
// Load keeps a pointer into the row's task and fields, which callers may write: the row must stay
// in place until the next Load.
//
// A field is added in two phases, so that a failure half-way leaves everything as it was: Prepare
// does all that can fail and changes nothing that a call can see; Adopt switches over and cannot
// fail. Nothing may be loaded in between, and what was loaded before must be loaded again.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/action.h"
#include "core/env_spec.h"
#include "core/row_layout.h"
#include "npy/random.h"

namespace pyfastenv {

struct StepResult {
  double reward = 0.0;
  bool terminated = false;
  bool diverged = false;  // the physics blew up; the episode has ended
};

/// A step that is about to be taken: the row that it will be loaded from, and its action.
struct ComingStep {
  const double* row = nullptr;
  Action action;
  /// Out: constraint rows in the last substep of its physics, as far as is known. Who runs groups
  /// puts together what has as many.
  int num_rows = 0;
};

/// The engine of an environment's physics. Part of no result.
struct EngineReport {
  std::string name;         // "lanes" or "mujoco" now; "native" where there is no such choice
  std::string reason;       // why it is "mujoco"; empty otherwise
  int64_t lane_steps = 0;   // environment steps whose physics ran in lanes
  int64_t misses = 0;       // the others, where there are lanes
  int64_t checks = 0;       // environment steps that were done both ways and compared
  int64_t differences = 0;  // of which bits differed
};

class Environment {
 public:
  virtual ~Environment() = default;
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  const EnvSpec& spec() const { return *spec_; }

  /// The layout of rows without added fields, and such a row before any Reset.
  virtual RowLayout InitialLayout() const = 0;
  virtual std::vector<double> InitialRow() const = 0;

  /// Name, shape and the model's values of a model field; no offset yet.
  /// Throws std::invalid_argument for an unknown name.
  virtual RowField DescribeField(const std::string& name) const = 0;
  /// Gets ready for rows of this layout. May throw. A later Prepare replaces an earlier one.
  virtual void Prepare(const RowLayout& layout) = 0;
  /// From the next Load on, rows are of the layout last prepared for.
  virtual void Adopt() noexcept = 0;

  virtual void Load(const double* row) = 0;
  /// Leaves the task and the fields alone: callers may read them meanwhile.
  virtual void Save(double* row) const = 0;

  /// Forgets what outlives episodes: the next Reset starts the first one of another stream.
  virtual void ForgetEpisodes() {}

  /// Starts an episode. `options` has one value per spec().reset_options.
  virtual void Reset(Random& random, std::span<const double> options, InfoRow info) = 0;

  /// Runs one step; `random` is the environment's stream. `info` has room for spec().info_size()
  /// doubles.
  virtual StepResult Step(const Action& action, Random& random, InfoRow info) = 0;

  /// Writes spec().obs_size doubles.
  virtual void Observe(double* obs) const = 0;

  /// How many coming steps (at most kMaxGroup) to tell at a time; 0: PrepareSteps does nothing. It
  /// changes in Adopt only; any thread may ask.
  virtual int group_size() const { return 0; }
  /// Says which steps, up to group_size(), come next, so that what they have in common (the
  /// physics) may be run for all of them together. A hint that changes no result: each of them may
  /// be taken, in any order, or not, or with other numbers. The next call replaces it.
  virtual void PrepareSteps(std::span<ComingStep> /*steps*/) noexcept {}
  static constexpr int kMaxGroup = 16;

  /// Any thread may ask.
  virtual EngineReport engine() const { return {"native", {}, 0, 0, 0, 0}; }

 protected:
  explicit Environment(const SpecBuilder& spec) : spec_(spec.view()) {}

 private:
  std::shared_ptr<const EnvSpec> spec_;
};

}  // namespace pyfastenv
