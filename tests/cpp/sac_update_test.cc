// Compared with PyTorch in tests/python/test_sac.py; here: threads.
#include "learn/sac_update.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace pyfastenv {
namespace {

struct Training {
  Training(const SacOptions& options, int seed) : options(options), update(options), random(seed) {
    for (auto* vector : {&policy, &policy_mean, &policy_square}) {
      vector->resize(update.policy_size(true));
    }
    for (auto* vector : {&critic, &critic_mean, &critic_square, &target}) {
      vector->resize(update.critic_size());
    }
    std::normal_distribution<float> normal(0.0F, 0.1F);
    // the same networks for all seeds, layer by layer
    for (float& x : policy) x = normal(random);
    for (float& x : critic) x = normal(random);
    target = critic;
  }

  std::vector<float> Steps(int count) {
    const int width = 2 * options.obs_size + options.action_size + 2;
    const auto steps = [&](int per_seed) {
      return static_cast<size_t>(count * options.num_seeds * per_seed);
    };
    std::vector<float> rows(steps(options.batch_size * width));
    std::vector<float> noise(steps(2 * options.batch_size * options.action_size));
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < rows.size(); ++i) {
      const int column = static_cast<int>(i % static_cast<size_t>(width));
      // reward 1, terminal: the values are to become 1
      rows[i] = column == width - 2 ? 1.0F : (column == width - 1 ? 0.0F : normal(random));
    }
    for (float& x : noise) x = normal(random);
    std::vector<float> metrics(static_cast<size_t>(SacUpdate::kNumMetrics * options.num_seeds));
    SacVectors vectors;
    vectors.policy.parameters = policy.data();
    vectors.policy.mean = policy_mean.data();
    vectors.policy.square = policy_square.data();
    vectors.critic.parameters = critic.data();
    vectors.critic.mean = critic_mean.data();
    vectors.critic.square = critic_square.data();
    vectors.target = target.data();
    update.Run(rows.data(), noise.data(), count, step, SacHyper{}, vectors, metrics.data());
    step += count;
    return metrics;
  }

  SacOptions options;
  SacUpdate update;
  std::mt19937 random;
  int64_t step = 0;
  std::vector<float> policy, policy_mean, policy_square;
  std::vector<float> critic, critic_mean, critic_square, target;
};

SacOptions Options(int num_seeds, int num_threads) {
  SacOptions options;
  options.obs_size = 5;
  options.action_size = 2;
  options.hidden_sizes = {40, 64};
  options.layer_norm = true;
  options.num_seeds = num_seeds;
  options.batch_size = 50;  // none of these is a multiple of a tile
  options.num_threads = num_threads;
  return options;
}

TEST(SacUpdate, ThreadsDoNotChangeResults) {
  if (BestBf16Kernels() == nullptr) GTEST_SKIP() << "neither AMX nor AVX512-BF16 here";
  Training one(Options(5, 1), 1);
  Training three(Options(5, 3), 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(one.Steps(4), three.Steps(4));
    EXPECT_EQ(one.policy, three.policy);
    EXPECT_EQ(one.critic, three.critic);
    EXPECT_EQ(one.target, three.target);
  }
}

}  // namespace
}  // namespace pyfastenv
