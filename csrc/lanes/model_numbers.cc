// The fields of mjModel that are numbers of numbers.h.
#include <algorithm>

#include "lanes/number_access.h"

namespace pyfastenv::lanes {

namespace {

// An array of mjModel's, or an option of some numbers, or of one.
const mjtNum* First(const mjtNum* array) { return array; }
const mjtNum* First(const mjtNum& number) { return &number; }

void Assign(mjtNum*& array, const double* values) { array = const_cast<mjtNum*>(values); }
void Assign(mjtNum (&option)[3], const double* values) { std::copy_n(values, 3, option); }
void Assign(mjtNum& option, const double* values) { option = *values; }

}  // namespace

const mjtNum* Get(const mjModel& m, Number number) {
  switch (number) {
#define PYFASTENV_LANES_NUMBER(name, count, field) \
  case Number::name:                               \
    return First(m.field);
    PYFASTENV_LANES_FIELD_NUMBERS(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
    default:
      return nullptr;
  }
}

void Set(mjModel& header, Number number, const double* values) {
  switch (number) {
#define PYFASTENV_LANES_NUMBER(name, count, field) \
  case Number::name:                               \
    Assign(header.field, values);                  \
    break;
    PYFASTENV_LANES_FIELD_NUMBERS(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
    default:
      break;
  }
}

}  // namespace pyfastenv::lanes
