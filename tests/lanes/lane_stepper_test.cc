// What LaneStepper promises beside equal bits: which lanes it leaves to MuJoCo, that those touch no
// others, and that results do not depend on how environments are grouped.
#include "lanes/lane_stepper.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <stdexcept>

#include "support.h"

namespace pyfastenv::lanes {
namespace {

const Robot& HalfCheetah() { return Robots()[5]; }

// Eight moving environments, and what ten substeps of mj_step make of them.
class LaneStepperTest : public testing::TestWithParam<int> {
 protected:
  LaneStepperTest()
      : m_(LoadRobot(HalfCheetah())),
        d_(MakeData(*m_)),
        lanes_(MakePlan(*m_, GetParam())),
        rows_(*m_, 8),
        expected_(*m_, 8),
        results_(*m_, 8) {
    Randomizer random(*m_, 3);
    for (int e = 0; e < 8; ++e) {
      random.Reset(*d_, 0.3);
      random.DrawControls(*d_, 1);
      mj_getState(m_.get(), d_.get(), rows_.row(e), mjSTATE_INTEGRATION);
    }
    results_.Copy(rows_);
    for (int e = 0; e < 8; ++e) {
      mj_setState(m_.get(), d_.get(), rows_.row(e), mjSTATE_INTEGRATION);
      for (int k = 0; k < 10; ++k) mj_step(m_.get(), d_.get());
      mj_getState(m_.get(), d_.get(), expected_.row(e), mjSTATE_INTEGRATION);
    }
  }

  const RowLayout& at() const { return lanes_.plan().tables().row; }
  int width() const { return lanes_.width(); }
  std::vector<double> Result(int e) { return {results_.row(e), results_.row(e) + results_.size()}; }
  std::vector<double> Expected(int e) {
    return {expected_.row(e), expected_.row(e) + expected_.size()};
  }

  // Steps one group in which `broken` cannot be done.
  void ExpectOnlyThatLaneIsLeft(int broken) {
    const std::vector<double> before = Result(broken);
    const unsigned redo = lanes_.Step(rows_.from(0), results_.from(0), width(), 10);
    EXPECT_EQ(redo, 1u << broken);
    EXPECT_EQ(Result(broken), before) << "a new row that MuJoCo has to make was written";
    for (int e = 0; e < width(); ++e) {
      if (e == broken) continue;
      EXPECT_EQ(Result(e), Expected(e)) << "environment " << e;
    }
  }

