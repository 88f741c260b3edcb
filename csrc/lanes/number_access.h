// The numbers of numbers.h by their enumerators, and the fields of mjModel that they are.
#pragma once

#include <mujoco/mujoco.h>

#include <string>
#include <vector>

#include "lanes/numbers.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes {

/// The number that a field of mjModel ("body_mass", "opt.gravity") stands under; kCount if lanes
/// read no such field, or not one that environments may have their own of.
Number FindNumber(const std::string& field);
/// The fields of these bits of Number, by mjModel's names.
std::vector<std::string> NamesOf(uint64_t numbers);
/// How many there are of it.
int CountOf(const Tables& t, Number number);

const double* Get(const Numbers& numbers, Number number);
void Set(Numbers& numbers, Number number, const double* values);

/// Where mjModel has a number that is one of its fields.
const mjtNum* Get(const mjModel& m, Number number);
/// Gives a copy of mjModel's header an environment's own: an array is pointed there, an option
/// takes the values.
void Set(mjModel& header, Number number, const double* values);

}  // namespace pyfastenv::lanes
