// Tells Python once when lanes and mj_step have been seen to differ.
#pragma once

namespace pyfastenv {

/// Issues a RuntimeWarning per model in which trust has been broken (mujoco/lane_trust.h) since the
/// last call, whoever found it. To be called with the GIL where a call that runs physics ends; next
/// to nothing where there is no news. Throws py::error_already_set if warnings are errors.
void WarnOfBrokenTrust();

}  // namespace pyfastenv
