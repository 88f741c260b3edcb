// Compared with PyTorch in tests/python/test_ppo.py; here: threads.
#include "learn/ppo_update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace pyfastenv {
namespace {

constexpr int64_t kSamples = 700;
constexpr int kEpochs = 3;

struct Training {
  Training(int num_threads, bool discrete, bool bfloat16 = false)
      : update({.obs_size = 5,
                .policy_sizes = {5, 40, 33, 3},
                .value_sizes = {5, 40, 33, 1},
                .discrete = discrete,
                .bfloat16 = bfloat16,
                .num_threads = num_threads}),
        parameters(update.num_parameters()),
        mean(parameters.size()),
        square(parameters.size()) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& x : parameters) x = 0.2F * normal(random);
    const auto columns = static_cast<size_t>(update.num_columns());
    samples.resize(static_cast<size_t>(kSamples) * columns);
    for (float& x : samples) x = normal(random);
    for (size_t i = 0; discrete && i < samples.size(); i += columns) samples[i + 5] = 2.0F;
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      std::vector<int64_t> mine(kSamples);
      std::iota(mine.begin(), mine.end(), 0);
      std::shuffle(mine.begin(), mine.end(), random);
      orders.insert(orders.end(), mine.begin(), mine.end());
    }
    hyper.lr = 3e-3F;
  }

  std::vector<PpoMetrics> Run() {
    return update.RunEpochs(samples.data(), orders.data(), kEpochs, kSamples, hyper, 0,
                            parameters.data(), mean.data(), square.data());
  }

  PpoUpdate update;
  PpoHyper hyper;
  std::vector<float> parameters, mean, square, samples;
  std::vector<int64_t> orders;
};

TEST(PpoUpdate, DoesNotDependOnThreads) {
  for (const auto& [discrete, bfloat16] :
       {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
    if (bfloat16 && BestBf16Kernels() == nullptr) continue;
    for (const int minibatch_size : {7, 100, 256, 700}) {  // 1 to 8 shards of a network
      Training alone(1, discrete, bfloat16);
      alone.hyper.minibatch_size = minibatch_size;
      const std::vector<PpoMetrics> expected = alone.Run();
      for (const int num_threads : {2, 3, 8, 40}) {
        Training together(num_threads, discrete, bfloat16);
        together.hyper.minibatch_size = minibatch_size;
        const std::vector<PpoMetrics> metrics = together.Run();
        EXPECT_EQ(together.parameters, alone.parameters) << num_threads << ' ' << minibatch_size;
        EXPECT_EQ(together.square, alone.square);
        ASSERT_EQ(metrics.size(), static_cast<size_t>(kEpochs));
        for (size_t i = 0; i < metrics.size(); ++i) {
          EXPECT_EQ(metrics[i].grad_norm, expected[i].grad_norm);
          EXPECT_EQ(metrics[i].means.policy_loss, expected[i].means.policy_loss);
          EXPECT_EQ(metrics[i].means.value_loss, expected[i].means.value_loss);
          EXPECT_EQ(metrics[i].means.entropy, expected[i].means.entropy);
          EXPECT_EQ(metrics[i].means.kl, expected[i].means.kl);
          EXPECT_EQ(metrics[i].means.clipped, expected[i].means.clipped);
        }
      }
    }
  }
}

TEST(PpoUpdate, ValuesDoNotDependOnThreadsOrNeighbours) {
  Training training(3, false);
  std::vector<float> obs(training.samples.begin(), training.samples.begin() + 101 * 5);
  std::vector<float> all(101), one(1);
  training.update.Values(obs.data(), 101, training.parameters.data(), all.data());
  for (const size_t i : {size_t{0}, size_t{63}, size_t{100}}) {
    training.update.Values(obs.data() + 5 * i, 1, training.parameters.data(), one.data());
    EXPECT_EQ(one[0], all[i]);
  }
  training.update.Values(obs.data(), 0, training.parameters.data(), nullptr);
}

}  // namespace
}  // namespace pyfastenv
