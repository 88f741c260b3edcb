#include "envs/registry.h"

#include <limits>

#include "core/errors.h"

// id, factory (defined in a file under envs/), gymnasium's generation (some factories make both,
// others take no notice), max_episode_steps, reward_threshold
#define PYFASTENV_ENVIRONMENTS(ENV)                                            \
  ENV("Ant-v5", kAnt, kV5, 1000, 6000.0)                                       \
  ENV("HalfCheetah-v5", kHalfCheetah, kV5, 1000, 4800.0)                       \
  ENV("Hopper-v5", kHopper, kV5, 1000, 3800.0)                                 \
  ENV("Humanoid-v5", kHumanoid, kV5, 1000, kNone)                              \
  ENV("HumanoidStandup-v5", kHumanoidStandup, kV5, 1000, kNone)                \
  ENV("InvertedDoublePendulum-v5", kInvertedDoublePendulum, kV5, 1000, 9100.0) \
  ENV("InvertedPendulum-v5", kInvertedPendulum, kV5, 1000, 950.0)              \
  ENV("Pusher-v5", kPusher, kV5, 100, 0.0)                                     \
  ENV("Reacher-v5", kReacher, kV5, 50, -3.75)                                  \
  ENV("Swimmer-v5", kSwimmer, kV5, 1000, 360.0)                                \
  ENV("Walker2d-v5", kWalker2d, kV5, 1000, kNone)                              \
  ENV("Ant-v4", kAnt, kV4, 1000, 6000.0)                                       \
  ENV("HalfCheetah-v4", kHalfCheetah, kV4, 1000, 4800.0)                       \
  ENV("Hopper-v4", kHopper, kV4, 1000, 3800.0)                                 \
  ENV("Humanoid-v4", kHumanoid, kV4, 1000, kNone)                              \
  ENV("HumanoidStandup-v4", kHumanoidStandup, kV4, 1000, kNone)                \
  ENV("InvertedDoublePendulum-v4", kInvertedDoublePendulum, kV4, 1000, 9100.0) \
  ENV("InvertedPendulum-v4", kInvertedPendulum, kV4, 1000, 950.0)              \
  ENV("Reacher-v4", kReacher, kV4, 50, -3.75)                                  \
  ENV("Swimmer-v4", kSwimmer, kV4, 1000, 360.0)                                \
  ENV("Walker2d-v4", kWalker2d, kV4, 1000, kNone)                              \
  ENV("AntDir-v5", kAntDir, kV5, 100, kNone)                                   \
  ENV("AntGoal-v5", kAntGoal, kV5, 100, kNone)                                 \
  ENV("AntVel-v5", kAntVel, kV5, 100, kNone)                                   \
  ENV("HalfCheetahDir-v5", kHalfCheetahDir, kV5, 100, kNone)                   \
  ENV("HalfCheetahVel-v5", kHalfCheetahVel, kV5, 100, kNone)                   \
  ENV("Acrobot-v1", kAcrobot, kV5, 500, -100.0)                                \
  ENV("CartPole-v0", kCartPole, kV5, 200, 195.0)                               \
  ENV("CartPole-v1", kCartPole, kV5, 500, 475.0)                               \
  ENV("MountainCar-v0", kMountainCar, kV5, 200, -110.0)                        \
  ENV("MountainCarContinuous-v0", kMountainCarContinuous, kV5, 999, 90.0)      \
  ENV("Pendulum-v1", kPendulum, kV5, 200, kNone)

namespace pyfastenv {

#define PYFASTENV_DECLARE(id, make, version, steps, threshold) extern const EnvFactory make;
PYFASTENV_ENVIRONMENTS(PYFASTENV_DECLARE)
#undef PYFASTENV_DECLARE

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace

const std::vector<EnvEntry>& Registry() {
  static const std::vector<EnvEntry> registry = {
#define PYFASTENV_ENTRY(id, make, version, steps, threshold) \
  {id, make, GymVersion::version, steps, threshold},
      PYFASTENV_ENVIRONMENTS(PYFASTENV_ENTRY)
#undef PYFASTENV_ENTRY
  };
  return registry;
}

const EnvEntry& FindEnv(const std::string& id) {
  for (const EnvEntry& entry : Registry()) {
    if (entry.id == id) return entry;
  }
  throw BadValue("unknown environment id '", id, "'; `pyfastenv envs` lists all");
}

}  // namespace pyfastenv
