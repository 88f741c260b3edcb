#include "learn/unit_norm.h"

#include <algorithm>
#include <cmath>

#include "learn/train_kernels.h"

namespace pyfastenv {

namespace {

constexpr float kEps = 1e-5F;  // PyTorch's BatchNorm1d
constexpr float kMomentum = 0.01F;

}  // namespace

UnitNormState::UnitNormState(const UnitNorm& place)
    : place_(place), size_(static_cast<size_t>(place.size)) {
  const auto padded = static_cast<size_t>(Padded(place.size, kTile));
  for (std::vector<double>* values : {&plain_, &weighted_, &mean_, &inverse_}) {
    values->resize(padded);
  }
  for (AlignedFloats* values : {&scale_, &shift_, &a_, &b_, &c_}) *values = AlignedFloats(padded);
}

ColumnSums UnitNormState::Sums() {
  std::fill(plain_.begin(), plain_.end(), 0.0);
  std::fill(weighted_.begin(), weighted_.end(), 0.0);
  return {plain_.data(), weighted_.data()};
}

void UnitNormState::SetByBatch(const float* parameters, float* moments, int rows) {
  float* means = moments + place_.moments;
  float* variances = means + size_;
  for (size_t i = 0; i < size_; ++i) {
    const double mean = plain_[i] / rows;
    const double variance = std::max(weighted_[i] / rows - mean * mean, 0.0);
    const double unbiased = variance * rows / std::max(rows - 1, 1);
    means[i] += kMomentum * (static_cast<float>(mean) - means[i]);
    variances[i] += kMomentum * (static_cast<float>(unbiased) - variances[i]);
    Set(parameters, i, mean, variance);
  }
}

void UnitNormState::SetByMoments(const float* parameters, const float* moments) {
  const float* means = moments + place_.moments;
  for (size_t i = 0; i < size_; ++i) Set(parameters, i, means[i], means[i + size_]);
}

void UnitNormState::SetBack(bool by_batch, int rows, float* gradients) {
  for (size_t i = 0; i < size_; ++i) {
    const double by_scale = inverse_[i] * (weighted_[i] - mean_[i] * plain_[i]);
    if (gradients != nullptr) {
      gradients[place_.parameters + i] = static_cast<float>(by_scale);
      gradients[place_.parameters + size_ + i] = static_cast<float>(plain_[i]);
    }
    const double times = scale_.data()[i];
    const double slope = by_batch ? times * inverse_[i] * by_scale / rows : 0.0;
    const double constant = by_batch ? slope * mean_[i] - times * plain_[i] / rows : 0.0;
    a_.data()[i] = static_cast<float>(times);
    b_.data()[i] = static_cast<float>(-slope);
    c_.data()[i] = static_cast<float>(constant);
  }
}

void UnitNormState::Set(const float* parameters, size_t i, double mean, double variance) {
  mean_[i] = mean;
  inverse_[i] = 1.0 / std::sqrt(variance + kEps);
  const double times = parameters[place_.parameters + i] * inverse_[i];
  scale_.data()[i] = static_cast<float>(times);
  shift_.data()[i] = static_cast<float>(parameters[place_.parameters + size_ + i] - mean * times);
}

}  // namespace pyfastenv
