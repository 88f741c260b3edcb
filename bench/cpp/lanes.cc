// Lanes and mj_step in turn:
//   lane_bench [--steps=N] [--lanes=N] [--fields=body_mass,…] [--output=FILE.json] [robot…]
//
// A robot is one of gymnasium's (all if none is named) or an .mjb file
// (bench/python/lane_robots.py). 64 environments per robot take random actions, with gymnasium's
// terminations and resets; those of a file act around its first keyframe for kFileEpisodeSteps.
// Every environment step is done once by mj_step and once by each number of lanes, one after the
// other, in thread CPU time; a ratio is that of one such round, and the median of the rounds' is
// reported, so that a neighbour who takes the processor spoils single rounds only. Rows must stay
// equal to the bit. Every fourth round is not compared but split into phases (MuJoCo's by its own
// timers), of which the mean over rounds is reported. With --fields the widest lanes run once more,
// from a plan in which every environment has its own numbers of these; they are the model's, so
// that the rows stay equal.
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>
#include <sstream>
#include <thread>

#include "../../tests/lanes/support.h"

namespace pyfastenv::lanes {
namespace {

constexpr int kEnvironments = 64;
constexpr int kMaxEpisodeSteps = 1000;
// Of robots from files.
constexpr int kFileEpisodeSteps = 50, kFileFrameSkip = 4;
constexpr double kFileAmplitude = 0.15;  // of controls' ranges

double CpuNanoseconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

// gymnasium's v5 termination rules.
bool IsHealthy(const std::string& robot, const double* q, const double* v, int nv) {
  if (robot == "Hopper") {
    const bool calm = std::all_of(v, v + nv, [](double x) { return std::abs(x) < 100; });
    return calm && q[1] > 0.7 && std::abs(q[2]) < 0.2;
  }
  if (robot == "Walker2d") return q[1] > 0.8 && q[1] < 2 && std::abs(q[2]) < 1;
  if (robot == "Ant") return q[2] >= 0.2 && q[2] <= 1;
  if (robot == "Humanoid") return q[2] > 1 && q[2] < 2;
  if (robot == "InvertedPendulum") return std::abs(q[1]) <= 0.2;
  if (robot == "InvertedDoublePendulum") {
    return 0.6 * std::cos(q[1]) + 0.6 * std::cos(q[1] + q[2]) > 1;
  }
  return true;
}

// A round's time per substep in nanoseconds: phases, then the rest (rows in and out).
using Phases = std::array<double, static_cast<size_t>(Phase::kCount) + 1>;
constexpr const char* kPhaseNames[] = {"smooth", "collision",   "rows",
                                       "solver", "integration", "rest"};

// What mj_step counted since ClearTimers, in ticks; its names for the same things.
PhaseTicks ReadTimers(const mjData& d) {
  const auto of = [&](mjtTimer timer) { return static_cast<uint64_t>(d.timer[timer].duration); };
  PhaseTicks phases;
  phases.ticks[static_cast<int>(Phase::kSmooth)] = of(mjTIMER_POS_KINEMATICS) +
                                                   of(mjTIMER_POS_INERTIA) + of(mjTIMER_VELOCITY) +
                                                   of(mjTIMER_ACTUATION);
  phases.ticks[static_cast<int>(Phase::kCollision)] = of(mjTIMER_POS_COLLISION);
  phases.ticks[static_cast<int>(Phase::kRows)] = of(mjTIMER_POS_MAKE) + of(mjTIMER_POS_PROJECT);
  phases.ticks[static_cast<int>(Phase::kSolver)] = of(mjTIMER_CONSTRAINT);
  phases.ticks[static_cast<int>(Phase::kIntegration)] = of(mjTIMER_ADVANCE);
  return phases;
}

void ClearTimers(mjData& d) {
  for (mjTimerStat& timer : d.timer) timer = {};
}

bool IsFile(const Robot& robot) { return std::string(robot.file).ends_with(".mjb"); }

ModelPtr Load(const Robot& robot) {
  if (!IsFile(robot)) return LoadRobot(robot);
  ModelPtr m(mj_loadModel(robot.file, nullptr));
  if (m == nullptr) throw std::runtime_error(std::string(robot.file) + ": no model of this MuJoCo");
  return m;
}

struct Contender {
  std::string name;
  std::unique_ptr<LaneStepper> lanes;  // null: mj_step
  std::unique_ptr<OwnNumbers> numbers;
  std::vector<double> nanoseconds;  // per substep and round
  std::vector<double> ratios;       // mj_step's time over this one's
  std::vector<Phases> phases;       // of the rounds that were split
  int64_t left_to_mujoco = 0;
  std::unique_ptr<RowSet> rows;
};

class Bench {
 public:
  Bench(const Robot& robot, int only_width, const std::vector<std::string>& fields)
      : robot_(robot), m_(Load(robot)), d_(MakeData(*m_)), random_(*m_, 1), age_(kEnvironments) {
    Add("mj_step", nullptr);
    for (const int width : Widths()) {
      if (only_width != 0 && width != only_width) continue;
      Add(std::to_string(width) + (width == 1 ? " lane" : " lanes"),
          std::make_unique<LaneStepper>(MakePlan(*m_, width)));
    }
    if (!fields.empty()) {
      const int width = only_width != 0 ? only_width : Widths()[0];
      Add(std::to_string(width) + " lanes with own fields",
          std::make_unique<LaneStepper>(MakePlan(*m_, width, fields)));
    }
    for (int e = 0; e < kEnvironments; ++e) {
      Reset(e);
      if (IsFile(robot)) age_[static_cast<size_t>(e)] = e % kFileEpisodeSteps;
    }
  }

