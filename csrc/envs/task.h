// Own tasks in C++: what a file for pyfastenv.compile_task includes (docs/own_tasks.md).
//
//   #include <pyfastenv/task.h>
//   using namespace pyfastenv;
//
//   const Parameter target("target", 0.5);   // a keyword argument of make_vec
//   const Obs position("position", 1);       // obs["position"]
//
//   void Reset(Env& env) { env.data->qpos[0] = env.Uniform(-0.1, 0.1); }
//   Result Step(Env& env) {
//     env.Simulate();
//     const double distance = std::abs(env.data->qpos[0] - env[target]);
//     return {.reward = -distance, .terminated = distance > 2.0};
//   }
//   void Observe(Env& env) { env[position] = env.data->qpos[0]; }
//
//   PYFASTENV_TASK({.model = "cart.xml", .frame_skip = 5,
//                   .reset = Reset, .step = Step, .observation = Observe})
//
// Functions run in the pool's threads, many at once: they keep nothing but in Memory. An exception
// is an EnvError of that environment. Installed with the package; knows nothing of the pool.
#pragma once

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string>

#include "task_frame.h"

namespace pyfastenv {

// ---- what a task declares, as constants of its file ----

namespace internal {

/// All declarations, a line each: kind, name and numbers, in order.
inline std::string& Declarations() {
  static std::string text;
  return text;
}

template <class... Numbers>
void Declare(const char* kind, const char* name, Numbers... numbers) {
  std::ostringstream line;
  line.precision(17);
  line << kind << '\t' << name;
  ((line << '\t' << numbers), ...);
  Declarations() += line.str() + '\n';
}

/// Places in a section of the frame are given in order.
template <class Tag>
int Place(int size) {
  static int next = 0;
  next += size;
  return next - size;
}

}  // namespace internal

/// A number that is alike for all environments: a keyword argument of make_vec.
struct Parameter {
  Parameter(const char* name, double value) : offset(internal::Place<Parameter>(1)) {
    internal::Declare("parameter", name, value);
  }
  const int offset;
};

/// Numbers of each environment's own, zero when an episode starts, part of its snapshots.
struct Memory {
  explicit Memory(const char* name, int size = 1)
      : offset(internal::Place<Memory>(size)), size(size) {
    internal::Declare("memory", name, size);
  }
  const int offset, size;
};

/// Numbers of each environment's own that reset_task sets and sample_tasks draws.
struct Command {
  Command(const char* name, int size, double low, double high)
      : offset(internal::Place<Command>(size)), size(size) {
    internal::Declare("command", name, size, low, high);
  }
  const int offset, size;
};

/// A named part of the observation.
struct Obs {
  Obs(const char* name, int size) : offset(internal::Place<Obs>(size)), size(size) {
    internal::Declare("obs", name, size);
  }
  const int offset, size;
};

/// A number for infos[name]; with a size a vector. `of_reset`: Reset writes it too.
struct Info {
  explicit Info(const char* name, int size = 0, bool of_reset = false)
      : offset(internal::Place<Info>(std::max(size, 1))), size(std::max(size, 1)) {
    internal::Declare("info", name, size, of_reset ? 1 : 0);
  }
  const int offset, size;
};

// ---- what its functions see ----

/// Some numbers of an environment: one is read and written as such, several by index or Copy.
template <class T>
class Numbers {
 public:
  Numbers(T* first, int size) : first_(first), size_(size) {}
  Numbers(const Numbers&) = default;
  Numbers& operator=(const Numbers&) = delete;

  operator double() const { return *first_; }  // NOLINT(google-explicit-constructor)
  const Numbers& operator=(double value) const {
    *first_ = value;
    return *this;
  }
  T& operator[](int i) const { return first_[i]; }
  void Copy(const double* from) const { std::copy_n(from, size_, first_); }
  T* begin() const { return first_; }
  T* end() const { return first_ + size_; }
  int size() const { return size_; }

