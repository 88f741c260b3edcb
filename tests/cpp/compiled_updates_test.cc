// The compiled updates of the ensemble and PPO: the same bits on any threads and in any calls.
// Those of SAC and FlashSAC, and all of them beside PyTorch:
// tests/python/test_{sac,unit_networks,dynamics, ppo}.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "learn/ensemble_update.h"
#include "learn/ppo_update.h"

namespace pyfastenv {
namespace {

using Floats = std::vector<float>;

Floats Normals(size_t count, float scale) {
  std::mt19937 random(1);
  std::normal_distribution<float> draw(0.0F, scale);
  Floats numbers(count);
  for (float& x : numbers) x = draw(random);
  return numbers;
}

/// Some order of `count` rows, another for each `which`.
std::vector<int64_t> Order(int64_t count, int64_t which) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) order.push_back((37 * i + 11 * which) % count);
  return order;
}

// ---- the ensemble ----

class EnsembleInBfloat16 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!EnsembleUpdate::Available()) GTEST_SKIP() << "neither AMX nor AVX512-BF16 here";
  }
};

constexpr int kSamples = 300;

struct Ensemble {
  explicit Ensemble(int num_threads, int batch_size = 64)
      : update([&] {
          EnsembleOptions options;
          options.num_inputs = 3;
          options.num_targets = 2;
          options.hidden_sizes = {40, 33};  // no multiples of a tile
          options.num_networks = 6;
          options.num_seeds = 2;
          options.batch_size = batch_size;
          options.num_threads = num_threads;
          return options;
        }()),
        parameters(Normals(update.num_parameters(), 0.2F)),
        mean(parameters.size()),
        square(parameters.size()),
        samples(Normals(size_t{2} * kSamples * 5, 1.0F)) {
    const auto bounds = parameters.end() - 2 * 6 * 2;  // the upper ones, then the lower ones
    std::fill(bounds, bounds + 6 * 2, 0.5F);
    std::fill(bounds + 6 * 2, parameters.end(), -10.0F);
  }

  void Epoch(int64_t number) {
    std::vector<int64_t> order;
    for (int network = 0; network < 6; ++network) {
      const auto mine = Order(kSamples, 6 * number + network);
      order.insert(order.end(), mine.begin(), mine.end());
    }
    EnsembleHyper hyper;
    hyper.decays = {0.0F, 1e-4F, 1e-4F};
    update.RunEpoch(samples.data(), kSamples, order.data(), kSamples, 5 * number, hyper,
                    {parameters.data(), mean.data(), square.data()});
  }

  Floats Errors() {
    Floats errors(6);
    update.Errors(samples.data(), kSamples, parameters.data(), errors.data());
    return errors;
  }

  EnsembleUpdate update;
  Floats parameters, mean, square, samples;
};

TEST_F(EnsembleInBfloat16, EpochsDoNotDependOnThreads) {
  Ensemble one(1), four(4);
  for (int i = 0; i < 3; ++i) {
    one.Epoch(i);
    four.Epoch(i);
    EXPECT_EQ(one.parameters, four.parameters);
    EXPECT_EQ(one.Errors(), four.Errors());
  }
}

TEST_F(EnsembleInBfloat16, ErrorsDoNotDependOnTheBatch) {
  const Floats small = Ensemble(1, 7).Errors(), large = Ensemble(1, 512).Errors();
  for (size_t i = 0; i < small.size(); ++i) EXPECT_NEAR(small[i], large[i], 1e-4F * small[i]);
}

// ---- PPO ----

struct Ppo {
  static constexpr int64_t kSamples = 700;
  static constexpr int kEpochs = 3;

  Ppo(int num_threads, int minibatch_size)
      : update({.obs_size = 5,
                .policy_sizes = {5, 40, 33, 3},
                .value_sizes = {5, 40, 33, 1},
                .num_threads = num_threads}),
        parameters(Normals(update.num_parameters(), 0.2F)),
        mean(parameters.size()),
        square(parameters.size()),
        samples(Normals(static_cast<size_t>(kSamples * update.num_columns()), 1.0F)) {
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      const auto mine = Order(kSamples, epoch);
      orders.insert(orders.end(), mine.begin(), mine.end());
    }
    hyper.lr = 3e-3F;
    hyper.minibatch_size = minibatch_size;
  }

  std::vector<PpoMetrics> Run(int first, int count) {
    const int64_t minibatches = kSamples / hyper.minibatch_size;
    return update.RunEpochs(samples.data(), orders.data() + first * kSamples, count, kSamples,
                            hyper, first * minibatches, parameters.data(), mean.data(),
                            square.data());
  }

  PpoUpdate update;
  PpoHyper hyper;
  Floats parameters, mean, square, samples;
  std::vector<int64_t> orders;
};

TEST(PpoUpdate, EpochsOfOneCallAreThoseOfSeveral) {
  Ppo together(2, 64), apart(2, 64);
  const std::vector<PpoMetrics> metrics = together.Run(0, Ppo::kEpochs);
  for (int epoch = 0; epoch < Ppo::kEpochs; ++epoch) {
    const PpoMetrics one = apart.Run(epoch, 1).front();
    EXPECT_EQ(one.grad_norm, metrics[static_cast<size_t>(epoch)].grad_norm);
    EXPECT_EQ(one.means.value_loss, metrics[static_cast<size_t>(epoch)].means.value_loss);
  }
  EXPECT_EQ(together.parameters, apart.parameters);
}

TEST(PpoUpdate, ValuesDoNotDependOnThreadsOrNeighbours) {
  Ppo training(3, 7);
  const Floats& obs = training.samples;
  Floats all(101), one(1);
  training.update.Values(obs.data(), 101, training.parameters.data(), all.data());
  for (const size_t i : {size_t{0}, size_t{63}, size_t{100}}) {
    training.update.Values(obs.data() + 5 * i, 1, training.parameters.data(), one.data());
    EXPECT_EQ(one[0], all[i]);
  }
  training.update.Values(obs.data(), 0, training.parameters.data(), nullptr);
}

}  // namespace
}  // namespace pyfastenv
