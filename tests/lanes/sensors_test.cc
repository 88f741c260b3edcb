// sensordata from lanes' fields, against mj_step's.
#include "lanes/sensors.h"

#include <gtest/gtest.h>
#include <mujoco/mjxmacro.h>

#include <cstring>
#include <limits>
#include <type_traits>

#include "support.h"

namespace pyfastenv::lanes {
namespace {

constexpr char kXml[] = R"(
<mujoco>
  <option timestep=".005" magnetic="0 -.5 .2"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <site name="home" pos=".1 .2 .3" euler="20 0 10"/>
    <body name="torso" pos="0 0 .3">
      <freejoint/>
      <geom name="trunk" type="capsule" fromto="-.2 0 0 .2 0 .1" size=".08"/>
      <site name="imu" pos=".05 0 .02" euler="10 20 30"/>
      <body name="leg" pos="-.2 0 0">
        <joint name="hip" axis="0 1 0" damping=".5" range="-40 40" limited="true"/>
        <geom name="shin" type="capsule" fromto="0 .02 -.03 0 .05 -.2" size=".05"/>
        <site name="sole" pos="0 .05 -.2" size=".06"/>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="string"><joint joint="hip" coef="2"/></fixed></tendon>
  <actuator><position name="servo" joint="hip" kp="5" ctrlrange="-1 1" ctrllimited="true"/></actuator>
  <sensor>
    <accelerometer site="imu"/> <velocimeter site="imu"/> <gyro site="imu" noise=".1" cutoff="1"/>
    <magnetometer site="imu"/>
    <jointpos joint="hip"/> <jointvel joint="hip"/> <jointactuatorfrc joint="hip"/>
    <tendonpos tendon="string"/> <tendonvel tendon="string"/>
    <actuatorpos actuator="servo"/> <actuatorvel actuator="servo"/> <actuatorfrc actuator="servo"/>
    <framepos objtype="body" objname="leg"/> <framepos objtype="xbody" objname="leg"/>
    <framepos objtype="geom" objname="shin" reftype="site" refname="imu"/>
    <framequat objtype="xbody" objname="leg"/>
    <framequat objtype="xbody" objname="leg" reftype="xbody" refname="torso"/>
    <framexaxis objtype="geom" objname="trunk"/> <frameyaxis objtype="site" objname="imu"/>
    <framezaxis objtype="xbody" objname="leg" reftype="body" refname="torso"/>
    <framelinvel objtype="geom" objname="shin"/>
    <framelinvel objtype="xbody" objname="leg" reftype="site" refname="imu"/>
    <frameangvel objtype="body" objname="leg"/> <framelinacc objtype="site" objname="imu"/>
    <frameangacc objtype="geom" objname="shin"/>
    <subtreecom body="torso"/> <subtreelinvel body="torso"/> <subtreeangmom body="torso"/>
    <clock/>
    <touch name="touch" site="sole"/> <force site="sole"/> <torque site="imu"/>
  </sensor>
</mujoco>)";

// mjData's arrays of numbers, state and all: who reads what nobody has written, is found out.
void Poison(const mjModel& m, mjData& d) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
#define PYFASTENV_FILL(type, field, rows, columns)                                          \
  if constexpr (std::is_same_v<type, mjtNum>) {                                             \
    std::fill_n(d.field, static_cast<size_t>(m.rows) * static_cast<size_t>(columns), kNan); \
  }
#define X PYFASTENV_FILL
#undef XNV
#define XNV X
  MJDATA_POINTERS
#undef X
#undef XNV
#define XNV X
#undef PYFASTENV_FILL
}

class SensorBits : public testing::TestWithParam<const char*> {};

TEST_P(SensorBits, AreMjSteps) {
  std::string xml = kXml;
  const ModelPtr m = LoadXml(xml.insert(xml.find("timestep"), GetParam()));
  ASSERT_EQ(UnsupportedSensor(*m, Sensors::kAll), "");
  const int touch = m->sensor_adr[mj_name2id(m.get(), mjOBJ_SENSOR, "touch")];
  int touches = 0;
  const DataPtr d = MakeData(*m), other = MakeData(*m);
  LaneStepper lanes(MakePlan(*m, Widths()[0]));
  RowSet rows(*m, lanes.width());
  Randomizer random(*m, 3);
  const auto size = static_cast<size_t>(m->nsensordata);
  for (int e = 0; e < lanes.width(); ++e) {
    random.Reset(*d, 0.3);
    mj_getState(m.get(), d.get(), rows.row(e), mjSTATE_INTEGRATION);
  }
  for (int step = 0; step < 400; ++step) {
    std::vector<std::vector<double>> theirs;
    for (int e = 0; e < lanes.width(); ++e) {
      mj_setState(m.get(), d.get(), rows.row(e), mjSTATE_INTEGRATION);
      random.DrawControls(*d, 1);
      mj_getState(m.get(), d.get(), rows.row(e), mjSTATE_INTEGRATION);
      for (int k = 0; k < 2; ++k) mj_step(m.get(), d.get());
      theirs.emplace_back(d->sensordata, d->sensordata + size);
    }
    ASSERT_EQ(lanes.Step(rows.from(0), rows.from(0), lanes.width(), 2), 0u);
    for (int e = 0; e < lanes.width(); ++e) {
      Poison(*m, *other);
      ComputeSensors(lanes, e, *m, *other, Sensors::kAll);
      touches += static_cast<int>(other->sensordata[touch] > 0);
      for (size_t i = 0; i < size; ++i) {
        ASSERT_EQ(std::memcmp(other->sensordata + i, &theirs[static_cast<size_t>(e)][i], 8), 0)
            << "number " << i << " in step " << step << ": " << other->sensordata[i] << ", not "
            << theirs[static_cast<size_t>(e)][i];
      }
    }
  }
  EXPECT_GT(touches, 100);
}