  void Run(int steps) {
    for (int step = 0; step < steps; ++step) {
      for (int e = 0; e < kEnvironments; ++e) SetControls(e);
      for (Contender& c : contenders_) {
        if (step % 4 == 3) {
          c.phases.push_back(StepByPhases(c));
          CheckEqual(c);
          continue;
        }
        const double start = CpuNanoseconds();
        StepAll(c);
        c.nanoseconds.push_back((CpuNanoseconds() - start) / kEnvironments / robot_.frame_skip);
        c.ratios.push_back(contenders_[0].nanoseconds.back() / c.nanoseconds.back());
        CheckEqual(c);
      }
      for (int e = 0; e < kEnvironments; ++e) EndEpisode(e);
    }
  }

  std::string Json() const {
    std::ostringstream out;
    out << "    \"" << robot_.name << "\": {\"frame_skip\": " << robot_.frame_skip
        << ", \"mean_rows\": " << static_cast<double>(num_rows_) / static_cast<double>(num_steps_);
    for (const Contender& c : contenders_) {
      out << ",\n      \"" << c.name << "\": {\"ns_per_substep\": " << Quantile(c.nanoseconds, 0.5)
          << ", \"times_mj_step\": " << Quantile(c.ratios, 0.5) << ", \"quartiles\": ["
          << Quantile(c.ratios, 0.25) << ", " << Quantile(c.ratios, 0.75)
          << "], \"left_to_mj_step\": " << c.left_to_mujoco << ",\n        \"phases_ns\": {";
      for (size_t k = 0; k < std::size(kPhaseNames); ++k) {
        double sum = 0;
        for (const Phases& phases : c.phases) sum += phases[k];
        out << (k == 0 ? "" : ", ") << "\"" << kPhaseNames[k]
            << "\": " << (sum == 0 ? 0 : sum / static_cast<double>(c.phases.size()));
      }
      out << "}}";
    }
    out << "}";
    return out.str();
  }

  void Print() const {
    std::printf("%-23s", robot_.name);
    for (const Contender& c : contenders_) {
      if (c.lanes == nullptr) {
        std::printf(" mj_step %7.0f ns", Quantile(c.nanoseconds, 0.5));
      } else {
        std::printf("  %s %6.0f ns %6.2f x", c.name.c_str(), Quantile(c.nanoseconds, 0.5),
                    Quantile(c.ratios, 0.5));
      }
    }
    std::printf("  (%.1f rows)\n",
                static_cast<double>(num_rows_) / static_cast<double>(num_steps_));
    std::fflush(stdout);
  }