 private:
  T* first_;
  int size_;
};

namespace internal {

/// The pool's services for a task, in the order in which compile_task connects them.
struct Services {
  int32_t (*simulate)(TaskFrame*, int64_t);
  int32_t (*load_state)(TaskFrame*);
  int32_t (*forward)(TaskFrame*);
  int32_t (*run)(TaskFrame*, void (*)(void*), void*);
  void (*uniform)(TaskFrame*, double, double, double*, int64_t);
  void (*standard_normal)(TaskFrame*, double*, int64_t);
  int64_t (*integers)(TaskFrame*, int64_t, int64_t);
};
inline Services services;

/// A call of the pool's has failed, which knows with what.
struct PoolFailure {};

inline void Check(int32_t status) {
  if (status != 0) throw PoolFailure();
}

}  // namespace internal

/// One environment, for the length of one call.
class Env {
 public:
  explicit Env(TaskFrame* frame) : model(frame->model), data(frame->data), frame_(frame) {}

  const mjModel* const model;
  /// Before Simulate only the state is this environment's: qpos, qvel, act, ctrl, time …; in a
  /// control only time, qpos and qvel are.
  mjData* const data;

  const double* action() const { return static_cast<const double*>(frame_->action); }
  /// The action of a task with num_actions.
  int64_t discrete_action() const { return *static_cast<const int64_t*>(frame_->action); }

  double operator[](const Parameter& parameter) const { return params()[parameter.offset]; }
  Numbers<double> operator[](const Memory& memory) const {
    return {frame_->memory + memory.offset, memory.size};
  }
  Numbers<const double> operator[](const Command& command) const {
    return {frame_->command + command.offset, command.size};
  }
  Numbers<double> operator[](const Obs& obs) const { return {frame_->obs + obs.offset, obs.size}; }
  Numbers<double> operator[](const Info& info) const {
    return {frame_->info + info.offset, info.size};
  }
  /// The model's, (nq) and (nv).
  const double* init_qpos() const { return params() + internal::Place<Parameter>(0); }
  const double* init_qvel() const { return init_qpos() + model->nq; }

  /// The physics, for frame_skip substeps under the action or what control writes; or for `n` with
  /// data->ctrl as it is.
  void Simulate(int n = 0) const { internal::Check(internal::services.simulate(frame_, n)); }
  /// mj_forward.
  void Forward() const { internal::Check(internal::services.forward(frame_)); }
  /// Calls `f`, which calls MuJoCo: its errors are this environment's. `f` has no destructors to
  /// run when the engine jumps out of it.
  template <class F>
  void Run(F f) const {
    const auto call = [](void* given) { (*static_cast<F*>(given))(); };
    internal::Check(internal::services.run(frame_, call, &f));
  }

  // the environment's stream; in Reset and Step
  double Uniform(double low, double high) const {
    double result = 0.0;
    internal::services.uniform(Stream(), low, high, &result, 1);
    return result;
  }
  double StandardNormal() const {
    double result = 0.0;
    internal::services.standard_normal(Stream(), &result, 1);
    return result;
  }
  int64_t Integers(int64_t low, int64_t high) const {
    return internal::services.integers(Stream(), low, high);
  }

 private:
  const double* params() const { return static_cast<const double*>(frame_->params); }
  TaskFrame* Stream() const {
    if (frame_->random == nullptr) throw std::logic_error("random numbers are for Reset and Step");
    return frame_;
  }

