// Compared with PyTorch in tests/python/test_dynamics.py; here: threads, small batches.
#include "learn/ensemble_update.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "learn/bf16_kernels.h"

namespace pyfastenv {
namespace {

constexpr int kSamples = 300;

EnsembleOptions Options(bool bfloat16, int num_threads, int batch_size = 64) {
  EnsembleOptions options;
  options.bfloat16 = bfloat16;
  options.num_inputs = 3;
  options.num_targets = 2;
  options.hidden_sizes = {40, 33};  // no multiples of a tile
  options.num_networks = 6;
  options.num_seeds = 2;
  options.batch_size = batch_size;
  options.num_threads = num_threads;
  return options;
}

struct Training {
  explicit Training(const EnsembleOptions& options)
      : update(options),
        parameters(update.num_parameters()),
        mean(parameters.size()),
        square(parameters.size()) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& x : parameters) x = 0.2F * normal(random);
    // bounds: the upper ones, then the lower ones
    const size_t bounds = 6 * 2;
    std::fill(parameters.end() - 2 * bounds, parameters.end() - bounds, 0.5F);
    std::fill(parameters.end() - bounds, parameters.end(), -10.0F);
    for (int i = 0; i < 2 * kSamples; ++i) {
      const float x[3] = {normal(random), normal(random), normal(random)};
      for (const float value : x) samples.push_back(value);
      samples.push_back(x[0] - 2.0F * x[1]);
      samples.push_back(x[2] * x[0]);
    }
    for (int network = 0; network < 6; ++network) {
      std::vector<int64_t> mine(kSamples);
      std::iota(mine.begin(), mine.end(), 0);
      std::shuffle(mine.begin(), mine.end(), random);
      order.insert(order.end(), mine.begin(), mine.end());
    }
    hyper.decays = {0.0F, 1e-4F, 1e-4F};
  }

  void Epoch() {
    update.RunEpoch(samples.data(), kSamples, order.data(), kSamples, step, hyper,
                    {parameters.data(), mean.data(), square.data()});
    step += (kSamples + 63) / 64;
  }

  std::vector<float> Errors() {
    std::vector<float> errors(6);
    update.Errors(samples.data(), kSamples, parameters.data(), errors.data());
    return errors;
  }

  EnsembleUpdate update;
  EnsembleHyper hyper;
  std::vector<float> parameters, mean, square, samples;
  std::vector<int64_t> order;
  int64_t step = 0;
};

class EnsembleUpdateIn : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && BestBf16Kernels() == nullptr) {
      GTEST_SKIP() << "neither AMX nor AVX512-BF16 here";
    }
  }
};

TEST_P(EnsembleUpdateIn, ThreadsDoNotChangeResults) {
  Training one(Options(GetParam(), 1));
  Training four(Options(GetParam(), 4));
  for (int i = 0; i < 3; ++i) {
    one.Epoch();
    four.Epoch();
    EXPECT_EQ(one.parameters, four.parameters);
    EXPECT_EQ(one.Errors(), four.Errors());
  }
}

TEST_P(EnsembleUpdateIn, ErrorsDoNotDependOnTheBatch) {
  const std::vector<float> small = Training(Options(GetParam(), 1, 7)).Errors();
  const std::vector<float> large = Training(Options(GetParam(), 1, 512)).Errors();
  for (size_t i = 0; i < small.size(); ++i) EXPECT_NEAR(small[i], large[i], 1e-4F * small[i]);
}

INSTANTIATE_TEST_SUITE_P(Precisions, EnsembleUpdateIn, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "Bfloat16" : "Float32"; });

}  // namespace
}  // namespace pyfastenv
