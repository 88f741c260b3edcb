// What gymnasium's classic-control environments share: a state of a few doubles and no engine.
//
// Row: the state. Observations are float32 in gymnasium; Observe writes their exact values.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/env.h"

namespace pyfastenv {

class ClassicEnv : public Environment {
 public:
  void Load(const double* row) final { std::copy_n(row, state_.size(), state_.begin()); }
  void Save(double* row) const final { std::copy(state_.begin(), state_.end(), row); }
  RowLayout InitialLayout() const final { return {static_cast<int>(state_.size()), 0, 0}; }
  std::vector<double> InitialRow() const final { return std::vector<double>(state_.size()); }
  RowField DescribeField(const std::string& name) const final {
    throw std::invalid_argument("'" + name + "': this environment has no MuJoCo model");
  }
  void Prepare(const RowLayout& /*layout*/) final {}  // no field can be added
  void Adopt() noexcept final {}
  /// By default the state's first numbers.
  void Observe(double* obs) const override { std::copy_n(state(), spec().obs_size, obs); }

 protected:
  /// `low` and `high` are the observations' bounds.
  ClassicEnv(SpecBuilder& spec, int state_size, std::vector<double> low, std::vector<double> high)
      : Environment(spec), state_(static_cast<size_t>(state_size)) {
    spec->obs_dtype = DType::kFloat32;
    spec->obs_size = static_cast<int>(low.size());
    spec->obs_low = std::move(low);
    spec->obs_high = std::move(high);
  }

  double* state() { return state_.data(); }
  const double* state() const { return state_.data(); }

 private:
  std::vector<double> state_;
};

}  // namespace pyfastenv