 private:
  void Add(std::string name, std::unique_ptr<LaneStepper> lanes) {
    auto numbers = lanes == nullptr
                       ? nullptr
                       : std::make_unique<OwnNumbers>(*m_, lanes->plan(), kEnvironments);
    contenders_.push_back({std::move(name),
                           std::move(lanes),
                           std::move(numbers),
                           {},
                           {},
                           {},
                           0,
                           std::make_unique<RowSet>(*m_, kEnvironments)});
  }

  void Reset(int e) {
    random_.Reset(*d_, 0.02);
    if (IsFile(robot_) && m_->nkey > 0) {
      const std::vector<double> velocity(d_->qvel, d_->qvel + m_->nv);
      mj_resetDataKeyframe(m_.get(), d_.get(), 0);
      mju_copy(d_->qvel, velocity.data(), static_cast<int>(m_->nv));
    }
    age_[static_cast<size_t>(e)] = 0;
    for (Contender& c : contenders_)
      mj_getState(m_.get(), d_.get(), c.rows->row(e), mjSTATE_INTEGRATION);
  }

  void SetControls(int e) {
    mj_setState(m_.get(), d_.get(), contenders_[0].rows->row(e), mjSTATE_INTEGRATION);
    if (IsFile(robot_)) {
      DrawControlsAroundKeyframe();
    } else {
      random_.DrawControls(*d_, 1);
    }
    mj_getState(m_.get(), d_.get(), contenders_[0].rows->row(e), mjSTATE_INTEGRATION);
    for (Contender& c : contenders_)
      std::memcpy(c.rows->row(e), contenders_[0].rows->row(e), c.rows->size() * 8);
  }

  void DrawControlsAroundKeyframe() {
    std::uniform_real_distribution<double> draw(-kFileAmplitude, kFileAmplitude);
    for (int i = 0; i < m_->nu; ++i) {
      const double* range = m_->actuator_ctrlrange + 2 * i;
      const double width = m_->actuator_ctrllimited[i] ? range[1] - range[0] : 2;
      d_->ctrl[i] = (m_->nkey > 0 ? m_->key_ctrl[i] : 0) + width * draw(noise_);
    }
  }

  void StepByMujoco(double* row) {
    mj_setState(m_.get(), d_.get(), row, mjSTATE_INTEGRATION);
    for (int k = 0; k < robot_.frame_skip; ++k) mj_step(m_.get(), d_.get());
    mj_getState(m_.get(), d_.get(), row, mjSTATE_INTEGRATION);
  }

  void StepAll(Contender& c) {
    if (c.lanes == nullptr) {
      for (int e = 0; e < kEnvironments; ++e) {
        StepByMujoco(c.rows->row(e));
        num_rows_ += d_->nefc;
        ++num_steps_;
      }
      return;
    }
    const int width = c.lanes->width();
    for (int first = 0; first < kEnvironments; first += width) {
      double* const* rows = c.rows->from(first);
      unsigned redo =
          c.lanes->Step(rows, rows, width, robot_.frame_skip, false, c.numbers->from(first));
      for (; redo != 0; redo &= redo - 1) {
        ++c.left_to_mujoco;
        StepByMujoco(rows[__builtin_ctz(redo)]);
      }
    }
  }

  // A round by the processor's clock, whose ticks share the thread's time.
  Phases StepByPhases(Contender& c) {
    PhaseTicks phases;
    ClearTimers(*d_);
    if (c.lanes == nullptr) {
      mjcb_time = [] { return static_cast<mjtNum>(Ticks()); };
    } else {
      c.lanes->CountPhases(&phases);
    }
    const double start = CpuNanoseconds();
    const uint64_t start_ticks = Ticks();
    StepAll(c);
    const uint64_t ticks = Ticks() - start_ticks;
    const double nanoseconds = CpuNanoseconds() - start;
    if (c.lanes == nullptr) {
      mjcb_time = nullptr;
      phases = ReadTimers(*d_);
    } else {
      c.lanes->CountPhases(nullptr);
    }
    const double scale =
        nanoseconds / static_cast<double>(ticks) / kEnvironments / robot_.frame_skip;
    Phases result{};
    uint64_t rest = ticks;
    for (size_t k = 0; k < std::size(phases.ticks); ++k) {
      result[k] = scale * static_cast<double>(phases.ticks[k]);
      rest -= phases.ticks[k];
    }
    result.back() = scale * static_cast<double>(rest);
    return result;
  }

