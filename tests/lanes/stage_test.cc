// Every stage against mj_forward, on random states of all robots, lane by lane, bit for bit (a
// zero's sign is a bit).
//
// All stages of a robot are compared in one pass over its states; each test then asks for its own
// stage's quantities, so that the first test that fails names the stage to look at.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <sstream>

#include "settings.h"
#include "support.h"

namespace pyfastenv::lanes {
namespace {

constexpr int kEnvironments = 8;  // a group of the widest lanes

// How often a quantity was compared and differed, and the first difference in words.
struct Tally {
  int64_t compared = 0, differ = 0;
  std::string first;
};

class Comparison {
 public:
  void Add(const std::string& quantity, const double* ours, const double* theirs, int64_t count,
           const std::string& where) {
    Tally& tally = tallies_[quantity];
    tally.compared += count;
    if (std::memcmp(ours, theirs, sizeof(double) * static_cast<size_t>(count)) == 0) return;
    for (int64_t i = 0; i < count; ++i) {
      if (std::memcmp(ours + i, theirs + i, sizeof(double)) == 0) continue;
      if (tally.differ++ > 0) continue;
      std::ostringstream text;
      text.precision(17);
      text << quantity << "[" << i << "] = " << ours[i] << ", mj_forward's " << theirs[i] << ", "
           << where;
      tally.first = text.str();
    }
  }
  void Add(const std::string& quantity, double ours, double theirs, const std::string& where) {
    Add(quantity, &ours, &theirs, 1, where);
  }
  const Tally& operator[](const std::string& quantity) const {
    static const Tally kNever;
    const auto found = tallies_.find(quantity);
    return found != tallies_.end() ? found->second : kNever;
  }

