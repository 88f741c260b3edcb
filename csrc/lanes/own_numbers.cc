#include "lanes/own_numbers.h"

#include "lanes/number_access.h"

namespace pyfastenv::lanes {

OwnNumbers::OwnNumbers(const mjModel& m, const Plan& plan, int count)
    : m_(m), plan_(plan), fields_(plan.fields()) {
  for (int e = 0; e < count; ++e) {
    for (const Number field : fields_) {
      const mjtNum* of_model = Get(m, field);
      values_.emplace_back(of_model, of_model + CountOf(plan.tables(), field));
    }
  }
  for (const auto& values : values_) pointers_.push_back(values.data());
}

void OwnNumbers::Draw(int environment, double spread, std::mt19937_64& random) {
  std::uniform_real_distribution<double> factor(1 - spread, 1 + spread);
  for (size_t k = 0; k < fields_.size(); ++k) {
    const mjtNum* of_model = Get(m_, fields_[k]);
    std::vector<double>& values = values_[Index(environment, static_cast<int>(k))];
    for (size_t i = 0; i < values.size(); ++i) {
      const bool stays = plan_.derivation().MustBeTheModels(fields_[k], static_cast<int>(i));
      values[i] = stays ? of_model[i] : of_model[i] * factor(random);
    }
  }
}

mjModel OwnNumbers::Of(int environment) const {
  mjModel own = m_;
  for (size_t k = 0; k < fields_.size(); ++k) {
    Set(own, fields_[k], pointers_[Index(environment, static_cast<int>(k))]);
  }
  return own;
}

}  // namespace pyfastenv::lanes
