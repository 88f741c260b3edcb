// sensordata of what is neither contact nor limit: mj_sensorPos, mj_sensorVel, mj_sensorAcc, with
// the functions of MuJoCo's that they ask.
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// MuJoCo's mjtSameFrame
enum { kOwnFrame = 0, kBodyFrame, kInertiaFrame, kBodyRotation, kInertiaRotation };

// ---- frames -------------------------------------------------------------------------------------

int BodyOf(const Tables& t, const SensorFrame& frame) {
  if (frame.kind == FrameKind::kGeom) return t.geom[frame.id].body;
  return frame.kind == FrameKind::kSite ? t.site[frame.id].body : frame.id;
}

const Lane* PlaceOf(const Scratch& s, const SensorFrame& frame) {
  const Lane* places = frame.kind == FrameKind::kBody      ? s.xpos
                       : frame.kind == FrameKind::kInertia ? s.xipos
                       : frame.kind == FrameKind::kGeom    ? s.geom_xpos
                                                           : s.site_xpos;
  return places + 3 * frame.id;
}

const Lane* MatrixOf(const Scratch& s, const SensorFrame& frame) {
  const Lane* matrices = frame.kind == FrameKind::kBody      ? s.xmat
                         : frame.kind == FrameKind::kInertia ? s.ximat
                         : frame.kind == FrameKind::kGeom    ? s.geom_xmat
                                                             : s.site_xmat;
  return matrices + 9 * frame.id;
}

// That of an inertia, or of something that may be turned as it is.
void QuatOfInertia(const Tables& t, const Scratch& s, int b, Lane* quat) {
  if (t.body[b].same != kOwnFrame) {
    for (int i = 0; i < 4; ++i) quat[i] = s.xquat[4 * b + i];
    return;
  }
  MulQuat(quat, s.xquat + 4 * b, s.body_iquat + 4 * b);
}

void QuatOf(const Tables& t, const Scratch& s, const SensorFrame& frame, Lane* quat) {
  const int b = BodyOf(t, frame);
  if (frame.kind == FrameKind::kInertia) return QuatOfInertia(t, s, b, quat);
  const bool geom = frame.kind == FrameKind::kGeom;
  const int same = frame.kind == FrameKind::kBody ? kBodyFrame
                   : geom                         ? t.geom[frame.id].same
                                                  : t.site[frame.id].same;
  if (same == kInertiaFrame || same == kInertiaRotation) return QuatOfInertia(t, s, b, quat);
  if (same == kOwnFrame) {
    MulQuat(quat, s.xquat + 4 * b, (geom ? s.geom_quat : s.site_quat) + 4 * frame.id);
    return;
  }
  for (int i = 0; i < 4; ++i) quat[i] = s.xquat[4 * b + i];
}

// r = v, a motion about the center of mass of a frame's tree, about the frame's place:
// mju_transformSpatial.
void MoveTo(const Tables& t, const Scratch& s, const SensorFrame& frame, const Lane* v, Lane* r) {
  const Lane* com = s.subtree_com + 3 * t.body[BodyOf(t, frame)].root;
  const Lane* place = PlaceOf(s, frame);
  Lane arm[3], cross[3];
  for (int i = 0; i < 3; ++i) arm[i] = place[i] - com[i];
  Cross(cross, arm, v);
  for (int i = 0; i < 3; ++i) {
    r[i] = v[i];
    r[3 + i] = v[3 + i] - cross[i];
  }
}

void RotateBoth(const Lane* mat, Lane* v) {
  const Lane old[6] = {v[0], v[1], v[2], v[3], v[4], v[5]};
  RotateBack(v, mat, old);
  RotateBack(v + 3, mat, old + 3);
}

// mj_objectVelocity in the world's frame, or in its own.
void VelocityOf(const Tables& t, const Scratch& s, const SensorFrame& frame, bool own, Lane* r) {
  for (int i = 0; i < 6; ++i) r[i] = Splat(0);
  if (frame.still) return;
  MoveTo(t, s, frame, s.cvel + 6 * BodyOf(t, frame), r);
  if (own) RotateBoth(MatrixOf(s, frame), r);
}