 private:
  std::map<std::string, Tally> tallies_;
};

const mjtNum* MujocoArray(const mjData& d, Field field) {
  switch (field) {
#define PYFASTENV_LANES_FIELD(name, entries, numbers) \
  case Field::name:                                   \
    return d.name;
    PYFASTENV_LANES_FIELDS(PYFASTENV_LANES_FIELD)
#undef PYFASTENV_LANES_FIELD
  }
  return nullptr;
}

void CompareFields(const LaneStepper& lanes, int lane, const mjData& d, const std::string& where,
                   Comparison& out) {
  std::vector<double> values;
#define PYFASTENV_LANES_FIELD(name, entries, numbers)              \
  values.resize(static_cast<size_t>(lanes.Size(Field::name)) + 1); \
  lanes.Read(Field::name, lane, values.data());                    \
  out.Add(#name, values.data(), MujocoArray(d, Field::name), lanes.Size(Field::name), where);
  PYFASTENV_LANES_FIELDS(PYFASTENV_LANES_FIELD)
#undef PYFASTENV_LANES_FIELD
}

void CompareContacts(const LaneStepper& lanes, int lane, const mjData& d, const std::string& where,
                     Comparison& out) {
  const int count = lanes.CountContacts(lane);
  out.Add("contacts", count, d.ncon, where);
  for (int k = 0; k < count && count == d.ncon; ++k) {
    const ContactView ours = lanes.Contact(k, lane);
    const mjContact& theirs = d.contact[k];
    const Pair& pair = lanes.plan().tables().pair[ours.pair];
    out.Add("contact geom1", pair.geom1, theirs.geom[0], where);
    out.Add("contact geom2", pair.geom2, theirs.geom[1], where);
    out.Add("contact dist", ours.dist, theirs.dist, where);
    out.Add("contact pos", ours.pos, theirs.pos, 3, where);
    out.Add("contact frame", ours.frame, theirs.frame, 9, where);
  }
}

void CompareRows(const LaneStepper& lanes, int lane, const mjModel& m, const mjData& d,
                 const std::string& where, Comparison& out) {
  const int count = lanes.CountRows(lane);
  out.Add("rows", count, d.nefc, where);
  for (int k = 0; k < count && count == d.nefc; ++k) {
    const RowView ours = lanes.Row(k, lane);
    out.Add("row J", ours.J, d.efc_J + k * m.nv, m.nv, where);
    out.Add("row violation", ours.violation, d.efc_pos[k] - d.efc_margin[k], where);
    out.Add("row R", ours.R, d.efc_R[k], where);
    out.Add("row D", ours.D, d.efc_D[k], where);
    out.Add("row aref", ours.aref, d.efc_aref[k], where);
    out.Add("row force", ours.force, d.efc_force[k], where);
  }
}

// One robot's states through all widths.
class Run {
 public:
  explicit Run(const Robot& robot)
      : robot_(robot), m_(LoadRobot(robot)), rows_(*m_, kEnvironments) {
    for (const int width : Widths()) steppers_.emplace_back(MakePlan(*m_, width));
    for (int e = 0; e < kEnvironments; ++e) data_.push_back(MakeData(*m_));
  }

  Comparison Compare(int64_t num_states) {
    Randomizer random(*m_, 7);
    for (int64_t step = 0; step * kEnvironments < num_states; ++step) {
      for (int e = 0; e < kEnvironments; ++e) {
        mjData& d = *data_[static_cast<size_t>(e)];
        if (step % 50 == 0) random.Reset(d, e % 2 == 0 ? 0.1 : 1);
        if (step % robot_.frame_skip == 0) random.DrawControls(d, e % 3 == 0 ? 3 : 1);
        mj_getState(m_.get(), &d, rows_.row(e), mjSTATE_INTEGRATION);
        mj_forward(m_.get(), &d);
        mj_rnePostConstraint(m_.get(), &d);
      }
      for (LaneStepper& lanes : steppers_) CompareAll(lanes, step);
      for (const DataPtr& d : data_) mj_step(m_.get(), d.get());
    }
    return std::move(comparison_);
  }

 private:
  void CompareAll(LaneStepper& lanes, int64_t step) {
    for (int first = 0; first < kEnvironments; first += lanes.width()) {
      const unsigned redo = lanes.Forward(rows_.from(first), lanes.width());
      lanes.ComputeExternalForces();
      for (int l = 0; l < lanes.width(); ++l) {
        comparison_.Add("left to MuJoCo", (redo >> l & 1) != 0, 0, "");
        if ((redo >> l & 1) != 0) continue;
        const mjData& d = *data_[static_cast<size_t>(first + l)];
        const std::string where = "state " + std::to_string(step) + " of environment " +
                                  std::to_string(first + l) + ", " + std::to_string(lanes.width()) +
                                  " lanes";
        CompareFields(lanes, l, d, where, comparison_);
        CompareContacts(lanes, l, d, where, comparison_);
        CompareRows(lanes, l, *m_, d, where, comparison_);
      }
    }
  }

  const Robot& robot_;
  ModelPtr m_;
  RowSet rows_;
  std::vector<LaneStepper> steppers_;
  std::vector<DataPtr> data_;
  Comparison comparison_;
};

const Comparison& Results(const Robot& robot) {
  static std::map<std::string, Comparison> results;
  auto found = results.find(robot.name);
  if (found == results.end()) {
    found = results.emplace(robot.name, Run(robot).Compare(settings().stage_states)).first;
  }
  return found->second;
}

class Stage : public testing::TestWithParam<Robot> {
 protected:
  static void ExpectSame(const std::vector<std::string>& quantities) {
    for (const std::string& quantity : quantities) {
      const Tally& tally = Results(GetParam())[quantity];
      EXPECT_EQ(tally.differ, 0) << quantity << ": of " << tally.compared << " numbers; first "
                                 << tally.first;
    }
  }
};

TEST_P(Stage, TakesTheRobotsOrdinaryStates) {
  const Tally& left = Results(GetParam())["left to MuJoCo"];
  EXPECT_GE(left.compared, settings().stage_states);
  EXPECT_LE(left.differ, left.compared / 100);
}
TEST_P(Stage, State) { ExpectSame({"qpos", "qvel", "qacc_warmstart", "ctrl"}); }
TEST_P(Stage, Kinematics) {
  ExpectSame({"xpos", "xquat", "xmat", "xipos", "ximat", "xanchor", "xaxis", "geom_xpos",
              "geom_xmat", "site_xpos", "site_xmat"});
}
TEST_P(Stage, CentersOfMass) { ExpectSame({"subtree_com", "cinert", "cdof"}); }
TEST_P(Stage, Tendons) { ExpectSame({"ten_length", "ten_velocity"}); }
TEST_P(Stage, InertiaMatrix) { ExpectSame({"crb", "M", "qLD", "qLDiagInv"}); }
TEST_P(Stage, Collision) {
  ExpectSame({"contacts", "contact geom1", "contact geom2", "contact dist", "contact pos",
              "contact frame"});
}
TEST_P(Stage, Rows) { ExpectSame({"rows", "row J", "row violation", "row R", "row D"}); }
TEST_P(Stage, Velocities) { ExpectSame({"cvel", "cdof_dot"}); }
TEST_P(Stage, PassiveForces) { ExpectSame({"qfrc_passive"}); }
TEST_P(Stage, ReferenceAcceleration) { ExpectSame({"row aref"}); }
TEST_P(Stage, BiasForces) { ExpectSame({"qfrc_bias"}); }
TEST_P(Stage, Actuation) {
  ExpectSame({"actuator_length", "actuator_velocity", "actuator_force", "qfrc_actuator"});
}
TEST_P(Stage, SmoothAcceleration) { ExpectSame({"qfrc_smooth", "qacc_smooth"}); }
TEST_P(Stage, Solver) { ExpectSame({"row force", "qfrc_constraint", "qacc"}); }
TEST_P(Stage, ExternalForces) { ExpectSame({"cfrc_ext"}); }

INSTANTIATE_TEST_SUITE_P(Robots, Stage, testing::ValuesIn(Robots()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace pyfastenv::lanes
