// A plan's table of sensors.
#include <algorithm>

#include "lanes/features.h"
#include "lanes/plan.h"
#include "lanes/rays.h"
#include "lanes/sensors.h"

namespace pyfastenv::lanes {

namespace {

// Of a camera's frame lanes know nothing: kNone.
SensorFrame FrameOf(const mjModel& m, int type, int id) {
  const auto still = [&](int body) { return m.body_dofnum[m.body_weldid[body]] == 0; };
  switch (id < 0 ? mjOBJ_UNKNOWN : type) {
    case mjOBJ_BODY:
      return {FrameKind::kInertia, id, still(id)};
    case mjOBJ_XBODY:
      return {FrameKind::kBody, id, still(id)};
    case mjOBJ_GEOM:
      return {FrameKind::kGeom, id, still(m.geom_bodyid[id])};
    case mjOBJ_SITE:
      return {FrameKind::kSite, id, still(m.site_bodyid[id])};
    default:
      return {FrameKind::kNone, -1, true};
  }
}

bool IsOfFrame(SensorKind kind) {
  return kind >= SensorKind::kMagnetometer && kind <= SensorKind::kFrameAngularAcceleration;
}

// Whether a sensor of contacts does nothing but count them, between geoms that are known
// beforehand: none in a site's volume. (Their net force has one number, of all together.)
bool CountsContacts(const mjModel& m, int sensor) {
  const int* parameters = m.sensor_intprm + ptrdiff_t{mjNSENS} * sensor;
  constexpr int kNetForce = 3;
  return parameters[0] == 1 << mjCONDATA_FOUND && m.sensor_objtype[sensor] != mjOBJ_SITE &&
         m.sensor_reftype[sensor] != mjOBJ_SITE &&
         (parameters[1] != kNetForce || m.sensor_dim[sensor] == 1);
}

// Whether a geom is what a sensor of contacts asks for: itself, of a body, of a subtree, or any.
bool IsOf(const mjModel& m, int geom, int type, int id) {
  int body = m.geom_bodyid[geom];
  switch (type) {
    case mjOBJ_UNKNOWN:
      return true;
    case mjOBJ_GEOM:
      return geom == id;
    case mjOBJ_BODY:
      return body == id;
    case mjOBJ_XBODY:
      while (body > id) body = m.body_parentid[body];
      return body == id;
    default:
      return false;
  }
}

// The kind of a sensor and what `id` is of its object; false: MuJoCo's functions compute it.
bool FindKind(const mjModel& m, int sensor, Sensor& r) {
  const int object = m.sensor_objid[sensor];
  const auto is = [&](SensorKind kind, int id) {
    r.kind = kind;
    r.id = id;
    return true;
  };
  switch (m.sensor_type[sensor]) {
    case mjSENS_JOINTPOS:
      return is(SensorKind::kPosition, m.jnt_qposadr[object]);
    case mjSENS_JOINTVEL:
    case mjSENS_BALLANGVEL:
      return is(SensorKind::kVelocity, m.jnt_dofadr[object]);
    case mjSENS_TENDONPOS:
      return is(SensorKind::kTendonLength, object);
    case mjSENS_TENDONVEL:
      return is(SensorKind::kTendonVelocity, object);
    case mjSENS_ACTUATORPOS:
      return is(SensorKind::kActuatorLength, m.actuator_outadr[object]);
    case mjSENS_ACTUATORVEL:
      return is(SensorKind::kActuatorVelocity, m.actuator_outadr[object]);
    case mjSENS_ACTUATORFRC:
      return is(SensorKind::kActuatorForce, m.actuator_outadr[object]);
    case mjSENS_JOINTACTFRC:
      return is(SensorKind::kJointForce, m.jnt_dofadr[object]);
    case mjSENS_TENDONACTFRC:
      return is(SensorKind::kTendonForce, object);
    case mjSENS_BALLQUAT:
      return is(SensorKind::kBallQuat, m.jnt_qposadr[object]);
    case mjSENS_CLOCK:
      return is(SensorKind::kClock, -1);
    case mjSENS_MAGNETOMETER:
      return is(SensorKind::kMagnetometer, -1);
    case mjSENS_GYRO:
      return is(SensorKind::kGyro, -1);
    case mjSENS_VELOCIMETER:
      return is(SensorKind::kVelocimeter, -1);
    case mjSENS_ACCELEROMETER:
      return is(SensorKind::kAccelerometer, -1);
    case mjSENS_FORCE:
      return is(SensorKind::kForce, -1);
    case mjSENS_TORQUE:
      return is(SensorKind::kTorque, -1);
    case mjSENS_FRAMEPOS:
      return is(SensorKind::kFramePosition, -1);
    case mjSENS_FRAMEQUAT:
      return is(SensorKind::kFrameQuat, -1);
    case mjSENS_FRAMEXAXIS:
    case mjSENS_FRAMEYAXIS:
    case mjSENS_FRAMEZAXIS:
      return is(SensorKind::kFrameAxis, m.sensor_type[sensor] - mjSENS_FRAMEXAXIS);
    case mjSENS_FRAMELINVEL:
      return is(SensorKind::kFrameLinearVelocity, -1);
    case mjSENS_FRAMEANGVEL:
      return is(SensorKind::kFrameAngularVelocity, -1);
    case mjSENS_FRAMELINACC:
      return is(SensorKind::kFrameLinearAcceleration, -1);
    case mjSENS_FRAMEANGACC:
      return is(SensorKind::kFrameAngularAcceleration, -1);
    case mjSENS_SUBTREECOM:
      return is(SensorKind::kSubtreeCenter, object);
    case mjSENS_SUBTREELINVEL:
      return is(SensorKind::kSubtreeLinearVelocity, object);
    case mjSENS_SUBTREEANGMOM:
      return is(SensorKind::kSubtreeAngularMomentum, object);
    case mjSENS_JOINTLIMITPOS:
    case mjSENS_TENDONLIMITPOS:
      return is(SensorKind::kLimitPosition, object);
    case mjSENS_JOINTLIMITVEL:
    case mjSENS_TENDONLIMITVEL:
      return is(SensorKind::kLimitVelocity, object);
    case mjSENS_JOINTLIMITFRC:
    case mjSENS_TENDONLIMITFRC:
      return is(SensorKind::kLimitForce, object);
    case mjSENS_CONTACT:
      return CountsContacts(m, sensor) && is(SensorKind::kContactCount, -1);
    case mjSENS_RANGEFINDER:
      return Rays::Suit(m, sensor) && is(SensorKind::kRange, -1);
    default:
      return false;
  }
}

bool IsOfTendonsLimit(int type) {
  return type == mjSENS_TENDONLIMITPOS || type == mjSENS_TENDONLIMITVEL ||
         type == mjSENS_TENDONLIMITFRC;
}

bool IsOfTendon(int type) {
  return type == mjSENS_TENDONPOS || type == mjSENS_TENDONVEL || IsOfTendonsLimit(type);
}

// Whether some sensor is of the velocity of an actuator at a site.
bool SensesSiteVelocities(const mjModel& m) {
  for (int i = 0; i < m.nsensor; ++i) {
    const bool velocity = m.sensor_type[i] == mjSENS_ACTUATORVEL;
    if (velocity && m.actuator_trntype[m.sensor_objid[i]] == mjTRN_SITE) return true;
  }
  return false;
}

// Whether a sensor counts the contacts of a pair.
bool CountsPair(const mjModel& m, int sensor, const Pair& pair) {
  const auto of = [&](int geom, int geom_of_reference) {
    return IsOf(m, geom, m.sensor_objtype[sensor], m.sensor_objid[sensor]) &&
           IsOf(m, geom_of_reference, m.sensor_reftype[sensor], m.sensor_refid[sensor]);
  };
  return of(pair.geom1, pair.geom2) || of(pair.geom2, pair.geom1);
}

// A sensor that lanes compute; false: MuJoCo's functions do.
bool MakeSensor(const mjModel& m, int i, Sensor& r) {
  r = {};
  r.object = FrameOf(m, m.sensor_objtype[i], m.sensor_objid[i]);
  r.reference = FrameOf(m, m.sensor_reftype[i], m.sensor_refid[i]);
  if (!FindKind(m, i, r)) return false;
  const bool of_camera = m.sensor_objtype[i] == mjOBJ_CAMERA || m.sensor_reftype[i] == mjOBJ_CAMERA;
  if (IsOfFrame(r.kind) && of_camera) return false;
  r.adr = m.sensor_adr[i];
  r.dim = m.sensor_dim[i];
  const int type = m.sensor_datatype[i];
  if (type == mjDATATYPE_REAL || type == mjDATATYPE_POSITIVE) r.cutoff = m.sensor_cutoff[i];
  r.cuts_negative = type == mjDATATYPE_REAL;
  return true;
}

// "(sensor 'eye')"
std::string Named(const mjModel& m, int sensor) {
  const char* name = mj_id2name(&m, mjOBJ_SENSOR, sensor);
  return name == nullptr ? std::string("(sensor ").append(std::to_string(sensor)).append(")")
                         : std::string("(sensor '").append(name).append("')");
}

}  // namespace

std::string UnsupportedSensordata(const mjModel& m, const std::vector<std::string>& fields) {
  if (m.nsensor > 0 && IsOff(m, mjDSBL_SENSOR)) return "sensors that are disabled";
  const bool own_subtrees =
      std::find(fields.begin(), fields.end(), "body_subtreemass") != fields.end();
  for (int i = 0; i < m.nsensor; ++i) {
    const auto that = [&](const char* what) {
      return std::string(what).append(" ").append(Named(m, i));
    };
    const int type = m.sensor_type[i];
    if (type == mjSENS_USER || type == mjSENS_PLUGIN) return that("sensors of users and plugins");
    if (IsOfTendon(type) && !TendonsMatter(m)) {
      return that("sensors of tendons that do nothing else");
    }
    if ((type == mjSENS_FORCE || type == mjSENS_TORQUE) && SpatialTendonsPull(m)) {
      return that("sensors of forces and torques where spatial tendons pull");
    }
    if (type == mjSENS_E_KINETIC && (m.opt.enableflags & mjENBL_ENERGY) != 0) {
      return that("sensors of kinetic energy where <flag energy> is enabled");
    }
    if (type == mjSENS_SUBTREEANGMOM && own_subtrees) {
      return that("angular momenta of subtrees with per-environment body_subtreemass");
    }
  }
  return {};
}

void Plan::AddSensors(const mjModel& m, const mjModel& whole) {
  SensorTable& table = tables_.sensors;
  tables_.uses_site_velocities |= SensesSiteVelocities(m);
  std::vector<int> others;
  for (int i = 0; i < m.nsensor; ++i) {
    Sensor sensor;
    const int type = m.sensor_type[i];
    table.contacts = table.contacts || type == mjSENS_CONTACT;
    if (!MakeSensor(m, i, sensor)) {
      others.push_back(i);
      // linvel and angvel come after tangent
      const bool moves = type == mjSENS_CONTACT &&
                         m.sensor_intprm[ptrdiff_t{mjNSENS} * i] >> (mjCONDATA_TANGENT + 1) != 0;
      const bool of_contacts = (type == mjSENS_CONTACT && !moves) || type == mjSENS_TOUCH;
      table.sites = table.sites || type == mjSENS_TOUCH || m.sensor_objtype[i] == mjOBJ_SITE;
      table.places = table.places || !of_contacts;
      const int stage = m.sensor_needstage[i];
      const bool camera =
          m.sensor_objtype[i] == mjOBJ_CAMERA || m.sensor_reftype[i] == mjOBJ_CAMERA;
      table.velocities = table.velocities || camera || moves || type == mjSENS_TACTILE;
      table.motions = table.motions || (camera && stage == mjSTAGE_ACC);
      table.inertia_matrix = table.inertia_matrix || type == mjSENS_E_KINETIC;
      continue;
    }
    if (sensor.kind == SensorKind::kContactCount) {
      sensor.id = static_cast<int>(counted_.size());
      for (const Pair& pair : pairs_) counted_.push_back(CountsPair(m, i, pair));
    } else if (sensor.kind >= SensorKind::kLimitPosition) {
      const bool of_tendon = IsOfTendonsLimit(type);
      const auto is_its = [&](const Limit& limit) {
        return of_tendon ? limit.kind == LimitKind::kTendon && limit.tendon == sensor.id
                         : limit.kind != LimitKind::kTendon && limit.joint == sensor.id;
      };
      const auto found = std::find_if(limits_.begin(), limits_.end(), is_its);
      sensor.id = found == limits_.end() ? -1 : static_cast<int>(found - limits_.begin());
    }
    const bool force = sensor.kind == SensorKind::kForce || sensor.kind == SensorKind::kTorque;
    table.external_forces = table.external_forces || force;
    table.accelerations = table.accelerations || force ||
                          sensor.kind == SensorKind::kAccelerometer ||
                          sensor.kind == SensorKind::kFrameLinearAcceleration ||
                          sensor.kind == SensorKind::kFrameAngularAcceleration;
    table.subtree_velocities = table.subtree_velocities ||
                               sensor.kind == SensorKind::kSubtreeLinearVelocity ||
                               sensor.kind == SensorKind::kSubtreeAngularMomentum;
    sensors_.push_back(sensor);
  }
  const auto ranges = std::stable_partition(sensors_.begin(), sensors_.end(), [](const Sensor& s) {
    return s.kind != SensorKind::kRange;
  });
  table.first_range = static_cast<int>(ranges - sensors_.begin());
  if (ranges != sensors_.end()) {
    KeepModel(whole);
    ray_targets_ = Rays::Targets(m);
  }
  table.target = ray_targets_.data();
  table.num_targets = static_cast<int>(ray_targets_.size());
  other_sensors_ = OtherSensors(m, others);
  table.others = !others.empty();
  table.frames = other_sensors_.of_frames();
  still_ = std::make_unique<bool[]>(static_cast<size_t>(m.nbody));
  for (int b = 0; b < m.nbody; ++b) {
    still_[static_cast<size_t>(b)] = m.body_dofnum[m.body_weldid[b]] == 0;
  }
  table.sensor = sensors_.data();
  table.count = static_cast<int>(sensors_.size());
  table.still = still_.get();
  table.counted = counted_.data();
  table.num_data = static_cast<int>(m.nsensordata);
  std::copy_n(m.opt.magnetic, 3, table.magnetic);
  table.gravity = !IsOff(m, mjDSBL_GRAVITY);
}

}  // namespace pyfastenv::lanes
