#include "lanes/sensors.h"

#include <algorithm>

#include "lanes/contacts.h"
#include "lanes/features.h"
#include "mujoco/error_trap.h"

namespace pyfastenv::lanes {

namespace {

// What all sensors that are known are computed from, besides the state: those of the motion, if it
// is fresh, …
constexpr Field kPlacesAndVelocities[] = {
    Field::xpos,      Field::xquat,      Field::xmat,         Field::xipos,     Field::ximat,
    Field::geom_xpos, Field::geom_xmat,  Field::site_xpos,    Field::site_xmat, Field::subtree_com,
    Field::cvel,      Field::ten_length, Field::ten_velocity,
};

// … and the others too.
constexpr Field kForces[] = {
    Field::cinert,          Field::cdof,
    Field::cdof_dot,        Field::qacc,
    Field::actuator_length, Field::actuator_velocity,
    Field::actuator_force,  Field::qfrc_actuator,
};

bool IsAmong(const mjModel& m, int sensor, Sensors which) {
  if (which == Sensors::kNone || which == Sensors::kAll) return which == Sensors::kAll;
  return (m.sensor_needstage[sensor] == mjSTAGE_ACC) == (which == Sensors::kOfAcceleration);
}

// Made of the forces of contacts.
bool NeedsContacts(const mjModel& m, int sensor) {
  const int type = m.sensor_type[sensor];
  return type == mjSENS_TOUCH || type == mjSENS_CONTACT || type == mjSENS_FORCE ||
         type == mjSENS_TORQUE;
}

// Whether a sensor of contacts shows neither places nor directions, in which signs of zeros are
// seen. (A sum has none that its terms have.)
bool ShowsForces(const mjModel& m, int sensor) {
  constexpr int kForces =
      1 << mjCONDATA_FOUND | 1 << mjCONDATA_FORCE | 1 << mjCONDATA_TORQUE | 1 << mjCONDATA_DIST;
  return (m.sensor_intprm[ptrdiff_t{mjNSENS} * sensor] & ~kForces) == 0;
}

// Whether equality constraints push at bodies, which a force between bodies is made of too.
bool BodiesAreHeld(const mjModel& m) {
  return std::any_of(m.eq_type, m.eq_type + m.neq,
                     [](int type) { return type == mjEQ_CONNECT || type == mjEQ_WELD; });
}

// Neither limits, energies, rays, distances of geoms, cameras, places and directions of contacts,
// nor quaternions of geoms, sites and inertias.
bool IsKnown(const mjModel& m, int sensor, Sensors which) {
  const int object = m.sensor_objtype[sensor], reference = m.sensor_reftype[sensor];
  if (object == mjOBJ_CAMERA || reference == mjOBJ_CAMERA) return false;
  switch (m.sensor_type[sensor]) {
    case mjSENS_FRAMEQUAT:  // of frames whose quaternions lanes have
      return object == mjOBJ_XBODY && (reference == mjOBJ_XBODY || m.sensor_refid[sensor] < 0);
    case mjSENS_FORCE:
    case mjSENS_TORQUE:
      return !BodiesAreHeld(m) && !LacksBodyForces(m);
    case mjSENS_CONTACT:
      return ShowsForces(m, sensor) && UnsupportedContacts(m).empty();
    case mjSENS_ACTUATORPOS:
    case mjSENS_ACTUATORVEL:
      return which != Sensors::kOfMotion;  // lanes know them with actuators' forces
    case mjSENS_TOUCH:
    case mjSENS_ACCELEROMETER:
    case mjSENS_VELOCIMETER:
    case mjSENS_GYRO:
    case mjSENS_MAGNETOMETER:
    case mjSENS_JOINTPOS:
    case mjSENS_JOINTVEL:
    case mjSENS_JOINTACTFRC:
    case mjSENS_BALLQUAT:
    case mjSENS_BALLANGVEL:
    case mjSENS_TENDONPOS:
    case mjSENS_TENDONVEL:
    case mjSENS_ACTUATORFRC:
    case mjSENS_FRAMEPOS:
    case mjSENS_FRAMEXAXIS:
    case mjSENS_FRAMEYAXIS:
    case mjSENS_FRAMEZAXIS:
    case mjSENS_FRAMELINVEL:
    case mjSENS_FRAMEANGVEL:
    case mjSENS_FRAMELINACC:
    case mjSENS_FRAMEANGACC:
    case mjSENS_SUBTREECOM:
    case mjSENS_SUBTREELINVEL:
    case mjSENS_SUBTREEANGMOM:
    case mjSENS_CLOCK:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool HasSensors(const mjModel& m, Sensors which) {
  for (int i = 0; i < m.nsensor; ++i) {
    if (IsAmong(m, i, which)) return true;
  }
  return false;
}

bool LacksBodyForces(const mjModel& m) { return SpatialTendonsPull(m); }

bool SensesTendons(const mjModel& m, Sensors which) {
  for (int i = 0; i < m.nsensor; ++i) {
    const int type = m.sensor_type[i];
    const bool of_tendon = type == mjSENS_TENDONPOS || type == mjSENS_TENDONVEL;
    if (of_tendon && IsAmong(m, i, which)) return true;
  }
  return false;
}

std::string UnsupportedSensor(const mjModel& m, Sensors which) {
  // Runge-Kutta's sensors are those of its first evaluation, lanes' fields of its last
  if (which != Sensors::kOfMotion && HasSensors(m, which) && m.opt.integrator == mjINT_RK4)
    return "sensors with RK4";
  for (int i = 0; i < m.nsensor; ++i) {
    if (!IsAmong(m, i, which) || IsKnown(m, i, which)) continue;
    std::string what =
        "sensors of limits, energies, rays, distances, cameras, places and directions of contacts, "
        "forces between bodies that equalities or spatial tendons hold, and of quaternions that "
        "are not a body's (sensor ";
    const char* name = mj_id2name(&m, mjOBJ_SENSOR, i);
    if (name == nullptr) return what.append(std::to_string(i)).append(")");
    return what.append("'").append(name).append("')");
  }
  return {};
}

void ComputeSensors(const LaneStepper& lanes, int lane, const mjModel& m, mjData& d,
                    Sensors which) {
  for (const Field field : kPlacesAndVelocities) lanes.Read(field, lane, d);
  if (which == Sensors::kOfMotion) {
    d.flg_subtreevel = 0;
    mj_sensorPos(&m, &d);
    mj_sensorVel(&m, &d);
    return;
  }
  lanes.ReadEvaluated(lane, d);
  for (const Field field : kForces) lanes.Read(field, lane, d);
  // what else is there is another environment's
  lanes.Read(Field::xfrc_applied, lane, d);
  d.ncon = d.nefc = d.ne = 0;
  d.flg_subtreevel = d.flg_rnepost = 0;
  for (int i = 0; i < m.nsensor; ++i) {
    if (!NeedsContacts(m, i)) continue;
    WriteContacts(lanes, lane, m, d);
    break;
  }
  if (which == Sensors::kAll) {
    mj_sensorPos(&m, &d);
    mj_sensorVel(&m, &d);
  }
  mj_sensorAcc(&m, &d);
}

void TurnFrames(const mjModel& m, mjData& d) {
  const auto turn = [&](mjtNum* to, int body, int same, const mjtNum* own) {
    const bool inertia = same == mjSAMEFRAME_INERTIA || same == mjSAMEFRAME_INERTIAROT;
    const mjtNum* from = (inertia ? d.xiquat : d.xquat) + ptrdiff_t{4} * body;
    if (same == mjSAMEFRAME_NONE) return mju_mulQuat(to, from, own);
    mju_copy4(to, from);
  };
  for (int b = 0; b < m.nbody; ++b) {
    turn(d.xiquat + ptrdiff_t{4} * b, b, m.body_sameframe[b], m.body_iquat + ptrdiff_t{4} * b);
  }
  for (int g = 0; g < m.ngeom; ++g) {
    const ptrdiff_t at = ptrdiff_t{4} * g;
    turn(d.geom_xquat + at, m.geom_bodyid[g], m.geom_sameframe[g], m.geom_quat + at);
  }
  for (int i = 0; i < m.nsite; ++i) {
    const ptrdiff_t at = ptrdiff_t{4} * i;
    turn(d.site_xquat + at, m.site_bodyid[i], m.site_sameframe[i], m.site_quat + at);
  }
}

namespace {

// What those sensors are computed from that lanes leave to MuJoCo.
void ReadForOthers(const LaneStepper& lanes, int lane, const mjModel& m, mjData& d) {
  const SensorTable& table = lanes.plan().tables().sensors;
  const auto read = [&](std::initializer_list<Field> fields) {
    for (const Field field : fields) lanes.Read(field, lane, d);
  };
  if (table.sites || table.places) read({Field::site_xpos, Field::site_xmat});
  d.ncon = d.nefc = d.ne = d.nf = d.nl = 0;
  if (lanes.plan().other_sensors().of_contacts()) WriteContacts(lanes, lane, m, d);
  if (!table.places) return;
  lanes.ReadEvaluated(lane, d);
  read({Field::xpos, Field::xquat, Field::xmat, Field::xipos, Field::ximat, Field::geom_xpos,
        Field::geom_xmat, Field::subtree_com, Field::ten_length});
  if (lanes.plan().other_sensors().of_quaternions()) TurnFrames(m, d);
  if (table.velocities) read({Field::cvel});
  if (table.motions) read({Field::cinert, Field::cdof, Field::cdof_dot, Field::qacc});
  if (table.inertia_matrix) read({Field::M});
  lanes.Read(Field::xfrc_applied, lane, d);
  d.flg_energypos = d.flg_energyvel = d.flg_subtreevel = d.flg_rnepost = 0;
  d.energy[0] = d.energy[1] = 0;  // stay so if nothing moves
}

}  // namespace

bool WriteSensordata(const LaneStepper& lanes, int lane, const mjModel& m, mjData& d, double* out) {
  lanes.ReadSensors(lane, out);
  const OtherSensors& others = lanes.plan().other_sensors();
  if (others.empty()) return true;
  if (others.vanish() && lanes.CountContacts(lane) == 0) {
    others.SetZero(out);
    return true;
  }
  // which energies and velocities of subtrees mj_step takes to be known when it begins
  const mjtBool flags[] = {d.flg_energypos, d.flg_energyvel, d.flg_subtreevel, d.flg_rnepost};
  const mjModel header = others.Of(m);
  ReadForOthers(lanes, lane, m, d);
  const bool cameras = others.of_cameras();
  try {
    Trapped([&] {
      if (cameras) mj_camlight(&m, &d);
      mj_sensorPos(&header, &d);
      mj_sensorVel(&header, &d);
      mj_sensorAcc(&header, &d);
    });
  } catch (const MujocoError&) {
    mj_resetData(&m, &d);
    return false;
  }
  d.flg_energypos = flags[0];
  d.flg_energyvel = flags[1];
  d.flg_subtreevel = flags[2];
  d.flg_rnepost = flags[3];
  others.Copy(d.sensordata, out);
  return true;
}

}  // namespace pyfastenv::lanes
