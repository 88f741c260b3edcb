// Which models can be run: those whose every step depends on mjSTATE_INTEGRATION alone.
//
// An environment is a row of exactly that state (see workspace.h). MuJoCo has a few features that
// carry more from one step to the next, or read what belongs to the whole process. Such a model
// would step differently from worker to worker, and its snapshots would be incomplete: it is
// refused when it is loaded. Everything else (mocap bodies, delays and other history buffers,
// activations, plastic and user data, plugin state) is part of the row.
#pragma once

#include <mujoco/mujoco.h>

namespace pyfastenv {

/// Throws UsageError (kValue) that names the feature, why it cannot be run, and what to do.
/// `data` is one made for the model.
void CheckSupported(const mjModel& model, const mjData& data);

/// Whether a model's options let simulations that share an mjData share state: sleep, ipc, or
/// energies beside the sensor e_kinetic.
bool SharesState(const mjModel& model);

/// The name of a global callback that changes physics and is set; null if none is.
const char* ActiveCallback();

/// Throws UsageError (kValue) if a global callback that changes physics is set. It may be set at
/// any time, so this is asked before every step, which costs a few loads.
void CheckNoCallbacks();

}  // namespace pyfastenv
