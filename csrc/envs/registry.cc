#include "envs/registry.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <numeric>

#include "core/errors.h"

// id, factory (defined in a file under envs/), max_episode_steps, reward_threshold
#define PYFASTENV_ENVIRONMENTS(ENV)                                            \
  ENV("Ant-v5", MakeAntV5, 1000, 6000.0)                                       \
  ENV("HalfCheetah-v5", MakeHalfCheetahV5, 1000, 4800.0)                       \
  ENV("Hopper-v5", MakeHopperV5, 1000, 3800.0)                                 \
  ENV("Humanoid-v5", MakeHumanoidV5, 1000, kNone)                              \
  ENV("HumanoidStandup-v5", MakeHumanoidStandupV5, 1000, kNone)                \
  ENV("InvertedDoublePendulum-v5", MakeInvertedDoublePendulumV5, 1000, 9100.0) \
  ENV("InvertedPendulum-v5", MakeInvertedPendulumV5, 1000, 950.0)              \
  ENV("Pusher-v5", MakePusherV5, 100, 0.0)                                     \
  ENV("Reacher-v5", MakeReacherV5, 50, -3.75)                                  \
  ENV("Swimmer-v5", MakeSwimmerV5, 1000, 360.0)                                \
  ENV("Walker2d-v5", MakeWalker2dV5, 1000, kNone)                              \
  ENV("Ant-v4", MakeAntV4, 1000, 6000.0)                                       \
  ENV("HalfCheetah-v4", MakeHalfCheetahV4, 1000, 4800.0)                       \
  ENV("Hopper-v4", MakeHopperV4, 1000, 3800.0)                                 \
  ENV("Humanoid-v4", MakeHumanoidV4, 1000, kNone)                              \
  ENV("HumanoidStandup-v4", MakeHumanoidStandupV4, 1000, kNone)                \
  ENV("InvertedDoublePendulum-v4", MakeInvertedDoublePendulumV4, 1000, 9100.0) \
  ENV("InvertedPendulum-v4", MakeInvertedPendulumV4, 1000, 950.0)              \
  ENV("Reacher-v4", MakeReacherV4, 50, -3.75)                                  \
  ENV("Swimmer-v4", MakeSwimmerV4, 1000, 360.0)                                \
  ENV("Walker2d-v4", MakeWalker2dV4, 1000, kNone)                              \
  ENV("AntDir-v5", MakeAntDirV5, 100, kNone)                                   \
  ENV("AntGoal-v5", MakeAntGoalV5, 100, kNone)                                 \
  ENV("AntVel-v5", MakeAntVelV5, 100, kNone)                                   \
  ENV("HalfCheetahDir-v5", MakeHalfCheetahDirV5, 100, kNone)                   \
  ENV("HalfCheetahVel-v5", MakeHalfCheetahVelV5, 100, kNone)                   \
  ENV("Acrobot-v1", MakeAcrobotV1, 500, -100.0)                                \
  ENV("CartPole-v0", MakeCartPole, 200, 195.0)                                 \
  ENV("CartPole-v1", MakeCartPole, 500, 475.0)                                 \
  ENV("MountainCar-v0", MakeMountainCarV0, 200, -110.0)                        \
  ENV("MountainCarContinuous-v0", MakeMountainCarContinuousV0, 999, 90.0)      \
  ENV("Pendulum-v1", MakePendulumV1, 200, kNone)

namespace pyfastenv {

#define PYFASTENV_DECLARE(id, make, steps, threshold) \
  std::unique_ptr<Environment> make(const Params& params, ModelCache& models);
PYFASTENV_ENVIRONMENTS(PYFASTENV_DECLARE)
#undef PYFASTENV_DECLARE

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Levenshtein distance, case ignored
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const bool same = std::tolower(a[i]) == std::tolower(b[j]);
      const size_t substitution = diagonal + (same ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitution, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

const std::vector<EnvEntry>& Registry() {
  static const std::vector<EnvEntry> registry = {
#define PYFASTENV_ENTRY(id, make, steps, threshold) {id, make, steps, threshold},
      PYFASTENV_ENVIRONMENTS(PYFASTENV_ENTRY)
#undef PYFASTENV_ENTRY
  };
  return registry;
}

const EnvEntry& FindEnv(const std::string& id) {
  std::vector<const EnvEntry*> entries;
  for (const auto& entry : Registry()) {
    if (entry.id == id) return entry;
    entries.push_back(&entry);
  }
  constexpr size_t kNearest = 3;
  std::stable_sort(entries.begin(), entries.end(), [&](const EnvEntry* a, const EnvEntry* b) {
    return EditDistance(id, a->id) < EditDistance(id, b->id);
  });
  std::string message = "unknown environment id '" + id + "'";
  const std::string nearest = entries[0]->id;
  if (2 * EditDistance(id, nearest) > std::max(id.size(), nearest.size())) {
    throw UsageError(UsageError::Code::kValue, message + "; `pyfastenv envs` lists all");
  }
  message += "; the nearest ones:";
  for (size_t i = 0; i < kNearest; ++i)
    message += (i == 0 ? " " : ", ") + std::string(entries[i]->id);
  throw UsageError(UsageError::Code::kValue, message);
}

}  // namespace pyfastenv
