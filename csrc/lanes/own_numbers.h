// Environments' own numbers of model fields, drawn at random: to try a plan that has fields.
#pragma once

#include <mujoco/mujoco.h>

#include <random>
#include <vector>

#include "lanes/plan.h"

namespace pyfastenv::lanes {

class OwnNumbers {
 public:
  /// The model's, for so many environments. The plan and its model must stay.
  OwnNumbers(const mjModel& m, const Plan& plan, int count);

  /// Draws an environment's anew, each up to `spread` (of 1) of the model's more or less; solimp's
  /// powers stay, and what must be the model's.
  void Draw(int environment, double spread, std::mt19937_64& random);
  /// An environment's of the plan's k-th field.
  std::vector<double>& values(int environment, int k) { return values_[Index(environment, k)]; }
  /// The model's header as an environment has it; until these numbers end.
  mjModel Of(int environment) const;
  /// Environments' numbers from the i-th on, as LaneStepper takes them.
  const double* const* from(int i) const { return pointers_.data() + Index(i, 0); }

 private:
  size_t Index(int environment, int k) const {
    return static_cast<size_t>(environment) * fields_.size() + static_cast<size_t>(k);
  }

  const mjModel& m_;
  const Plan& plan_;
  const std::vector<Number> fields_;
  std::vector<std::vector<double>> values_;  // of each environment, of each field
  std::vector<const double*> pointers_;
};

}  // namespace pyfastenv::lanes
