// One step of one environment with gymnasium's bookkeeping: truncation, autoreset, diverged
// physics.
#pragma once

#include "core/buffers.h"
#include "core/env.h"
#include "core/env_store.h"

namespace pyfastenv {

/// gymnasium.vector.AutoresetMode.
enum class AutoresetMode { kNextStep, kSameStep, kDisabled };

struct EpisodeRules {
  AutoresetMode autoreset_mode = AutoresetMode::kNextStep;
  int max_episode_steps = 0;          // 0: episodes are never truncated
  std::vector<double> reset_options;  // of the resets that autoreset does
  bool amended = false;               // steps' rewards are told by VectorEnv::Amend
};

struct Transition {
  double reward = 0.0;
  bool terminated = false;
  bool truncated = false;
  uint8_t kind = kResetInfo;  // ResultKind bits

  bool ended() const { return terminated || truncated; }
  /// Whether the environment stepped, rather than being reset.
  bool stepped() const { return (kind & (kStepInfo | kFinal | kDiverged)) != 0; }
};

/// Steps (or autoresets) the loaded environment. `progress` is the caller's copy; it is spoiled if
/// an exception comes out. `on_end(transition)` runs at an episode's end, while `env`, `info` and
/// `progress` are still those of the last step.
template <class OnEnd>
Transition Advance(Environment& env, const EpisodeRules& rules, const Action& action,
                   Progress& progress, double* info, OnEnd on_end) {
  Transition transition;
  const auto reset = [&] {
    env.Reset(progress.random, rules.reset_options, info);
    progress.elapsed = 0;
    progress.episode_return = 0.0;
    progress.flags = 0;
  };
  if ((progress.flags & kAutoreset) != 0) {
    reset();
    return transition;
  }
  const StepResult result = env.Step(action, progress.random, info);
  ++progress.elapsed;
  if (!rules.amended || result.diverged) progress.episode_return += result.reward;
  transition.reward = result.reward;
  transition.terminated = result.terminated;
  transition.truncated = rules.max_episode_steps > 0 && progress.elapsed >= rules.max_episode_steps;
  transition.kind = result.diverged ? kResetInfo : kStepInfo;
  if (transition.ended()) {
    on_end(transition);
    switch (rules.autoreset_mode) {
      case AutoresetMode::kNextStep:
        progress.flags = kAutoreset;
        break;
      case AutoresetMode::kDisabled:
        progress.flags = kNeedsReset;
        break;
      case AutoresetMode::kSameStep:
        reset();
        transition.kind = kResetInfo | kFinal;
        break;
    }
  }
  if (result.diverged) transition.kind |= kDiverged;
  return transition;
}

}  // namespace pyfastenv
