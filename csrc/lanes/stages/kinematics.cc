// Where everything is: mj_kinematics.
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// MuJoCo's mjtSameFrame
enum { kOwnFrame = 0, kBodyFrame, kInertiaFrame, kBodyRotation, kInertiaRotation };

// The frame of something fixed to a body, copied where it is the body's own or its inertia's.
void Place(const Scratch& s, int b, int same, const Lane* own_pos, const Lane* own_quat, Lane* pos,
           Lane* mat) {
  const Lane* body_pos = s.xpos + 3 * b;
  const Lane* body_mat = s.xmat + 9 * b;
  if (same == kBodyFrame || same == kInertiaFrame) {
    const Lane* from = same == kBodyFrame ? body_pos : s.xipos + 3 * b;
    for (int i = 0; i < 3; ++i) pos[i] = from[i];
  } else {
    Rotate(pos, body_mat, own_pos);
    for (int i = 0; i < 3; ++i) pos[i] = pos[i] + body_pos[i];
  }
  if (same == kOwnFrame) {
    Lane quat[4];
    MulQuat(quat, s.xquat + 4 * b, own_quat);
    QuatToMatrix(mat, quat);
  } else {
    const bool inertia = same == kInertiaFrame || same == kInertiaRotation;
    const Lane* from = inertia ? s.ximat + 9 * b : body_mat;
    for (int i = 0; i < 9; ++i) mat[i] = from[i];
  }
}

// A joint's place in space, and what it does to its body's frame (pos, quat).
void MoveByJoint(const Tables& t, Scratch& s, int j, Lane* pos, Lane* quat) {
  const Joint& joint = t.joint[j];
  Lane* anchor = s.xanchor + 3 * j;
  Lane* axis = s.xaxis + 3 * j;
  const auto turn_by = [&joint](Lane* r, const Lane* v, const Lane* q) {
    joint.negative_zeros ? RotateExactlyByQuat(r, v, q) : RotateByQuat(r, v, q);
  };
  turn_by(axis, s.jnt_axis + 3 * j, quat);
  turn_by(anchor, s.jnt_pos + 3 * j, quat);
  for (int i = 0; i < 3; ++i) anchor[i] = anchor[i] + pos[i];
  const Lane x = s.qpos[joint.qpos] - s.qpos0[joint.qpos];
  if (joint.kind == JointKind::kSlide) {
    for (int i = 0; i < 3; ++i) pos[i] = pos[i] + axis[i] * x;
    return;
  }
  Lane turn[4];
  if (joint.kind == JointKind::kBall) {
    for (int i = 0; i < 4; ++i) turn[i] = s.qpos[joint.qpos + i];
    Normalize4(turn);
  } else {
    AxisAngleToQuat(turn, s.jnt_axis + 3 * j, x, s.sin_half[j], s.cos_half[j]);
  }
  MulQuat(quat, quat, turn);
  Lane arm[3];  // the anchor stays where it is
  turn_by(arm, s.jnt_pos + 3 * j, quat);
  for (int i = 0; i < 3; ++i) pos[i] = anchor[i] - arm[i];
}

void PlaceBody(const Tables& t, Scratch& s, int b) {
  const Body& body = t.body[b];
  Lane pos[3], quat[4];
  if (body.free) {
    const Joint& joint = t.joint[body.first_joint];
    for (int i = 0; i < 3; ++i) {
      pos[i] = s.qpos[joint.qpos + i];
      s.xanchor[3 * body.first_joint + i] = pos[i];
      s.xaxis[3 * body.first_joint + i] = s.jnt_axis[3 * body.first_joint + i];
    }
    for (int i = 0; i < 4; ++i) quat[i] = s.qpos[joint.qpos + 3 + i];
    Normalize4(quat);
  } else if (body.mocap >= 0) {  // a child of the world
    for (int i = 0; i < 3; ++i) pos[i] = s.mocap_pos[3 * body.mocap + i];
    for (int i = 0; i < 4; ++i) quat[i] = s.mocap_quat[4 * body.mocap + i];
    Normalize4(quat);
  } else if (body.parent == 0) {
    for (int i = 0; i < 3; ++i) pos[i] = s.body_pos[3 * b + i];
    for (int i = 0; i < 4; ++i) quat[i] = s.body_quat[4 * b + i];
  } else {
    Rotate(pos, s.xmat + 9 * body.parent, s.body_pos + 3 * b);
    for (int i = 0; i < 3; ++i) pos[i] = pos[i] + s.xpos[3 * body.parent + i];
    MulQuat(quat, s.xquat + 4 * body.parent, s.body_quat + 4 * b);
  }
  if (!body.free) {
    for (int j = 0; j < body.num_joints; ++j) {
      MoveByJoint(t, s, body.first_joint + j, pos, quat);
    }
  }
  Normalize4(quat);
  for (int i = 0; i < 3; ++i) s.xpos[3 * b + i] = pos[i];
  for (int i = 0; i < 4; ++i) s.xquat[4 * b + i] = quat[i];
  QuatToMatrix(s.xmat + 9 * b, quat);
  Place(s, b, body.same, s.body_ipos + 3 * b, s.body_iquat + 4 * b, s.xipos + 3 * b,
        s.ximat + 9 * b);
}

// Places geoms and sites, either the world's or all others.
void PlaceAttached(const Tables& t, Scratch& s, bool world) {
  for (int g = 0; g < t.ngeom; ++g) {
    if ((t.geom[g].body == 0) != world) continue;
    Place(s, t.geom[g].body, t.geom[g].same, s.geom_pos + 3 * g, s.geom_quat + 4 * g,
          s.geom_xpos + 3 * g, s.geom_xmat + 9 * g);
  }
  for (int i = 0; i < t.nsite; ++i) {
    if ((t.site[i].body == 0) != world) continue;
    Place(s, t.site[i].body, t.site[i].same, s.site_pos + 3 * i, s.site_quat + 4 * i,
          s.site_xpos + 3 * i, s.site_xmat + 9 * i);
  }
}

}  // namespace

void PlaceWorld(const Tables& t, Scratch& s) {
  for (int i = 0; i < 3; ++i) s.xpos[i] = s.xipos[i] = Splat(0);
  for (int i = 0; i < 4; ++i) s.xquat[i] = Splat(i == 0);
  for (int i = 0; i < 9; ++i) s.xmat[i] = s.ximat[i] = Splat(i % 4 == 0);
  PlaceAttached(t, s, /*world=*/true);
}

void Kinematics(const Tables& t, Scratch& s) {
  for (int b = 1; b < t.nbody; ++b) PlaceBody(t, s, b);
  PlaceAttached(t, s, /*world=*/false);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
