// Compared with PyTorch in tests/python/test_sac.py; here: threads.
#include "learn/sac_update.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "learn/bf16_kernels.h"

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

SacOptions Options(int num_seeds, int num_threads, bool bfloat16) {
  SacOptions options;
  options.bfloat16 = bfloat16;
  options.obs_size = 5;
  options.action_size = 2;
  options.hidden_sizes = {40, 80};
  options.layer_norm = true;
  options.num_seeds = num_seeds;
  options.batch_size = 70;  // none of these is a multiple of a tile or of a block
  options.num_threads = num_threads;
  return options;
}

class SacUpdateIn : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && BestBf16Kernels() == nullptr) {
      GTEST_SKIP() << "neither AMX nor AVX512-BF16 here";
    }
  }
};

TEST_P(SacUpdateIn, ThreadsDoNotChangeResults) {
  for (const int num_seeds : {1, 2, 5}) {
    Training alone(Options(num_seeds, 1, GetParam()), 1);
    Training together(Options(num_seeds, 5, GetParam()), 1);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(alone.Steps(4), together.Steps(4));
      EXPECT_EQ(alone.policy, together.policy);
      EXPECT_EQ(alone.critic, together.critic);
      EXPECT_EQ(alone.target, together.target);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, SacUpdateIn, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "Bfloat16" : "Float32"; });

}  // namespace
}  // namespace pyfastenv
