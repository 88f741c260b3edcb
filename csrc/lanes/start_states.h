// States from which a plan is tried out: where robots are in use, and where arithmetic has edges.
//
// Near the default pose, from the model's keyframes (or else far from that pose), at high speed,
// under controls far beyond their bounds, in contact with the ground in random poses, settled on
// it, and at rest with zeros of both signs and denormal numbers. The kinds take turns, so that
// lanes of one group do different things.
//
// A start is a function of the model, the seed and the number of starts drawn before. Errors of the
// engine are MujocoError.
#pragma once

#include <mujoco/mujoco.h>

#include <random>
#include <vector>

#include "lanes/lane_stepper.h"

namespace pyfastenv::lanes {

class StartStates {
 public:
  enum class Kind {
    kNearDefault,
    kKeyframe,
    kFast,
    kSaturated,
    kTouching,
    kSettled,
    kAtRest,
    kCount,
  };

  /// `data` is a scratch memory of the model. `lanes` settle the states that start settled: their
  /// bits do not matter there, and it is soon done. All must stay.
  StartStates(const mjModel& m, mjData& data, LaneStepper& lanes);

  /// The kind of the i-th trajectory.
  static Kind KindOf(int i) { return static_cast<Kind>(i % static_cast<int>(Kind::kCount)); }
  /// In words: "at high speed".
  static const char* NameOf(const mjModel& m, Kind kind);

  /// Writes the beginning of the i-th trajectory into a row of mjSTATE_INTEGRATION.
  void Draw(int i, double* row);
  /// Writes controls of one of its steps into the row, the first of which is step 0.
  void DrawControls(int i, int step, double* row);

 private:
  double Uniform(double bound = 1) {
    return std::uniform_real_distribution<double>(-bound, bound)(random_);
  }
  int Choose(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  double TinyOrZero();

  void MoveNearDefault(double spread);
  void DrawVelocities(double bound);
  void MoveMocap(double bound);
  void DrawPose();
  void PutAtRest();
  void LowerToTouch();
  void Lift(double height);
  bool TouchesGround();
  void Settle(const double* const* numbers);

  const mjModel& m_;
  mjData& data_;
  LaneStepper& lanes_;
  std::mt19937_64 random_{1};
  const int ctrl_;  // where a row has controls
  std::vector<std::vector<double>> settled_;
};

}  // namespace pyfastenv::lanes
