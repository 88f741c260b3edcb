// Centres of mass, inertias about them, and the dofs' motions: mj_comPos.
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

void SubtreeCenters(const Tables& t, Scratch& s) {
  for (int b = 0; b < t.nbody; ++b) {
    for (int i = 0; i < 3; ++i) s.subtree_com[3 * b + i] = s.xipos[3 * b + i] * s.body_mass[b];
  }
  for (int b = t.nbody - 1; b > 0; --b) {
    Lane* parent = s.subtree_com + 3 * t.body[b].parent;
    for (int i = 0; i < 3; ++i) parent[i] = parent[i] + s.subtree_com[3 * b + i];
  }
  for (int b = 0; b < t.nbody; ++b) {
    Lane* com = s.subtree_com + 3 * b;
    for (int i = 0; i < 3; ++i) {
      com[i] = t.body[b].massless ? s.xipos[3 * b + i] : com[i] * s.inverse_subtree_mass[b];
    }
  }
}

// The inertia of a body with principal axes `m`, about a point that lies `-f` from its centre.
void InertiaAbout(Lane* r, Lane mass, const Lane* in, const Lane* m, const Lane* f) {
  Lane d[9];  // diag(inertia) mᵀ
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) d[3 * i + k] = m[3 * k + i] * in[i];
  }
  const auto entry = [&](int i, int k) {
    return m[3 * i] * d[k] + m[3 * i + 1] * d[3 + k] + m[3 * i + 2] * d[6 + k];
  };
  r[0] = entry(0, 0) + mass * (f[1] * f[1] + f[2] * f[2]);
  r[1] = entry(1, 1) + mass * (f[0] * f[0] + f[2] * f[2]);
  r[2] = entry(2, 2) + mass * (f[0] * f[0] + f[1] * f[1]);
  r[3] = entry(0, 1) - mass * f[0] * f[1];
  r[4] = entry(0, 2) - mass * f[0] * f[2];
  r[5] = entry(1, 2) - mass * f[1] * f[2];
  for (int i = 0; i < 3; ++i) r[6 + i] = mass * f[i];
  r[9] = mass;
}

// A turn about `axis` as a motion seen from a point `offset` away.
void Turn(Lane* motion, const Lane* axis, const Lane* offset) {
  for (int i = 0; i < 3; ++i) motion[i] = axis[i];
  Cross(motion + 3, axis, offset);
}

void DofMotions(const Tables& t, Scratch& s, int j) {
  const Joint& joint = t.joint[j];
  const Lane* axis = s.xaxis + 3 * j;
  Lane* motion = s.cdof + 6 * joint.dof;
  if (joint.kind == JointKind::kSlide) {
    for (int i = 0; i < 3; ++i) {
      motion[i] = Splat(0);
      motion[3 + i] = axis[i];
    }
    return;
  }
  const Lane* com = s.subtree_com + 3 * t.body[joint.body].root;
  Lane offset[3];
  for (int i = 0; i < 3; ++i) offset[i] = com[i] - s.xanchor[3 * j + i];
  if (joint.kind == JointKind::kHinge) {
    Turn(motion, axis, offset);
    return;
  }
  if (joint.kind == JointKind::kFree) {
    for (int i = 0; i < 18; ++i) motion[i] = Splat(i % 7 == 3);
    motion += 18;
  }
  for (int k = 0; k < 3; ++k) {
    const Lane* mat = s.xmat + 9 * joint.body;
    const Lane column[3] = {mat[k], mat[3 + k], mat[6 + k]};
    Turn(motion + 6 * k, column, offset);
  }
}

}  // namespace

void CentersOfMass(const Tables& t, Scratch& s) {
  SubtreeCenters(t, s);
  for (int i = 0; i < 10; ++i) s.cinert[i] = Splat(0);
  for (int b = 1; b < t.nbody; ++b) {
    const Lane* com = s.subtree_com + 3 * t.body[b].root;
    Lane offset[3];
    for (int i = 0; i < 3; ++i) offset[i] = s.xipos[3 * b + i] - com[i];
    InertiaAbout(s.cinert + 10 * b, s.body_mass[b], s.body_inertia + 3 * b, s.ximat + 9 * b,
                 offset);
  }
  for (int j = 0; j < t.njnt; ++j) DofMotions(t, s, j);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
