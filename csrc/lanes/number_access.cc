#include "lanes/number_access.h"

#include <algorithm>

namespace pyfastenv::lanes {

namespace {

// An array of mjModel's, or an option of some numbers, or of one.
const mjtNum* First(const mjtNum* array) { return array; }
const mjtNum* First(const mjtNum& number) { return &number; }

void Assign(mjtNum*& array, const double* values) { array = const_cast<mjtNum*>(values); }
void Assign(mjtNum (&option)[3], const double* values) { std::copy_n(values, 3, option); }
void Assign(mjtNum& option, const double* values) { option = *values; }

}  // namespace

#define PYFASTENV_LANES_FIELD_NUMBERS(X) \
  PYFASTENV_LANES_NUMBERS(X)             \
  PYFASTENV_LANES_SOURCES(X)

Number FindNumber(const std::string& field) {
#define PYFASTENV_LANES_NUMBER(name, count, model_field) \
  if (field == #model_field) return Number::name;
  PYFASTENV_LANES_FIELD_NUMBERS(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
  return Number::kCount;
}

int CountOf(const Tables& t, Number number) {
  switch (number) {
#define PYFASTENV_LANES_NUMBER(name, count, ...) \
  case Number::name:                             \
    return count;
    PYFASTENV_LANES_FIELD_NUMBERS(PYFASTENV_LANES_NUMBER)
    PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
    case Number::kCount:
      break;
  }
  return 0;
}

const double* Get(const Numbers& numbers, Number number) {
  switch (number) {
#define PYFASTENV_LANES_NUMBER(name, ...) \
  case Number::name:                      \
    return numbers.name;
    PYFASTENV_LANES_FIELD_NUMBERS(PYFASTENV_LANES_NUMBER)
    PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
    case Number::kCount:
      break;
  }
  return nullptr;
}

void Set(Numbers& numbers, Number number, const double* values) {
  switch (number) {
#define PYFASTENV_LANES_NUMBER(name, ...) \
  case Number::name:                      \
    numbers.name = values;                \
    break;
    PYFASTENV_LANES_FIELD_NUMBERS(PYFASTENV_LANES_NUMBER)
    PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
    case Number::kCount:
      break;
  }
}

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