  void CheckEqual(Contender& c) {
    for (int e = 0; e < kEnvironments; ++e) {
      if (std::memcmp(c.rows->row(e), contenders_[0].rows->row(e), c.rows->size() * 8) != 0) {
        std::fprintf(stderr, "%s: %s differ from mj_step\n", robot_.name, c.name.c_str());
        std::exit(1);
      }
    }
  }

  void EndEpisode(int e) {
    const double* row = contenders_[0].rows->row(e);
    const auto& at = contenders_[1].lanes->plan().tables().row;
    const int limit = IsFile(robot_)                          ? kFileEpisodeSteps
                      : std::string(robot_.name) == "Reacher" ? 50
                                                              : kMaxEpisodeSteps;
    if (++age_[static_cast<size_t>(e)] >= limit ||
        !IsHealthy(robot_.name, row + at.qpos, row + at.qvel, static_cast<int>(m_->nv))) {
      Reset(e);
    }
  }

  const Robot& robot_;
  ModelPtr m_;
  DataPtr d_;
  Randomizer random_;
  std::mt19937_64 noise_;
  std::vector<int> age_;
  std::vector<Contender> contenders_;
  int64_t num_rows_ = 0, num_steps_ = 0;
};

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string MachineJson() {
  double load[1] = {0};
  if (getloadavg(load, 1) != 1) load[0] = -1;
  utsname system{};
  uname(&system);
  std::ostringstream out;
  out << "  \"processor\": \"" << ProcessorName()
      << "\",\n  \"cores\": " << std::thread::hardware_concurrency()
      << ",\n  \"load_average\": " << load[0] << ",\n  \"system\": \"" << system.sysname << " "
      << system.machine << "\",\n  \"compiler\": \"" << __VERSION__ << "\",\n  \"mujoco\": \""
      << mj_versionString() << "\"";
  return out.str();
}

int Main(int argc, char** argv) {
  int steps = 200, width = 0;
  std::string output;
  std::vector<std::string> wanted, fields;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--steps=", 0) == 0) {
      steps = std::atoi(argument.c_str() + 8);
    } else if (argument.rfind("--lanes=", 0) == 0) {
      width = std::atoi(argument.c_str() + 8);
    } else if (argument.rfind("--fields=", 0) == 0) {
      std::istringstream names(argument.substr(9));
      for (std::string name; std::getline(names, name, ',');) fields.push_back(name);
    } else if (argument.rfind("--output=", 0) == 0) {
      output = argument.substr(9);
    } else {
      wanted.push_back(argument);
    }
  }
  std::vector<Robot> robots;
  for (const Robot& robot : Robots()) {
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), robot.name) != wanted.end()) {
      robots.push_back(robot);
    }
  }
  std::list<std::string> stems;
  for (const std::string& file : wanted) {
    if (!file.ends_with(".mjb")) continue;
    stems.push_back(std::filesystem::path(file).stem());
    robots.push_back({stems.back().c_str(), file.c_str(), kFileFrameSkip});
  }
  std::string results;
  for (const Robot& robot : robots) {
    Bench bench(robot, width, fields);
    bench.Run(steps);
    bench.Print();
    results += (results.empty() ? "" : ",\n") + bench.Json();
  }
  if (!output.empty()) {
    std::ofstream(output) << "{\n"
                          << MachineJson() << ",\n  \"environments\": " << kEnvironments
                          << ",\n  \"environment_steps\": " << steps << ",\n  \"robots\": {\n"
                          << results << "\n  }\n}\n";
  }
  return 0;
}

}  // namespace
}  // namespace pyfastenv::lanes

int main(int argc, char** argv) { return pyfastenv::lanes::Main(argc, argv); }