  ModelPtr m_;
  DataPtr d_;
  LaneStepper lanes_;
  RowSet rows_, expected_, results_;
};

TEST_P(LaneStepperTest, LeavesBadPositionsToMujoco) {
  rows_.row(0)[at().qpos + 1] = std::numeric_limits<double>::quiet_NaN();
  ExpectOnlyThatLaneIsLeft(0);
}

TEST_P(LaneStepperTest, LeavesHugeVelocitiesToMujoco) {
  rows_.row(width() - 1)[at().qvel + 3] = 2e10;
  ExpectOnlyThatLaneIsLeft(width() - 1);
}

TEST_P(LaneStepperTest, LeavesBadControlsToMujoco) {
  rows_.row(width() / 2)[at().ctrl] = std::numeric_limits<double>::quiet_NaN();
  ExpectOnlyThatLaneIsLeft(width() / 2);
}

TEST_P(LaneStepperTest, LeavesBadAppliedForcesToMujoco) {
  rows_.row(0)[at().qfrc_applied + 2] = std::numeric_limits<double>::quiet_NaN();
  ExpectOnlyThatLaneIsLeft(0);
  rows_.row(0)[at().qfrc_applied + 2] = -0.0;  // shows in zeros that are added
  ExpectOnlyThatLaneIsLeft(0);
  rows_.row(0)[at().qfrc_applied + 2] = 0;
  rows_.row(0)[at().xfrc_applied + 20] = 2e10;
  ExpectOnlyThatLaneIsLeft(0);
}

TEST_P(LaneStepperTest, AppliedForcesEndWithTheirRows) {
  const int pushed = width() - 1;
  rows_.row(pushed)[at().xfrc_applied + 20] = -1;
  EXPECT_EQ(lanes_.Step(rows_.from(0), results_.from(0), width(), 10), 0u);
  EXPECT_NE(Result(pushed), Expected(pushed));
  rows_.row(pushed)[at().xfrc_applied + 20] = 0;
  EXPECT_EQ(lanes_.Step(rows_.from(0), results_.from(0), width(), 10), 0u);
  for (int e = 0; e < width(); ++e) {
    const std::vector<double> now(results_.row(e), results_.row(e) + at().ctrl);
    EXPECT_EQ(now, std::vector<double>(expected_.row(e), expected_.row(e) + at().ctrl));
  }
}

TEST_P(LaneStepperTest, LeavesDivergenceToMujoco) {
  // fine at the start of the step, too fast for the second substep
  rows_.row(0)[at().qvel + 8] = 9e9;
  ExpectOnlyThatLaneIsLeft(0);
}

TEST_P(LaneStepperTest, StepsIncompleteGroups) {
  for (int count = 1; count <= width(); ++count) {
    results_.Copy(rows_);
    EXPECT_EQ(lanes_.Step(rows_.from(0), results_.from(0), count, 10), 0u);
    for (int e = 0; e < width(); ++e) {
      const std::vector<double> untouched(rows_.row(e), rows_.row(e) + rows_.size());
      EXPECT_EQ(Result(e), e < count ? Expected(e) : untouched) << e << " of " << count;
    }
  }
}

TEST_P(LaneStepperTest, ResultsDoNotDependOnTheGroup) {
  for (int shift = 0; shift < 8; ++shift) {
    std::vector<const double*> from;
    std::vector<double*> to;
    for (int l = 0; l < width(); ++l) {
      from.push_back(rows_.row((l + shift) % 8));
      to.push_back(results_.row((l + shift) % 8));
    }
    EXPECT_EQ(lanes_.Step(from.data(), to.data(), width(), 10), 0u);
    for (int l = 0; l < width(); ++l) {
      EXPECT_EQ(Result((l + shift) % 8), Expected((l + shift) % 8));
    }
  }
}

TEST_P(LaneStepperTest, StepsRowsInPlace) {
  double* const* rows = results_.from(0);
  EXPECT_EQ(lanes_.Step(rows, rows, width(), 10), 0u);
  for (int e = 0; e < width(); ++e) EXPECT_EQ(Result(e), Expected(e));
}

TEST_P(LaneStepperTest, NeedsNoModelAfterwards) {
  m_.reset();
  EXPECT_EQ(lanes_.Step(rows_.from(0), results_.from(0), width(), 10), 0u);
  for (int e = 0; e < width(); ++e) EXPECT_EQ(Result(e), Expected(e));
}

TEST_P(LaneStepperTest, HandsFieldsToMjData) {
  lanes_.Forward(rows_.from(0), width());
  mj_setState(m_.get(), d_.get(), rows_.row(width() - 1), mjSTATE_INTEGRATION);
  mj_forward(m_.get(), d_.get());
  const DataPtr other = MakeData(*m_);
  lanes_.Read(Field::xpos, width() - 1, *other);
  EXPECT_EQ(std::vector<double>(other->xpos, other->xpos + 3 * m_->nbody),
            std::vector<double>(d_->xpos, d_->xpos + 3 * m_->nbody));
}

TEST_P(LaneStepperTest, LeavesMoreContactsThanThereIsRoomForToMujoco) {
  // 60 capsules side by side lie on the floor in one environment and are above it in the others
  std::string geoms;
  for (int i = 0; i < 60; ++i) {
    const std::string x = std::to_string(0.1 * i);
    geoms += "<geom type='capsule' size='.04' fromto='" + x + " 0 0 " + x + " 1 0'/>";
  }
  const ModelPtr m = LoadXml(
      "<mujoco><worldbody><geom type='plane' size='9 9 1'/><body pos='0 0 .039'>"
      "<joint type='slide' axis='0 0 1'/>" +
      geoms + "</body></worldbody></mujoco>");
  LaneStepper lanes(MakePlan(*m, GetParam()));
  const DataPtr d = MakeData(*m);
  RowSet rows(*m, 8);
  for (int e = 0; e < 8; ++e) {
    d->qpos[0] = e == 0 ? 0 : 1;
    mj_getState(m.get(), d.get(), rows.row(e), mjSTATE_INTEGRATION);
  }
  EXPECT_EQ(lanes.Step(rows.from(0), rows.from(0), lanes.width(), 1), 1u);
}

INSTANTIATE_TEST_SUITE_P(Lanes, LaneStepperTest, testing::ValuesIn(Widths()),
                         testing::PrintToStringParamName());

// Sets PYFASTENV_LANES for a test.
class LanesVariable : public testing::Test {
 protected:
  static void Set(const char* value) { setenv("PYFASTENV_LANES", value, 1); }
  void TearDown() override { unsetenv("PYFASTENV_LANES"); }
};

TEST_F(LanesVariable, ChoosesTheWidth) {
  for (const int width : Widths()) {
    Set(std::to_string(width).c_str());
    EXPECT_EQ(BestKernels().width, width);
  }
  Set("");
  EXPECT_EQ(BestKernels().width, Widths().front());
}

TEST_F(LanesVariable, MustNameAWidthThatIsThere) {
  for (const char* value : {"3", "16", "many", "-1"}) {
    Set(value);
    EXPECT_THROW(BestKernels(), std::invalid_argument) << value;
  }
}

}  // namespace
}  // namespace pyfastenv::lanes
