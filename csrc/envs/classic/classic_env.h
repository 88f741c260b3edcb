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
  FieldSlot DescribeField(const std::string& name) const final {
    throw std::invalid_argument("'" + name + "': this environment has no MuJoCo model");
  }
  void AddField(const std::string& name) final { DescribeField(name); }
  std::vector<double> InitialRow() const final { return std::vector<double>(state_.size()); }

 protected:
  explicit ClassicEnv(int state_size) : state_(static_cast<size_t>(state_size)) {
    spec_.state_size = spec_.task_offset = state_size;
    spec_.obs_dtype = DType::kFloat32;
  }

  void SetObservation(std::vector<double> low, std::vector<double> high) {
    spec_.obs_size = static_cast<int>(low.size());
    spec_.obs_low = std::move(low);
    spec_.obs_high = std::move(high);
  }

  double* state() { return state_.data(); }
  const double* state() const { return state_.data(); }

 private:
  std::vector<double> state_;
};

}  // namespace pyfastenv
