// The stages as functions of one instruction set, and which set runs here.
//
// Scratch memory is a block of scratch_bytes(tables), zeroed and aligned to 64 bytes, that belongs
// to the caller; make_scratch prepares it and returns the handle that the other functions take.
#pragma once

#include <cstddef>

#include "lanes/fields.h"
#include "lanes/phases.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes {

/// A contact of one lane; `pair` is an index of Tables::pair.
struct ContactView {
  int pair;
  double dist;
  double pos[3];
  double frame[9];
  int first_row;  // among the lane's
};

/// A constraint row of one lane.
struct RowView {
  double J[kMaxDofs];
  double violation;  // distance less margin
  double R, D, aref, force;
};

struct Kernels {
  int width;  // lanes
  size_t (*scratch_bytes)(const Tables&);
  /// `narrow_phase`: for pairs of PairKind::kOther; `constraints`: if the plan asks for them.
  void* (*make_scratch)(const Tables&, void* memory, const NarrowPhaseCall& narrow_phase,
                        const ConstraintCall& constraints);
  /// Rows of `width` environments into lanes, and their numbers that vary (null: as they stand).
  /// Lanes from `count` on are marked for redoing.
  void (*load)(const Tables&, void* scratch, const double* const* rows, int count,
               const Numbers* numbers);
  /// Time, positions, velocities, activations and warm start of a lane into a row.
  void (*store)(const Tables&, const void* scratch, int lane, double* row);
  /// mj_forward, and mj_step so many times; the lanes that must be redone by MuJoCo since load.
  unsigned (*forward)(const Tables&, void* scratch);
  /// `keep_fields`, `sensors`: LaneStepper::Step.
  unsigned (*step)(const Tables&, void* scratch, int num_steps, bool keep_fields, bool sensors);
  /// Counts the time of steps from now on; nullptr: no longer.
  void (*count_phases)(void* scratch, PhaseTicks* phases);
  /// LaneStepper::Refresh.
  void (*refresh)(const Tables&, void* scratch);
  /// Computes Field::cfrc_ext from the last evaluation.
  void (*external_forces)(const Tables&, void* scratch);
  /// All numbers of a field in one lane.
  void (*read)(const Tables&, const void* scratch, Field field, int lane, double* out);
  /// The state that kept fields are of.
  void (*read_evaluated)(const Tables&, const void* scratch, int lane, double* time, double* qpos,
                         double* qvel);
  /// All sensordata of a lane; zero, or old, where lanes do not compute a sensor.
  void (*read_sensors)(const Tables&, const void* scratch, int lane, double* out);
  int (*count_contacts)(const void* scratch, int lane);
  ContactView (*contact)(const void* scratch, int index, int lane);
  int (*count_rows)(const void* scratch, int lane);
  RowView (*row)(const Tables&, const void* scratch, int index, int lane);
  /// The forces of all rows of a lane.
  void (*row_forces)(const void* scratch, int lane, double* out);
  /// Whether sine and cosine computed in all lanes at once have the C library's bits.
  bool (*series_agrees)();
  /// Where programs find their arrays: bytes from scratch, one of each ProgramArray.
  void (*program_offsets)(const Tables&, size_t* offsets);
};

/// The widest kernels that the processor runs, or those of PYFASTENV_LANES (8, 4, 2 or 1) lanes.
/// Throws std::invalid_argument if that variable asks for what is not there.
const Kernels& BestKernels();
/// The kernels of so many lanes; nullptr if this build or processor has none.
const Kernels* KernelsOfWidth(int width);

}  // namespace pyfastenv::lanes
