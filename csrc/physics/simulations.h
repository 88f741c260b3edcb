// Many simulations as rows, and what one call (Task) asks of some of them.
//
// A simulation is a row of mjSTATE_INTEGRATION and its counts of warnings. All memory is the
// caller's: rows, outputs and own fields are arrays with one entry per simulation, one after the
// other. Everything has been checked: sizes, ids (ascending, each once), names.
#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lanes/fields.h"
#include "lanes/numbers.h"
#include "mujoco/batch_fields.h"
#include "physics/state_layout.h"

namespace pyfastenv::physics {

/// A field of mjData that is copied out.
struct Output {
  DataField field{};
  std::optional<lanes::Field> lane_field;  // under which lanes have it
  bool sensordata = false;                 // which lanes have, too
};

/// A field of mjData whose every simulation's values are copied out after every call.
struct BoundOutput : Output {
  std::byte* to = nullptr;
};

/// A field of mjModel of which every simulation has its own values.
struct BoundField {
  OwnField field{};
  lanes::Number number = lanes::Number::kCount;  // as which lanes take it
  bool read = true;                              // by a step
  bool copied = false;  // into the worker's copy of the array, as it is only its first part
  std::byte* values = nullptr;
};

/// What is the same in all calls, until it is changed between two of them.
struct Simulations {
  const mjModel* model = nullptr;
  std::vector<const mjModel*> models;  // one per simulation, or none: `model`
  std::vector<BoundField> fields;      // none if there are `models`
  // one per worker; if persistent, one per simulation, whose derived fields stay
  std::vector<mjData*> data;
  bool persistent = false;

  size_t row_size = 0;
  double* rows = nullptr;
  // (simulations, mjNWARNING), since the last reset; null: nobody reads them, nor rows afterwards
  mjWarningStat* warnings = nullptr;
  std::vector<BoundOutput> outputs;

  double* row(int32_t sim) const { return rows + static_cast<size_t>(sim) * row_size; }
  mjWarningStat* warning(int32_t sim) const {
    return warnings + static_cast<size_t>(sim) * mjNWARNING;
  }
};

/// How a call has left a simulation.
enum class Status : int32_t {
  kRan = 0,
  kFailed = 1,  // MuJoCo raised: it is in the state before the call
  kNotRun = 2,  // interrupted: likewise
};

/// Where a call records after every step: a field, or components of the state.
struct Record : Output {
  unsigned spec = 0;        // of mjtState; 0: the field
  size_t bytes = 0;         // of one step
  std::byte* to = nullptr;  // (items, steps)

  std::byte* At(int item, int num_steps, int step) const {
    const size_t row = static_cast<size_t>(item) * static_cast<size_t>(num_steps);
    return to + (row + static_cast<size_t>(step)) * bytes;
  }
};

/// Steps of some simulations, under their own inputs or under given ones.
struct Motion {
  int num_steps = 0;                 // 0: states stay
  int stage = mjSTAGE_NONE;          // computed at the new state
  const double* controls = nullptr;  // null: as in the rows
  size_t control_item_stride = 0, control_step_stride = 0;
  unsigned control_spec = 0;  // what a control is made of, bits of mjSTATE_USER
  std::vector<Record> records;
  bool stops = false;  // once MuJoCo has warned; all later records repeat
  const char* what = "a batch's call";

  // of mujoco.rollout alone
  bool marks_failures = false;  // records of float64 are NaN from the step that raised on
  unsigned kept = 0;            // components of the state that are the data's, not the rows'
  /// Writes the row that a simulation begins with, of its model's layout; empty: its own. Then
  /// there are no rows, and what comes of them is not kept. Any worker's thread.
  std::function<void(int32_t sim, const StateLayout& layout, double* row)> set_row;
  /// Asked after an error of the engine, on its thread: what a callback of the user's had to say,
  /// and forgets it; empty if it was not one of theirs.
  std::function<std::string()> take_callback_error;

  /// Null if there are none.
  const double* control(int item, int step) const {
    return controls == nullptr ? nullptr
                               : controls + static_cast<size_t>(item) * control_item_stride +
                                     static_cast<size_t>(step) * control_step_stride;
  }
  bool every_step() const { return controls != nullptr || !records.empty(); }
};

/// Anything else: plain C calls of the engine (mujoco/error_trap.h) on a simulation's model and
/// data. `item` counts the simulations of the call.
struct Operation {
  std::function<void(const mjModel&, mjData&, int item)> run;
  bool resets = false;  // the row is not read but written, with outputs; warnings are forgotten
};

/// One call.
struct Task {
  const Simulations& simulations;
  std::span<const int32_t> ids;  // of the call's items; empty: item i is simulation i
  const Motion* motion;          // one of the two
  const Operation* operation;
  int lane_steps;  // that lanes may do; mj_step does the motion's others. 1 of none: mj_forward

  int32_t id(int item) const {
    return ids.empty() ? static_cast<int32_t>(item) : ids[static_cast<size_t>(item)];
  }
};

}  // namespace pyfastenv::physics
