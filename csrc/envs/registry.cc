#include "envs/registry.h"

#include <limits>

#include "core/errors.h"
#include "envs/mujoco/mujoco_env.h"

// id, factory (defined in a file under envs/), max_episode_steps, reward_threshold; before the
// steps gymnasium's generation, if the factory makes several
#define PYFASTENV_ENVIRONMENTS(ENV, GYM)                                          \
  GYM("Ant-v5", MakeAnt, kV5, 1000, 6000.0)                                       \
  GYM("HalfCheetah-v5", MakeHalfCheetah, kV5, 1000, 4800.0)                       \
  GYM("Hopper-v5", MakeHopper, kV5, 1000, 3800.0)                                 \
  GYM("Humanoid-v5", MakeHumanoid, kV5, 1000, kNone)                              \
  GYM("HumanoidStandup-v5", MakeHumanoidStandup, kV5, 1000, kNone)                \
  GYM("InvertedDoublePendulum-v5", MakeInvertedDoublePendulum, kV5, 1000, 9100.0) \
  GYM("InvertedPendulum-v5", MakeInvertedPendulum, kV5, 1000, 950.0)              \
  ENV("Pusher-v5", MakePusherV5, 100, 0.0)                                        \
  GYM("Reacher-v5", MakeReacher, kV5, 50, -3.75)                                  \
  GYM("Swimmer-v5", MakeSwimmer, kV5, 1000, 360.0)                                \
  GYM("Walker2d-v5", MakeWalker2d, kV5, 1000, kNone)                              \
  GYM("Ant-v4", MakeAnt, kV4, 1000, 6000.0)                                       \
  GYM("HalfCheetah-v4", MakeHalfCheetah, kV4, 1000, 4800.0)                       \
  GYM("Hopper-v4", MakeHopper, kV4, 1000, 3800.0)                                 \
  GYM("Humanoid-v4", MakeHumanoid, kV4, 1000, kNone)                              \
  GYM("HumanoidStandup-v4", MakeHumanoidStandup, kV4, 1000, kNone)                \
  GYM("InvertedDoublePendulum-v4", MakeInvertedDoublePendulum, kV4, 1000, 9100.0) \
  GYM("InvertedPendulum-v4", MakeInvertedPendulum, kV4, 1000, 950.0)              \
  GYM("Reacher-v4", MakeReacher, kV4, 50, -3.75)                                  \
  GYM("Swimmer-v4", MakeSwimmer, kV4, 1000, 360.0)                                \
  GYM("Walker2d-v4", MakeWalker2d, kV4, 1000, kNone)                              \
  ENV("AntDir-v5", MakeAntDirV5, 100, kNone)                                      \
  ENV("AntGoal-v5", MakeAntGoalV5, 100, kNone)                                    \
  ENV("AntVel-v5", MakeAntVelV5, 100, kNone)                                      \
  ENV("HalfCheetahDir-v5", MakeHalfCheetahDirV5, 100, kNone)                      \
  ENV("HalfCheetahVel-v5", MakeHalfCheetahVelV5, 100, kNone)                      \
  ENV("Acrobot-v1", MakeAcrobotV1, 500, -100.0)                                   \
  ENV("CartPole-v0", MakeCartPole, 200, 195.0)                                    \
  ENV("CartPole-v1", MakeCartPole, 500, 475.0)                                    \
  ENV("MountainCar-v0", MakeMountainCarV0, 200, -110.0)                           \
  ENV("MountainCarContinuous-v0", MakeMountainCarContinuousV0, 999, 90.0)         \
  ENV("Pendulum-v1", MakePendulumV1, 200, kNone)

namespace pyfastenv {

#define PYFASTENV_DECLARE(id, make, steps, threshold) \
  std::unique_ptr<Environment> make(const Params& params, ModelCache& models);
#define PYFASTENV_DECLARE_OF(id, make, version, steps, threshold) \
  std::unique_ptr<Environment> make(const Params& params, ModelCache& models, GymVersion version);
PYFASTENV_ENVIRONMENTS(PYFASTENV_DECLARE, PYFASTENV_DECLARE_OF)
#undef PYFASTENV_DECLARE
#undef PYFASTENV_DECLARE_OF

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

template <auto kMake, GymVersion kVersion>
std::unique_ptr<Environment> Of(const Params& params, ModelCache& models) {
  return kMake(params, models, kVersion);
}

}  // namespace

const std::vector<EnvEntry>& Registry() {
  static const std::vector<EnvEntry> registry = {
#define PYFASTENV_ENTRY(id, make, steps, threshold) {id, make, steps, threshold},
#define PYFASTENV_ENTRY_OF(id, make, version, steps, threshold) \
  {id, Of<make, GymVersion::version>, steps, threshold},
      PYFASTENV_ENVIRONMENTS(PYFASTENV_ENTRY, PYFASTENV_ENTRY_OF)
#undef PYFASTENV_ENTRY
#undef PYFASTENV_ENTRY_OF
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
