#include "lanes/number_access.h"

namespace pyfastenv::lanes {

Number FindNumber(const std::string& field) {
#define PYFASTENV_LANES_NUMBER(name, count, model_field) \
  if (field == #model_field) return Number::name;
  PYFASTENV_LANES_FIELD_NUMBERS(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
  return Number::kCount;
}

std::vector<std::string> NamesOf(uint64_t numbers) {
  std::vector<std::string> names;
#define PYFASTENV_LANES_NUMBER(name, count, model_field) \
  if ((numbers >> static_cast<int>(Number::name) & 1) != 0) names.emplace_back(#model_field);
  PYFASTENV_LANES_FIELD_NUMBERS(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
  return names;
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

}  // namespace pyfastenv::lanes