INSTANTIATE_TEST_SUITE_P(Integrators, SensorBits,
                         testing::Values("", "integrator='implicitfast' "));

// Those of the acceleration are the last substep's, whatever has been computed anew since.
TEST(SensorsOfTheAcceleration, LeaveTheOthersAlone) {
  const ModelPtr m = LoadXml(kXml);
  const DataPtr d = MakeData(*m), other = MakeData(*m);
  LaneStepper lanes(MakePlan(*m, 1));
  RowSet rows(*m, 1);
  Randomizer(*m, 3).Reset(*d, 0.3);
  mj_getState(m.get(), d.get(), rows.row(0), mjSTATE_INTEGRATION);
  mj_step(m.get(), d.get());
  ASSERT_EQ(lanes.Step(rows.from(0), rows.from(0), 1, 1), 0u);
  std::fill_n(other->sensordata, m->nsensordata, 7.0);
  ComputeSensors(lanes, 0, *m, *other, Sensors::kOfAcceleration);
  for (int i = 0; i < m->nsensor; ++i) {
    const bool computed = m->sensor_needstage[i] == mjSTAGE_ACC;
    for (int k = m->sensor_adr[i]; k < m->sensor_adr[i] + m->sensor_dim[i]; ++k) {
      EXPECT_EQ(other->sensordata[k], computed ? d->sensordata[k] : 7.0) << "sensor " << i;
    }
  }
  EXPECT_TRUE(HasSensors(*m, Sensors::kOfAcceleration));
}

TEST(SensorsInLanes, AskMujocoOfTheRestAlone) {
  const auto asks_mujoco = [](const std::string& sensor) {
    std::string xml = kXml;
    xml.replace(xml.find("<sensor>"), std::string::npos,
                "<sensor>" + sensor + "</sensor></mujoco>");
    const ModelPtr model = LoadXml(xml);
    const auto made = Plan::MakeUnchecked(*model, BestKernels(), {}, nullptr, Sensing::kYes);
    return !made.plan->other_sensors().empty();
  };
  EXPECT_FALSE(asks_mujoco(R"(<contact geom1="shin" data="found" num="3"/>)"));
  EXPECT_FALSE(asks_mujoco(R"(<contact subtree1="torso" data="found" reduce="netforce"/>)"));
  EXPECT_TRUE(asks_mujoco(R"(<contact geom1="shin" data="found dist"/>)"));
  EXPECT_TRUE(asks_mujoco(R"(<contact site="sole" data="found"/>)"));
  EXPECT_FALSE(asks_mujoco(R"(<rangefinder site="sole" cutoff="1"/>)"));
  EXPECT_TRUE(asks_mujoco(R"(<rangefinder site="sole" data="dist normal"/>)"));
}

TEST(UnknownSensors, AreRefused) {
  const auto refusal = [](const std::string& sensor, const char* options = "",
                          Sensors which = Sensors::kAll) {
    const ModelPtr m =
        LoadXml(std::string("<mujoco><option ") + options +
                "/><worldbody><body name='b'><joint name='j' range='-1 1'/><geom size='1'/>"
                "<site name='s'/></body></worldbody><sensor>" +
                sensor +
                "</sensor><equality><connect body1='b' anchor='1 0 0' active='false'/></equality>"
                "</mujoco>");
    return UnsupportedSensor(*m, which);
  };
  EXPECT_NE(refusal("<force name='pull' site='s'/>").find("(sensor 'pull')"), std::string::npos);
  EXPECT_NE(refusal("<clock/><jointlimitfrc joint='j'/>").find("(sensor 1)"), std::string::npos);
  EXPECT_NE(refusal("<framequat objtype='site' objname='s'/>").find("(sensor 0)"),
            std::string::npos);
  EXPECT_EQ(refusal("<clock/>", "integrator='RK4'"), "sensors with RK4");
  EXPECT_EQ(refusal("<clock/>", "integrator='RK4'", Sensors::kOfAcceleration), "");
  EXPECT_EQ(refusal("<jointlimitpos joint='j'/>", "", Sensors::kOfAcceleration), "");
  EXPECT_EQ(refusal("<touch site='s'/>"), "");
  EXPECT_EQ(refusal(""), "");
}

}  // namespace
}  // namespace pyfastenv::lanes
