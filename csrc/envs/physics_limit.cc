#include "envs/physics_limit.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "core/errors.h"
#include "envs/mujoco/mujoco_env.h"
#include "envs/registry.h"

namespace pyfastenv {

namespace {

struct Share {
  std::unique_ptr<Environment> owner;
  MujocoEnv* env = nullptr;
  int begin = 0;
  int end = 0;
  std::vector<double> rows;     // (end - begin, state_size), after the first reset
  std::vector<Random> random;   // after the first reset
  std::vector<uint8_t> resets;  // (num_steps, end - begin): this call is a reset
  double seconds = 0.0;
};

class Runner {
 public:
  explicit Runner(const PhysicsLimitOptions& options)
      : options_(options),
        entry_(FindEnv(options.env_id)),
        models_(options.assets_dir, ModelParts::kAll) {
    for (int k = 0; k < options.num_threads; ++k) {
      Share share;
      share.owner = entry_.make(Params(), models_, entry_.version);
      share.env = dynamic_cast<MujocoEnv*>(share.owner.get());
      if (share.env == nullptr) throw BadValue(options.env_id, " is not a MuJoCo environment");
      share.env->Prepare(share.env->InitialLayout());
      share.env->Adopt();
      share.begin = options.num_envs * k / options.num_threads;
      share.end = options.num_envs * (k + 1) / options.num_threads;
      shares_.push_back(std::move(share));
    }
  }

  double Measure() {
    // first with the whole task, to learn which calls are resets; then the physics alone, timed
    RunAll([this](Share& share) { Rehearse(share); });
    RunAll([this](Share& share) { Race(share); });
    double rate = 0.0;
    for (const Share& share : shares_) {
      rate += static_cast<double>(share.end - share.begin) * options_.num_steps / share.seconds;
    }
    return rate;
  }

 private:
  template <class F>
  void RunAll(F run) {
    std::vector<std::thread> threads;
    std::exception_ptr error;
    std::atomic<bool> failed{false};
    ready_.store(0);
    for (Share& share : shares_) {
      threads.emplace_back([&] {
        try {
          ready_.fetch_add(1);
          while (ready_.load() < static_cast<int>(shares_.size())) std::this_thread::yield();
          run(share);
        } catch (...) {
          if (!failed.exchange(true)) error = std::current_exception();
        }
      });
    }
    for (auto& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
  }

  const float* ActionOf(int step, int env) const {
    const auto size = static_cast<size_t>(shares_[0].env->spec().action_size());
    return options_.actions + (static_cast<size_t>(step) * static_cast<size_t>(options_.num_envs) +
                               static_cast<size_t>(env)) *
                                  size;
  }

  void Rehearse(Share& share) {
    MujocoEnv& env = *share.env;
    const auto count = static_cast<size_t>(share.end - share.begin);
    const auto stride = static_cast<size_t>(env.InitialLayout().size());
    const int action_size = env.spec().action_size();
    std::vector<double> info(static_cast<size_t>(env.spec().info_size()));
    share.resets.resize(static_cast<size_t>(options_.num_steps) * count);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t seed[] = {options_.seed + static_cast<uint32_t>(share.begin) +
                               static_cast<uint32_t>(i)};
      Random random(seed);
      env.Load(env.InitialRow().data());
      env.Reset(random, {}, info.data());
      share.rows.resize((i + 1) * stride);
      env.Save(&share.rows[i * stride]);
      share.random.push_back(random);
      bool reset = false;
      int elapsed = 0;
      for (int t = 0; t < options_.num_steps; ++t) {
        share.resets[static_cast<size_t>(t) * count + i] = reset ? 1 : 0;
        if (reset) {
          env.Reset(random, {}, info.data());
          elapsed = 0;
          reset = false;
        } else {
          const Action action(ActionOf(t, share.begin + static_cast<int>(i)), DType::kFloat32,
                              action_size);
          const bool terminated = env.Step(action, random, info.data()).terminated;
          reset = terminated || ++elapsed >= entry_.max_episode_steps;
        }
      }
    }
  }

  void Race(Share& share) {
    MujocoEnv& env = *share.env;
    Workspace& workspace = env.workspace();
    const auto count = static_cast<size_t>(share.end - share.begin);
    const auto stride = static_cast<size_t>(env.InitialLayout().size());
    const int action_size = env.spec().action_size();
    std::vector<double> info(static_cast<size_t>(env.spec().info_size()));
    const auto start = std::chrono::steady_clock::now();
    for (int t = 0; t < options_.num_steps; ++t) {
      for (size_t i = 0; i < count; ++i) {
        double* row = &share.rows[i * stride];
        workspace.Load(row);
        if (share.resets[static_cast<size_t>(t) * count + i] != 0) {
          env.Reset(share.random[i], {}, info.data());
        } else {
          const float* action = ActionOf(t, share.begin + static_cast<int>(i));
          std::copy_n(action, action_size, workspace.data().ctrl);
          for (int k = 0; k < env.frame_skip(); ++k) mj_step(&workspace.model(), &workspace.data());
        }
        workspace.Save(row);
      }
    }
    share.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  const PhysicsLimitOptions options_;
  const EnvEntry& entry_;
  ModelCache models_;
  std::vector<Share> shares_;
  std::atomic<int> ready_{0};
};

}  // namespace

double MeasurePhysicsLimit(const PhysicsLimitOptions& options) { return Runner(options).Measure(); }

}  // namespace pyfastenv