  TaskFrame* frame_;
};

/// The results of a step.
struct Result {
  double reward = 0.0;
  bool terminated = false;
};

/// All of a task but its declarations. What is not given is as in pyfastenv.Task.
struct TaskCode {
  const char* model;  // beside this file, XML text, or one of gymnasium's
  int frame_skip = 1;
  int control_every = 0;
  int max_episode_steps = 1000;
  bool external_forces = false;
  int action_size = -1;  // -1: one per actuator, in its range; else unbounded, for control
  int num_actions = 0;   // of discrete actions
  // fields of mjData that Step and Observe read, besides the motion; with them physics may run in
  // lanes, and nothing else may be read
  std::initializer_list<const char*> reads = {"*"};
  void (*reset)(Env&);
  Result (*step)(Env&);
  void (*observation)(Env&);
  void (*control)(Env&) = nullptr;  // writes data->ctrl
};

namespace internal {

inline bool ReadsEverything(const TaskCode& code) {
  return code.reads.size() == 1 && **code.reads.begin() == '*';
}

inline std::string Describe(const TaskCode& code) {
  std::ostringstream text;
  text << Declarations() << "setting\tframe_skip\t" << code.frame_skip
       << "\nsetting\tcontrol_every\t" << code.control_every << "\nsetting\tmax_episode_steps\t"
       << code.max_episode_steps << "\nsetting\texternal_forces\t" << code.external_forces
       << "\nsetting\taction_size\t" << code.action_size << "\nsetting\tnum_actions\t"
       << code.num_actions << "\nsetting\thas_control\t" << (code.control != nullptr) << '\n';
  for (const char* field : code.reads) text << "reads\t" << field << '\n';
  text << "model\t" << code.model;  // to the end: XML has lines of its own
  return text.str();
}

/// The pool's view of an exception: a pickle of (RuntimeError, (message,), None).
struct ExceptionInfo {
  const char* pickle;
  int32_t size;
  const void* arguments;
  const void* unwrap;
  int32_t num_arguments;
};

inline void Leave(const char* message, void** exception) {
  thread_local std::string pickle;
  thread_local ExceptionInfo info;
  pickle = "(cbuiltins\nRuntimeError\n(V";
  for (const char* c = message; *c != '\0'; ++c) {
    const auto byte = static_cast<unsigned char>(*c);
    if (byte == '\\') {
      pickle += "\\u005c";
    } else if (byte == '\n') {
      pickle += "\\u000a";
    } else {
      pickle += byte < 0x80 ? *c : '?';
    }
  }
  pickle += "\ntNt.";
  info = {pickle.data(), static_cast<int32_t>(pickle.size()), nullptr, nullptr, 0};
  *exception = &info;
}

/// Calls one of a task's functions, or what takes its place; `loads`: the whole state is to be
/// there.
template <class F>
int32_t Call(bool loads, void** exception, TaskFrame* frame, F function) noexcept {
  try {
    if (loads) Check(services.load_state(frame));
    Env env(frame);
    function(env);
    return 0;
  } catch (const PoolFailure&) {
  } catch (const std::exception& error) {
    Leave(error.what(), exception);
  } catch (...) {
    Leave("an exception that is no std::exception", exception);
  }
  return 1;
}

inline int32_t Step(const TaskCode& code, void** exception, TaskFrame* frame) noexcept {
  return Call(ReadsEverything(code), exception, frame, [&](Env& env) {
    const Result result = code.step(env);
    frame->reward = result.reward;
    frame->terminated = result.terminated ? 1 : 0;
  });
}

}  // namespace internal
}  // namespace pyfastenv

/// Once, at the end of a file: its TaskCode, in braces.
#define PYFASTENV_TASK(...)                                                                        \
  static const pyfastenv::TaskCode pyfastenv_code = __VA_ARGS__;                                   \
  _Pragma("GCC visibility push(default)") extern "C" {                                             \
    const char* pyfastenv_describe() {                                                             \
      static const std::string text = pyfastenv::internal::Describe(pyfastenv_code);               \
      return text.c_str();                                                                         \
    }                                                                                              \
    void pyfastenv_connect(const pyfastenv::internal::Services* services) {                        \
      pyfastenv::internal::services = *services;                                                   \
    }                                                                                              \
    int32_t pyfastenv_reset(int32_t*, void** exception, pyfastenv::TaskFrame* frame) {             \
      return pyfastenv::internal::Call(pyfastenv::internal::ReadsEverything(pyfastenv_code),       \
                                       exception, frame, pyfastenv_code.reset);                    \
    }                                                                                              \
    int32_t pyfastenv_step(int32_t*, void** exception, pyfastenv::TaskFrame* frame) {              \
      return pyfastenv::internal::Step(pyfastenv_code, exception, frame);                          \
    }                                                                                              \
    int32_t pyfastenv_observation(int32_t*, void** exception, pyfastenv::TaskFrame* frame) {       \
      return pyfastenv::internal::Call(pyfastenv::internal::ReadsEverything(pyfastenv_code),       \
                                       exception, frame, pyfastenv_code.observation);              \
    }                                                                                              \
    int32_t pyfastenv_control(int32_t*, void** exception, pyfastenv::TaskFrame* frame) {           \
      return pyfastenv::internal::Call(/*loads=*/false, exception, frame, pyfastenv_code.control); \
    }                                                                                              \
  }                                                                                                \
  _Pragma("GCC visibility pop")
