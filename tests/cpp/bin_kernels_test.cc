// Compared with autograd in tests/python/test_flashsac.py; here: its own difference quotients, on
// arrays without a number to spare.
#include "learn/bin_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace pyfastenv {
namespace {

constexpr int kRows = 3;

struct Critics {
  explicit Critics(int count) : count(count), values(Size(count)) {
    for (int i = 0; i < count; ++i) {
      values[Size(i)] = -2.0F + 4.0F * static_cast<float>(i) / static_cast<float>(count - 1);
    }
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (std::vector<float>* logits : {&found, &target}) {
      logits->resize(2 * kRows * Size(count));
      for (float& x : *logits) x = normal(random);
    }
  }

  static size_t Size(int n) { return static_cast<size_t>(n); }
  Bins bins() const { return {values.data(), count}; }

  double Loss(std::vector<float>* by_found) const {
    by_found->assign(found.size(), 0.0F);
    const BinRows rows{kRows,          kRows * count,    found.data(), target.data(),
                       rewards.data(), discounts.data(), bonus.data()};
    std::vector<float> memory(BinMemory(count));
    return BestBinKernels().cross_entropy(rows, bins(), memory.data(), by_found->data());
  }

  double Least(std::vector<float>* gradient) const {
    gradient->assign(found.size(), 0.0F);
    std::vector<float> least(kRows);
    std::vector<float> memory(BinMemory(count));
    BestBinKernels().least(found.data(), kRows, bins(), 1.0F, memory.data(), least.data(),
                           gradient->data());
    double sum = 0.0;
    for (const float value : least) sum += value;
    return sum;
  }

  int count;
  std::vector<float> values, found, target;
  std::vector<float> rewards{0.3F, -9.0F, 9.0F};
  std::vector<float> discounts{0.9F, 0.0F, 0.9F};
  std::vector<float> bonus{0.1F, 0.2F, -0.3F};
};

class BinKernelsTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Counts, BinKernelsTest, testing::Values(2, 16, 17, 101));

TEST_P(BinKernelsTest, GradientsAreDifferenceQuotients) {
  Critics critics(GetParam());
  constexpr float kStep = 1e-2F;
  using Function = double (Critics::*)(std::vector<float>*) const;
  for (const Function function : {Function(&Critics::Loss), Function(&Critics::Least)}) {
    std::vector<float> gradient;
    std::vector<float> other;
    (critics.*function)(&gradient);
    for (size_t i = 0; i < critics.found.size(); ++i) {
      const float before = critics.found[i];
      critics.found[i] = before + kStep;
      const double above = (critics.*function)(&other);
      critics.found[i] = before - kStep;
      const double below = (critics.*function)(&other);
      critics.found[i] = before;
      EXPECT_NEAR(gradient[i], (above - below) / (2.0 * kStep), 1e-3) << i;
    }
  }
}

TEST_P(BinKernelsTest, NaNStaysNaN) {
  Critics critics(GetParam());
  critics.target[0] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> gradient;
  EXPECT_TRUE(std::isnan(critics.Loss(&gradient)));
  critics = Critics(GetParam());
  critics.rewards[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(critics.Loss(&gradient)));
}

}  // namespace
}  // namespace pyfastenv