// mj_objectAcceleration; what stands still is accelerated against gravity.
void AccelerationOf(const Tables& t, const Scratch& s, const SensorFrame& frame, bool own,
                    Lane* r) {
  MoveTo(t, s, frame, s.body_acc + 6 * BodyOf(t, frame), r);
  if (own) RotateBoth(MatrixOf(s, frame), r);
  if (frame.still) return;
  Lane velocity[6], coriolis[3];
  VelocityOf(t, s, frame, own, velocity);
  Cross(coriolis, velocity, velocity + 3);
  for (int i = 0; i < 3; ++i) r[3 + i] = r[3 + i] + coriolis[i];
}

// ---- of all bodies ------------------------------------------------------------------------------

// mj_rnePostConstraint's cacc (body_acc) and cfrc_int (body_force), after ExternalForces.
void AccelerateBodies(const Tables& t, Scratch& s) {
  for (int i = 0; i < 6; ++i) s.body_acc[i] = s.body_force[i] = Splat(0);
  for (int i = 0; i < 3 && t.sensors.gravity; ++i) s.body_acc[3 + i] = s.world_acc[i];
  for (int b = 1; b < t.nbody; ++b) {
    const Body& body = t.body[b];
    Lane *acc = s.body_acc + 6 * b, *force = s.body_force + 6 * b;
    const Lane* before = s.body_acc + 6 * body.parent;
    Lane sum[6], momentum[6], gyroscopic[6];
    SumMotions(sum, s.cdof_dot + 6 * body.first_dof, s.qvel + body.first_dof, body.num_dofs);
    for (int i = 0; i < 6; ++i) acc[i] = before[i] + sum[i];
    SumMotions(sum, s.cdof + 6 * body.first_dof, s.qacc + body.first_dof, body.num_dofs);
    for (int i = 0; i < 6; ++i) acc[i] = acc[i] + sum[i];
    MulInertia(force, s.cinert + 10 * b, acc);
    MulInertia(momentum, s.cinert + 10 * b, s.cvel + 6 * b);
    CrossForce(gyroscopic, s.cvel + 6 * b, momentum);
    for (int i = 0; i < 6; ++i) {
      force[i] = force[i] + gyroscopic[i];
      if (t.sensors.external_forces) force[i] = force[i] - s.cfrc_ext[6 * b + i];
    }
  }
  for (int b = t.nbody - 1; b > 0; --b) {
    Lane* sum = s.body_force + 6 * t.body[b].parent;
    for (int i = 0; i < 6; ++i) sum[i] = sum[i] + s.body_force[6 * b + i];
  }
}

// r = mass times the velocity of what moves with `v`, less `of`, about a place: an angular
// momentum.
void AddMomentum(Lane* sum, const Lane* place, const Lane* about, const Lane* v, const Lane* of,
                 Lane mass) {
  Lane arm[3], momentum[3], turning[3];
  for (int i = 0; i < 3; ++i) {
    arm[i] = place[i] - about[i];
    momentum[i] = (v[i] - of[i]) * mass;
  }
  Cross(turning, arm, momentum);
  for (int i = 0; i < 3; ++i) sum[i] = sum[i] + turning[i];
}

// mj_subtreeVel.
void SubtreeVelocities(const Tables& t, Scratch& s) {
  Lane *linear = s.subtree_linvel, *angular = s.subtree_angmom;
  for (int b = 0; b < t.nbody; ++b) {
    Lane* v = s.inertia_vel + 6 * b;
    VelocityOf(t, s, {FrameKind::kInertia, b, t.sensors.still[b]}, false, v);
    Lane local[3];
    RotateBack(local, s.ximat + 9 * b, v);
    for (int i = 0; i < 3; ++i) {
      linear[3 * b + i] = v[3 + i] * s.body_mass[b];
      local[i] = local[i] * s.body_inertia[3 * b + i];
    }
    Rotate(angular + 3 * b, s.ximat + 9 * b, local);
  }
  for (int b = t.nbody - 1; b >= 0; --b) {
    Lane *own = linear + 3 * b, *sum = linear + 3 * t.body[b].parent;
    for (int i = 0; i < 3 && b > 0; ++i) sum[i] = sum[i] + own[i];
    const Lane inverse = t.body[b].massless ? Splat(1 / kMinVal) : s.inverse_subtree_mass[b];
    for (int i = 0; i < 3; ++i) own[i] = own[i] * inverse;
  }
  for (int b = t.nbody - 1; b > 0; --b) {
    const int parent = t.body[b].parent;
    Lane *own = angular + 3 * b, *sum = angular + 3 * parent;
    const Lane *com = s.subtree_com + 3 * b, *v = s.inertia_vel + 6 * b + 3;
    AddMomentum(own, s.xipos + 3 * b, com, v, linear + 3 * b, s.body_mass[b]);
    for (int i = 0; i < 3; ++i) sum[i] = sum[i] + own[i];
    AddMomentum(sum, com, s.subtree_com + 3 * parent, linear + 3 * b, linear + 3 * parent,
                Splat(t.numbers.body_subtreemass[b]));
  }
}

