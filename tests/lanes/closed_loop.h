// Trajectories of rows through LaneStepper and through mj_step, side by side.
#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support.h"

namespace pyfastenv::lanes {

/// One width's rows, which between resets nothing but LaneStepper writes (controls aside).
struct Track {
  Track(const mjModel& m, int width, const std::vector<std::string>& fields);

  LaneStepper lanes;
  RowSet rows;
  int64_t environment_steps = 0;
  int64_t left_to_mujoco = 0;  // environment steps that lanes did not do
  int64_t different = 0;       // and that they did otherwise than mj_step
  std::string first;           // difference, in words
};

/// Steps 16 environments by mj_step and by all widths, with wild resets, controls up to three
/// times beyond their bounds, and pushes. After every environment step the rows and everything else
/// that mjData holds are compared bit for bit; in every other step fields are not kept, and only
/// what stays is compared. Of `fields` every environment has its own numbers, drawn anew with each
/// reset.
class ClosedLoop {
 public:
  ClosedLoop(const mjModel& m, int frame_skip, const std::vector<std::string>& fields = {});

  void Run(int64_t substeps);
  /// One for each width.
  const std::vector<std::unique_ptr<Track>>& tracks() const { return tracks_; }
  /// Constraint rows in all of mj_step's evaluations that were seen.
  int64_t num_rows() const { return num_rows_; }

 private:
  void Reset();
  void StepByMujoco(int64_t step);
  void Follow(Track& track, int64_t step);
  std::string Difference(const Track& track, int environment, int lane, bool keep_fields) const;

  const mjModel& m_;
  int frame_skip_;
  DataPtr d_;
  Randomizer random_;
  RowSet before_, after_;
  std::vector<bool> warned_;
  std::vector<std::vector<std::vector<double>>> fields_;  // of mjData, per environment
  std::vector<std::unique_ptr<Track>> tracks_;
  OwnNumbers numbers_;
  std::mt19937_64 number_random_;
  int64_t num_rows_ = 0;
};

/// Expects no difference, and at most `left_to_mujoco` of the steps not done by lanes.
void ExpectEqual(const ClosedLoop& loop, double left_to_mujoco);

}  // namespace pyfastenv::lanes
