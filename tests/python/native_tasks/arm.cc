// dict_tasks.Arm in C++: the same numbers, bit for bit.
#include <pyfastenv/task.h>

#include <cmath>

using namespace pyfastenv;  // NOLINT

const Parameter near("near", 0.05);
const Memory goal("goal", 2);
const Info is_success("is_success", 0, /*of_reset=*/true);
const Obs reach("observation", 4), achieved("achieved_goal", 2), desired("desired_goal", 2);

const mjtNum* Tip(const Env& env) { return env.data->site_xpos; }

void Reset(Env& env) {
  for (int i = 0; i < 2; ++i) env.data->qpos[i] = env.Uniform(-1.0, 1.0);
  for (int i = 0; i < 2; ++i) env[goal][i] = env.Uniform(-0.4, 0.4);
  env[is_success] = 0.0;
}

Result Step(Env& env) {
  if (env.action()[0] > 1.5) throw std::invalid_argument("too \\ strong");
  if (env.action()[0] < -1.5) env.Run([] { mju_error("no more"); });
  env.Simulate();
  const double x = Tip(env)[0] - env[goal][0];
  const double y = Tip(env)[1] - env[goal][1];
  const double distance = std::hypot(x, y);
  env[is_success] = distance < env[near] ? 1.0 : 0.0;
  return {.reward = -distance, .terminated = std::abs(env.data->qpos[1]) > 1.2};
}

void Observe(Env& env) {
  for (int i = 0; i < 2; ++i) {
    env[reach][i] = env.data->qpos[i];
    env[reach][2 + i] = env.data->qvel[i];
  }
  env[achieved].Copy(Tip(env));
  env[desired].Copy(env[goal].begin());
}

PYFASTENV_TASK({.model = "arm.xml",
                .frame_skip = 2,
                .max_episode_steps = 25,
                .reads = {"site_xpos"},
                .reset = Reset,
                .step = Step,
                .observation = Observe})