// ---- sensors ------------------------------------------------------------------------------------

void Copy(const Lane* from, int count, Lane* out) {
  for (int i = 0; i < count; ++i) out[i] = from[i];
}

void SenseField(const Tables& t, const Lane* site_mat, Lane* out) {
  for (int i = 0; i < 3; ++i) {
    out[i] = Splat(0);
    for (int k = 0; k < 3; ++k) {
      if (t.sensors.magnetic[k] != 0) out[i] = out[i] + site_mat[3 * k + i] * t.sensors.magnetic[k];
    }
  }
}

// The force, then torque, between a site's body and its parent.
void SenseForce(const Tables& t, const Scratch& s, const SensorFrame& site, bool torque,
                Lane* out) {
  const int b = BodyOf(t, site);
  const Lane* force = s.body_force + 6 * b;
  const Lane *com = s.subtree_com + 3 * t.body[b].root, *place = PlaceOf(s, site);
  Lane moved[3] = {force[3], force[4], force[5]};
  if (torque) {
    Lane arm[3], cross[3];
    for (int i = 0; i < 3; ++i) arm[i] = place[i] - com[i];
    Cross(cross, arm, force + 3);
    for (int i = 0; i < 3; ++i) moved[i] = force[i] - cross[i];
  }
  RotateBack(out, MatrixOf(s, site), moved);
}

void SensePosition(const Scratch& s, const Sensor& sensor, Lane* out) {
  const Lane* place = PlaceOf(s, sensor.object);
  if (sensor.reference.kind == FrameKind::kNone) return Copy(place, 3, out);
  const Lane* from = PlaceOf(s, sensor.reference);
  Lane offset[3];
  for (int i = 0; i < 3; ++i) offset[i] = place[i] - from[i];
  RotateBack(out, MatrixOf(s, sensor.reference), offset);
}

void SenseAxis(const Scratch& s, const Sensor& sensor, Lane* out) {
  const Lane* mat = MatrixOf(s, sensor.object) + sensor.id;
  const Lane axis[3] = {mat[0], mat[3], mat[6]};
  if (sensor.reference.kind == FrameKind::kNone) return Copy(axis, 3, out);
  RotateBack(out, MatrixOf(s, sensor.reference), axis);
}

void SenseQuat(const Tables& t, const Scratch& s, const Sensor& sensor, Lane* out) {
  Lane quat[4], from[4];
  QuatOf(t, s, sensor.object, quat);
  if (sensor.reference.kind == FrameKind::kNone) return Copy(quat, 4, out);
  QuatOf(t, s, sensor.reference, from);
  for (int i = 1; i < 4; ++i) from[i] = -from[i];
  MulQuat(out, from, quat);
}

void SenseVelocity(const Tables& t, const Scratch& s, const Sensor& sensor, bool linear,
                   Lane* out) {
  Lane v[6];
  VelocityOf(t, s, sensor.object, false, v);
  if (sensor.reference.kind != FrameKind::kNone) {
    const Lane *place = PlaceOf(s, sensor.object), *from = PlaceOf(s, sensor.reference);
    Lane reference[6], arm[3], cross[3];
    VelocityOf(t, s, sensor.reference, false, reference);
    for (int i = 0; i < 6; ++i) v[i] = v[i] - reference[i];
    for (int i = 0; i < 3; ++i) arm[i] = place[i] - from[i];
    Cross(cross, arm, reference);
    for (int i = 0; i < 3; ++i) v[3 + i] = v[3 + i] + cross[i];
    RotateBoth(MatrixOf(s, sensor.reference), v);
  }
  Copy(linear ? v + 3 : v, 3, out);
}

