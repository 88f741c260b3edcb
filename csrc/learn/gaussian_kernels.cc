// One source, compiled for each vector unit: see CMakeLists.txt and nn/vector_math.h.
#include "learn/gaussian_kernels.h"

#include "nn/vector_math.h"

namespace pyfastenv {

namespace {

// log(1 + z) for 0 <= z <= 1: twice the area tangent of z / (2 + z), by its series
PYFASTENV_INLINE Vec LogOnePlus(Vec z) {
  const Vec s = z / (2.0F + z);
  const Vec square = s * s;
  Vec p = Fill(1.0F / 13.0F);
  for (int divisor = 11; divisor > 2; divisor -= 2) {
    p = p * square + 1.0F / static_cast<float>(divisor);
  }
  return 2.0F * (s + s * square * p);
}

PYFASTENV_INLINE Vec Sigmoid(Vec x) { return 1.0F / (Exp(-x) + 1.0F); }

PYFASTENV_INLINE Vec Softplus(Vec x) {
  const Vec size = x < 0.0F ? -x : x;
  return (x > 0.0F ? x : Vec{}) + LogOnePlus(Exp(-size));
}

// zeros in place of what stands beyond the first `count` lanes
PYFASTENV_INLINE Vec KeepFirst(Vec x, int count) {
  IntVec lanes;
  for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = lane;
  return lanes < count ? x : Vec{};
}

void Squash(const float* outputs, int stride, const float* noise, int rows, int size,
            float log_std_min, float log_std_max, float* actions, float* spread, float* inside,
            float* log_probs) {
  constexpr float kLogTwo = 0.69314718F;
  constexpr float kHalfLogTwoPi = 0.91893853F;
  for (int row = 0; row < rows; ++row) {
    const float* line = outputs + static_cast<ptrdiff_t>(row) * stride;
    const ptrdiff_t at = static_cast<ptrdiff_t>(row) * size;
    Vec total = {};
    for (int column = 0; column < size; column += kLanes) {
      const int count = size - column;
      const Vec mean = LoadFirst(line + column, count);
      const Vec raw = LoadFirst(line + size + column, count);
      const Vec drawn = LoadFirst(noise + at + column, count);
      Vec log_std = raw < log_std_min ? Fill(log_std_min) : raw;
      log_std = log_std > log_std_max ? Fill(log_std_max) : log_std;
      const Vec width = Exp(log_std) * drawn;
      const Vec before = mean + width;
      const Vec size_of = before < 0.0F ? -before : before;
      const Vec z = Exp(-2.0F * size_of);
      const Vec positive = (1.0F - z) / (1.0F + z);
      const Vec action = before < 0.0F ? -positive : positive;
      const Vec log_slope = 2.0F * (kLogTwo - size_of - LogOnePlus(z));
      const Vec each = -0.5F * drawn * drawn - log_std - log_slope - kHalfLogTwoPi;
      total += KeepFirst(each, count);
      StoreFirst(actions + at + column, action, count);
      StoreFirst(spread + at + column, width, count);
      StoreFirst(inside + at + column, log_std == raw ? Fill(1.0F) : Vec{}, count);
    }
    log_probs[row] = Sum(total);
  }
}

double Likelihood(const float* outputs, int stride, const float* targets, int rows, int size,
                  const float* low, const float* high, float* by_outputs, float* by_low,
                  float* by_high) {
  const float share = 1.0F / static_cast<float>(rows * size);
  double loss = 0.0;
  for (int column = 0; column < size; column += kLanes) {
    const int count = size - column;
    const Vec least = LoadFirst(low + column, count);
    const Vec most = LoadFirst(high + column, count);
    Vec low_sum = {};
    Vec high_sum = {};
    for (int row = 0; row < rows; ++row) {
      const float* line = outputs + static_cast<ptrdiff_t>(row) * stride + column;
      const Vec mean = LoadFirst(line, count);
      const Vec raw = LoadFirst(line + size, count);
      const Vec target = LoadFirst(targets + static_cast<ptrdiff_t>(row) * size + column, count);
      const Vec from_high = most - raw;
      const Vec below = most - Softplus(from_high);
      const Vec from_low = below - least;
      const Vec log_var = least + Softplus(from_low);
      const Vec error = mean - target;
      const Vec weighted = error * Exp(-log_var);
      const Vec by_log_var = (1.0F - weighted * error) * share;
      const Vec by_below = by_log_var * Sigmoid(from_low);
      const Vec by_raw = by_below * Sigmoid(from_high);
      low_sum += by_log_var - by_below;
      high_sum += by_below - by_raw;
      loss += Sum(KeepFirst(weighted * error + log_var, count));
      float* out = by_outputs + static_cast<ptrdiff_t>(row) * 2 * size + column;
      StoreFirst(out, weighted * (2.0F * share), count);
      StoreFirst(out + size, by_raw, count);
    }
    StoreFirst(by_low + column, LoadFirst(by_low + column, count) + low_sum, count);
    StoreFirst(by_high + column, LoadFirst(by_high + column, count) + high_sum, count);
  }
  return loss * share;
}

void Follow(float* a, const float* b, size_t size, float share) {
  for (size_t i = 0; i < size; ++i) a[i] += (b[i] - a[i]) * share;
}

}  // namespace

extern const GaussianKernels PYFASTENV_NAME(kGaussian);
const GaussianKernels PYFASTENV_NAME(kGaussian) = {
    .squash = Squash, .likelihood = Likelihood, .follow = Follow};

}  // namespace pyfastenv
