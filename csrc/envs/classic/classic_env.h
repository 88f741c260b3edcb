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

template <int kStateSize, int kObsSize>
class ClassicEnv : public Environment {
 public:
  void Load(const double* row) final { std::copy_n(row, kStateSize, state_); }
  void Save(double* row) const final { std::copy_n(state_, kStateSize, row); }
  RowLayout InitialLayout() const final { return {kStateSize, 0, 0}; }
  std::vector<double> InitialRow() const final { return std::vector<double>(kStateSize); }
  RowField DescribeField(const std::string& name) const final {
    throw std::invalid_argument("'" + name + "': this environment has no MuJoCo model");
  }
  void Prepare(const RowLayout& /*layout*/) final {}  // no field can be added
  void Adopt() noexcept final {}
  /// By default the state's first numbers.
  void Observe(double* obs) const override { std::copy_n(state_, kObsSize, obs); }

 protected:
  /// `low` and `high` are the observations' bounds.
  ClassicEnv(SpecBuilder& spec, std::vector<double> low, std::vector<double> high)
      : Environment(spec) {
    spec->obs_dtype = DType::kFloat32;
    spec->obs_size = kObsSize;
    spec->obs_low = std::move(low);
    spec->obs_high = std::move(high);
  }

  double* state() { return state_; }
  const double* state() const { return state_; }

 private:
  double state_[kStateSize] = {};
};

}  // namespace pyfastenv
