// Long trajectories of rows through LaneStepper and through mj_step, never synchronised between
// resets, compared bit for bit after every environment step: the rows, and all that mjData holds
// besides. With wild resets, contacts, and controls up to three times beyond their bounds.
#include <gtest/gtest.h>

#include <cstring>

#include "settings.h"
#include "support.h"

namespace pyfastenv::lanes {
namespace {

constexpr int kEnvironments = 16;
constexpr int kStepsBetweenResets = 50;

int NumWarnings(const mjData& d) {
  return d.warning[mjWARN_BADQPOS].number + d.warning[mjWARN_BADQVEL].number +
         d.warning[mjWARN_BADQACC].number + d.warning[mjWARN_BADCTRL].number;
}

// What mjData holds after an environment step, as fields.
using Snapshot = std::vector<std::vector<double>>;

Snapshot TakeSnapshot(const LaneStepper& sizes, const mjData& d) {
  Snapshot snapshot;
#define PYFASTENV_LANES_FIELD(name, entries, numbers) \
  snapshot.emplace_back(d.name, d.name + sizes.Size(Field::name));
  PYFASTENV_LANES_FIELDS(PYFASTENV_LANES_FIELD)
#undef PYFASTENV_LANES_FIELD
  return snapshot;
}

class ClosedLoop : public testing::TestWithParam<Robot> {};

// One width's rows, which only Step has ever written since their last reset.
struct Track {
  Track(const mjModel& m, int width) : lanes(MakePlan(m, width)), rows(m, kEnvironments) {}

  LaneStepper lanes;
  RowSet rows;
  int64_t environment_steps = 0, left_to_mujoco = 0, different = 0;
};

class Loop {
 public:
  explicit Loop(const Robot& robot)
      : robot_(robot),
        m_(LoadRobot(robot)),
        d_(MakeData(*m_)),
        random_(*m_, 11),
        before_(*m_, kEnvironments),
        after_(*m_, kEnvironments),
        warned_(kEnvironments),
        snapshots_(kEnvironments) {
    for (const int width : Widths()) tracks_.push_back(std::make_unique<Track>(*m_, width));
  }

  void Run(int64_t substeps) {
    const int64_t steps = substeps / (int64_t{kEnvironments} * robot_.frame_skip) + 1;
    for (int64_t step = 0; step < steps; ++step) {
      if (step % kStepsBetweenResets == 0) Reset();
      Reference(step);
      for (auto& track : tracks_) Follow(*track, step);
      before_.Copy(after_);
    }
  }

  const std::vector<std::unique_ptr<Track>>& tracks() const { return tracks_; }

 private:
  void Reset() {
    for (int e = 0; e < kEnvironments; ++e) {
      random_.Reset(*d_, e % 2 == 0 ? 0.1 : 1);
      mj_getState(m_.get(), d_.get(), before_.row(e), mjSTATE_INTEGRATION);
    }
    for (auto& track : tracks_) track->rows.Copy(before_);
  }

  // before_ with new controls, and after_ by mj_step.
  void Reference(int64_t step) {
    for (int e = 0; e < kEnvironments; ++e) {
      mj_setState(m_.get(), d_.get(), before_.row(e), mjSTATE_INTEGRATION);
      random_.DrawControls(*d_, (step + e) % 4 == 0 ? 3 : robot_.control * 1.2);
      mj_getState(m_.get(), d_.get(), before_.row(e), mjSTATE_INTEGRATION);
      for (mjWarningStat& warning : d_->warning) warning.number = 0;
      for (int k = 0; k < robot_.frame_skip; ++k) mj_step(m_.get(), d_.get());
      mj_rnePostConstraint(m_.get(), d_.get());
      warned_[static_cast<size_t>(e)] = NumWarnings(*d_) > 0;
      mj_getState(m_.get(), d_.get(), after_.row(e), mjSTATE_INTEGRATION);
      snapshots_[static_cast<size_t>(e)] = TakeSnapshot(tracks_[0]->lanes, *d_);
    }
  }

  void Follow(Track& track, int64_t step) {
    const int width = track.lanes.width();
    const auto ctrl = static_cast<size_t>(track.lanes.plan().tables().row.ctrl);
    for (int e = 0; e < kEnvironments; ++e) {
      std::copy_n(before_.row(e) + ctrl, m_->nu, track.rows.row(e) + ctrl);
    }
    for (int first = 0; first < kEnvironments; first += width) {
      double* const* rows = track.rows.from(first);
      const unsigned redo = track.lanes.Step(rows, rows, width, robot_.frame_skip);
      track.lanes.ComputeExternalForces();
      for (int l = 0; l < width; ++l) Compare(track, first + l, l, (redo >> l & 1) != 0, step);
    }
  }

  void Compare(Track& track, int e, int lane, bool redo, int64_t step) {
    ++track.environment_steps;
    double* ours = track.rows.row(e);
    const size_t bytes = track.rows.size() * sizeof(double);
    if (redo) {
      ++track.left_to_mujoco;
      std::memcpy(ours, after_.row(e), bytes);
      return;
    }
    EXPECT_FALSE(warned_[static_cast<size_t>(e)]) << "MuJoCo warned, lanes did not notice";
    const char* what = Difference(track, e, lane);
    if (std::memcmp(ours, after_.row(e), bytes) != 0) what = "the row";
    if (what == nullptr) return;
    if (track.different++ == 0) {
      ADD_FAILURE() << what << " differs first in environment " << e << " at step " << step << ", "
                    << track.lanes.width() << " lanes";
    }
  }

  // The name of a field that differs from mjData's.
  const char* Difference(const Track& track, int e, int lane) {
    const Snapshot& snapshot = snapshots_[static_cast<size_t>(e)];
    for (size_t f = 0; f < snapshot.size(); ++f) {
      values_.resize(snapshot[f].size() + 1);
      track.lanes.Read(static_cast<Field>(f), lane, values_.data());
      if (std::memcmp(values_.data(), snapshot[f].data(), sizeof(double) * snapshot[f].size()) !=
          0) {
        return LaneStepper::Name(static_cast<Field>(f));
      }
    }
    return nullptr;
  }

  const Robot& robot_;
  ModelPtr m_;
  DataPtr d_;
  Randomizer random_;
  RowSet before_, after_;
  std::vector<bool> warned_;
  std::vector<Snapshot> snapshots_;
  std::vector<double> values_;
  std::vector<std::unique_ptr<Track>> tracks_;
};

TEST_P(ClosedLoop, EqualsMjStepBitForBit) {
  Loop loop(GetParam());
  loop.Run(settings().substeps);
  for (const auto& track : loop.tracks()) {
    EXPECT_EQ(track->different, 0) << "of " << track->environment_steps << " environment steps";
    EXPECT_LE(track->left_to_mujoco, track->environment_steps / 50);
    std::printf("    %d lanes: %lld substeps, %lld of %lld environment steps left to mj_step\n",
                track->lanes.width(),
                static_cast<long long>(track->environment_steps * GetParam().frame_skip),
                static_cast<long long>(track->left_to_mujoco),
                static_cast<long long>(track->environment_steps));
  }
}

INSTANTIATE_TEST_SUITE_P(Robots, ClosedLoop, testing::ValuesIn(Robots()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace pyfastenv::lanes