// The sum of the forces of a tendon's actuators.
Lane TendonForce(const Tables& t, const Scratch& s, int tendon) {
  Lane sum = Splat(0);
  for (int a = 0; a < t.nu; ++a) {
    const Actuator& actuator = t.actuator[a];
    if (actuator.transmission == Transmission::kTendon && actuator.target == tendon) {
      sum = sum + s.actuator_force[a];
    }
  }
  return sum;
}

void Sense(const Tables& t, const Scratch& s, const Sensor& sensor, Lane* out) {
  const SensorFrame& object = sensor.object;
  Lane v[6];
  switch (sensor.kind) {
    case SensorKind::kPosition:
      return Copy(s.qpos + sensor.id, 1, out);
    case SensorKind::kVelocity:
      return Copy(s.qvel + sensor.id, sensor.dim, out);
    case SensorKind::kTendonLength:
      return Copy(s.ten_length + sensor.id, 1, out);
    case SensorKind::kTendonVelocity:
      return Copy(s.ten_velocity + sensor.id, 1, out);
    case SensorKind::kActuatorLength:
      return Copy(s.actuator_length + sensor.id, 1, out);
    case SensorKind::kActuatorVelocity:
      return Copy(s.actuator_velocity + sensor.id, 1, out);
    case SensorKind::kActuatorForce:
      return Copy(s.actuator_force + sensor.id, 1, out);
    case SensorKind::kJointForce:
      return Copy(s.qfrc_actuator + sensor.id, 1, out);
    case SensorKind::kTendonForce:
      out[0] = TendonForce(t, s, sensor.id);
      return;
    case SensorKind::kBallQuat:
      Copy(s.qpos + sensor.id, 4, out);
      return Normalize4(out);
    case SensorKind::kMagnetometer:
      return SenseField(t, MatrixOf(s, object), out);
    case SensorKind::kGyro:
      VelocityOf(t, s, object, true, v);
      return Copy(v, 3, out);
    case SensorKind::kVelocimeter:
      VelocityOf(t, s, object, true, v);
      return Copy(v + 3, 3, out);
    case SensorKind::kAccelerometer:
      AccelerationOf(t, s, object, true, v);
      return Copy(v + 3, 3, out);
    case SensorKind::kForce:
      return SenseForce(t, s, object, false, out);
    case SensorKind::kTorque:
      return SenseForce(t, s, object, true, out);
    case SensorKind::kFramePosition:
      return SensePosition(s, sensor, out);
    case SensorKind::kFrameQuat:
      return SenseQuat(t, s, sensor, out);
    case SensorKind::kFrameAxis:
      return SenseAxis(s, sensor, out);
    case SensorKind::kFrameLinearVelocity:
      return SenseVelocity(t, s, sensor, true, out);
    case SensorKind::kFrameAngularVelocity:
      return SenseVelocity(t, s, sensor, false, out);
    case SensorKind::kFrameLinearAcceleration:
      AccelerationOf(t, s, object, false, v);
      return Copy(v + 3, 3, out);
    case SensorKind::kFrameAngularAcceleration:
      AccelerationOf(t, s, object, false, v);
      return Copy(v, 3, out);
    case SensorKind::kSubtreeCenter:
      return Copy(s.subtree_com + 3 * sensor.id, 3, out);
    case SensorKind::kSubtreeLinearVelocity:
      return Copy(s.subtree_linvel + 3 * sensor.id, 3, out);
    case SensorKind::kSubtreeAngularMomentum:
      return Copy(s.subtree_angmom + 3 * sensor.id, 3, out);
    case SensorKind::kClock:
    case SensorKind::kLimitPosition:
    case SensorKind::kLimitVelocity:
    case SensorKind::kLimitForce:
    case SensorKind::kContactCount:
    case SensorKind::kRange:
      return;  // not of numbers that stand in lanes: ComputeSensors
  }
}

}  // namespace

void SenseMotion(const Tables& t, Scratch& s) {
  if (t.sensors.accelerations) AccelerateBodies(t, s);
  if (t.sensors.subtree_velocities) SubtreeVelocities(t, s);
  for (int i = 0; i < t.sensors.count; ++i) {
    const Sensor& sensor = t.sensors.sensor[i];
    if (!IsOfMotion(sensor.kind)) continue;
    Lane* out = s.sensordata + sensor.adr;
    Sense(t, s, sensor, out);
    for (int k = 0; k < sensor.dim && sensor.cutoff > 0; ++k) out[k] = CutOff(sensor, out[k]);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
