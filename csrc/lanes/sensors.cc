#include "lanes/sensors.h"

namespace pyfastenv::lanes {

namespace {

// What all sensors that are known are computed from, besides the state.
constexpr Field kSensed[] = {
    Field::xpos,
    Field::xquat,
    Field::xmat,
    Field::xipos,
    Field::ximat,
    Field::geom_xpos,
    Field::geom_xmat,
    Field::site_xpos,
    Field::site_xmat,
    Field::subtree_com,
    Field::cvel,
    Field::cinert,
    Field::cdof,
    Field::cdof_dot,
    Field::qacc,
    Field::actuator_length,
    Field::ten_length,
    Field::ten_velocity,
    Field::actuator_velocity,
    Field::actuator_force,
    Field::qfrc_actuator,
};

// Neither contacts nor limits, energies, rays, distances of geoms, cameras, nor quaternions of
// geoms, sites and inertias.
bool IsKnown(const mjModel& m, int sensor) {
  const int object = m.sensor_objtype[sensor], reference = m.sensor_reftype[sensor];
  if (object == mjOBJ_CAMERA || reference == mjOBJ_CAMERA) return false;
  switch (m.sensor_type[sensor]) {
    case mjSENS_FRAMEQUAT:  // of frames whose quaternions lanes have
      return object == mjOBJ_XBODY && (reference == mjOBJ_XBODY || m.sensor_refid[sensor] < 0);
    case mjSENS_ACCELEROMETER:
    case mjSENS_VELOCIMETER:
    case mjSENS_GYRO:
    case mjSENS_MAGNETOMETER:
    case mjSENS_JOINTPOS:
    case mjSENS_JOINTVEL:
    case mjSENS_JOINTACTFRC:
    case mjSENS_TENDONPOS:
    case mjSENS_TENDONVEL:
    case mjSENS_ACTUATORPOS:
    case mjSENS_ACTUATORVEL:
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

std::string UnsupportedSensor(const mjModel& m) {
  // Runge-Kutta's sensors are those of its first evaluation, lanes' fields of its last
  if (m.nsensor > 0 && m.opt.integrator == mjINT_RK4) return "sensors with RK4";
  for (int i = 0; i < m.nsensor; ++i) {
    if (IsKnown(m, i)) continue;
    std::string what =
        "sensors of contacts, limits, energies, rays, distances, cameras and of quaternions that "
        "are not a body's (sensor ";
    const char* name = mj_id2name(&m, mjOBJ_SENSOR, i);
    if (name == nullptr) return what.append(std::to_string(i)).append(")");
    return what.append("'").append(name).append("')");
  }
  return {};
}

void ComputeSensors(const LaneStepper& lanes, int lane, const mjModel& m, mjData& d) {
  lanes.ReadEvaluated(lane, d);
  for (const Field field : kSensed) lanes.Read(field, lane, d);
  // what else is there is another environment's
  d.ncon = d.nefc = d.ne = 0;
  d.flg_subtreevel = d.flg_rnepost = 0;
  mj_sensorPos(&m, &d);
  mj_sensorVel(&m, &d);
  mj_sensorAcc(&m, &d);
}

}  // namespace pyfastenv::lanes
