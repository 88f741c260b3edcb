#include "closed_loop.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lanes/sensors.h"

namespace pyfastenv::lanes {

namespace {

constexpr int kEnvironments = 16;
constexpr int kStepsBetweenResets = 50;

int NumWarnings(const mjData& d) {
  return d.warning[mjWARN_BADQPOS].number + d.warning[mjWARN_BADQVEL].number +
         d.warning[mjWARN_BADQACC].number + d.warning[mjWARN_BADCTRL].number;
}

std::vector<std::unique_ptr<Track>> MakeTracks(const mjModel& m,
                                               const std::vector<std::string>& fields) {
  std::vector<std::unique_ptr<Track>> tracks;
  for (const int width : Widths()) tracks.push_back(std::make_unique<Track>(m, width, fields));
  return tracks;
}

bool SameBits(const double* a, const double* b, size_t count) {
  return count == 0 || std::memcmp(a, b, count * sizeof(double)) == 0;
}

}  // namespace

Track::Track(const mjModel& m, int width, const std::vector<std::string>& fields)
    : lanes(MakePlan(m, width, fields)), rows(m, kEnvironments) {}

ClosedLoop::ClosedLoop(const mjModel& m, int frame_skip, const std::vector<std::string>& fields)
    : m_(m),
      frame_skip_(frame_skip),
      d_(MakeData(m)),
      random_(m, 11),
      before_(m, kEnvironments),
      after_(m, kEnvironments),
      warned_(kEnvironments),
      fields_(kEnvironments),
      tracks_(MakeTracks(m, fields)),
      numbers_(m, tracks_[0]->lanes.plan(), kEnvironments) {}

void ClosedLoop::Run(int64_t substeps) {
  const int64_t steps = substeps / (int64_t{kEnvironments} * frame_skip_) + 1;
  for (int64_t step = 0; step < steps; ++step) {
    if (step % kStepsBetweenResets == 0) Reset();
    StepByMujoco(step);
    for (auto& track : tracks_) Follow(*track, step);
    before_.Copy(after_);
  }
}

void ClosedLoop::Reset() {
  for (int e = 0; e < kEnvironments; ++e) {
    random_.Reset(*d_, e % 2 == 0 ? 0.1 : 1);
    numbers_.Draw(e, 0.3, number_random_);
    mj_getState(&m_, d_.get(), before_.row(e), mjSTATE_INTEGRATION);
  }
  for (auto& track : tracks_) track->rows.Copy(before_);
}

// New controls into before_, and after_ from it.
void ClosedLoop::StepByMujoco(int64_t step) {
  for (int e = 0; e < kEnvironments; ++e) {
    mj_setState(&m_, d_.get(), before_.row(e), mjSTATE_INTEGRATION);
    random_.DrawControls(*d_, (step + e) % 4 == 0 ? 3 : 1.2);
    if ((step + e) % 8 == 0) random_.Push(*d_);
    mj_getState(&m_, d_.get(), before_.row(e), mjSTATE_INTEGRATION);
    for (mjWarningStat& warning : d_->warning) warning.number = 0;
    const mjModel own = numbers_.Of(e);
    for (int k = 0; k < frame_skip_; ++k) mj_step(&own, d_.get());
    mj_rnePostConstraint(&own, d_.get());
    num_rows_ += d_->nefc;
    const auto i = static_cast<size_t>(e);
    warned_[i] = NumWarnings(*d_) > 0;
    mj_getState(&m_, d_.get(), after_.row(e), mjSTATE_INTEGRATION);
    fields_[i].clear();
#define PYFASTENV_LANES_FIELD(name, entries, numbers) \
  fields_[i].emplace_back(d_->name, d_->name + tracks_[0]->lanes.Size(Field::name));
    PYFASTENV_LANES_FIELDS(PYFASTENV_LANES_FIELD)
#undef PYFASTENV_LANES_FIELD
  }
}

void ClosedLoop::Follow(Track& track, int64_t step) {
  const int width = track.lanes.width();
  const bool keep_fields = step % 2 == 0;
  const int ctrl = track.lanes.plan().tables().row.ctrl;
  for (int e = 0; e < kEnvironments; ++e) {
    std::copy_n(before_.row(e) + ctrl, before_.size() - ctrl, track.rows.row(e) + ctrl);
  }
  for (int first = 0; first < kEnvironments; first += width) {
    double* const* rows = track.rows.from(first);
    const unsigned redo =
        track.lanes.Step(rows, rows, width, frame_skip_, keep_fields, numbers_.from(first));
    track.lanes.ComputeExternalForces();
    for (int l = 0; l < width; ++l) {
      ++track.environment_steps;
      const int e = first + l;
      if ((redo >> l & 1) != 0) {
        ++track.left_to_mujoco;
        std::copy_n(after_.row(e), after_.size(), rows[l]);
        continue;
      }
      const std::string difference = Difference(track, e, l, keep_fields);
      if (difference.empty() || track.different++ > 0) continue;
      track.first =
          difference + " in environment " + std::to_string(e) + " at step " + std::to_string(step);
    }
  }
}

std::string ClosedLoop::Difference(const Track& track, int e, int lane, bool keep_fields) const {
  const auto i = static_cast<size_t>(e);
  if (warned_[i]) return "a warning of MuJoCo's that lanes did not foresee";
  std::vector<double> ours;
  for (size_t f = 0; f < fields_[i].size(); ++f) {
    const auto field = static_cast<Field>(f);
    if (!keep_fields && LaneStepper::NeedsKeeping(field)) continue;
    if (field == Field::cfrc_ext && LacksBodyForces(m_)) continue;
    const std::vector<double>& theirs = fields_[i][f];
    ours.resize(theirs.size() + 1);
    track.lanes.Read(field, lane, ours.data());
    if (!SameBits(ours.data(), theirs.data(), theirs.size())) {
      return LaneStepper::Name(field);
    }
  }
  return SameBits(track.rows.row(e), after_.row(e), after_.size()) ? "" : "the row";
}

void ExpectEqual(const ClosedLoop& loop, double left_to_mujoco) {
  for (const auto& track : loop.tracks()) {
    EXPECT_EQ(track->different, 0)
        << track->lanes.width() << " lanes, of " << track->environment_steps
        << " environment steps; first: " << track->first;
    EXPECT_LE(static_cast<double>(track->left_to_mujoco),
              left_to_mujoco * static_cast<double>(track->environment_steps))
        << track->lanes.width() << " lanes";
  }
}

}  // namespace pyfastenv::lanes
