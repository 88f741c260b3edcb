// Vectors, quaternions and spatial vectors in lanes.
//
// Every sum is grouped as in MuJoCo 4.0.0's binary, which is not always as its sources group it:
// floating-point addition is not associative, and the compiler that built the wheel paired terms.
#pragma once

#include "lanes/stages/lane.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

constexpr double kMinVal = 1e-15;  // mjMINVAL

// ---- three numbers ------------------------------------------------------------------------------

template <class A, class B>
inline auto Dot3(const A* a, const B* b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

template <class A, class B>
inline void Cross(Lane* r, const A* a, const B* b) {
  r[0] = a[1] * b[2] - a[2] * b[1];
  r[1] = a[2] * b[0] - a[0] * b[2];
  r[2] = a[0] * b[1] - a[1] * b[0];
}

/// r = m v, m a rotation matrix by rows.
template <class V>
inline void Rotate(Lane* r, const Lane* m, const V* v) {
  for (int i = 0; i < 3; ++i) r[i] = Dot3(m + 3 * i, v);
}

/// r = mᵀ v.
inline void RotateBack(Lane* r, const Lane* m, const Lane* v) {
  for (int i = 0; i < 3; ++i) r[i] = m[i] * v[0] + m[3 + i] * v[1] + m[6 + i] * v[2];
}

/// Scales to unit length, and returns the length; a vector of no length becomes (1, 0, 0).
inline Lane Normalize3(Lane* v) {
  const Lane norm = Sqrt(Dot3(v, v));
  const Lane inverse = 1.0 / norm;
  const Mask none = norm < kMinVal;
  for (int i = 0; i < 3; ++i) v[i] = Select(none, Splat(i == 0), v[i] * inverse);
  return norm;
}

// ---- quaternions --------------------------------------------------------------------------------

/// r = a b; r may be a.
template <class A, class B>
inline void MulQuat(Lane* r, const A* a, const B* b) {
  const Lane w = (a[0] * b[0] - a[1] * b[1]) + (-a[2] * b[2] - a[3] * b[3]);
  const Lane x = (a[0] * b[1] + a[1] * b[0]) + (a[2] * b[3] - a[3] * b[2]);
  const Lane y = (a[0] * b[2] - a[1] * b[3]) + (a[2] * b[0] + a[3] * b[1]);
  const Lane z = (a[0] * b[3] + a[1] * b[2]) + (-a[2] * b[1] + a[3] * b[0]);
  r[0] = w;
  r[1] = x;
  r[2] = y;
  r[3] = z;
}

/// Scales to unit length where the length is off by more than mjMINVAL; a quaternion of no length
/// becomes the identity.
inline void Normalize4(Lane* q) {
  const Lane norm = Sqrt((q[0] * q[0] + q[1] * q[1]) + (q[2] * q[2] + q[3] * q[3]));
  const Lane scale = UnitScale(norm);
  for (int i = 0; i < 4; ++i) q[i] = q[i] * scale;
  const Mask none = norm < kMinVal;
  if (!AnyShort(none)) return;
  for (int i = 0; i < 4; ++i) q[i] = Select(none, Splat(i == 0), q[i]);
}

/// r = v turned by q.
template <class V>
inline void RotateByQuat(Lane* r, const V* v, const Lane* q) {
  const Lane t0 = q[0] * v[0] + q[2] * v[2] - q[3] * v[1];
  const Lane t1 = q[0] * v[1] + q[3] * v[0] - q[1] * v[2];
  const Lane t2 = q[0] * v[2] + q[1] * v[1] - q[2] * v[0];
  r[0] = v[0] + 2.0 * (q[2] * t2 - q[3] * t1);
  r[1] = v[1] + 2.0 * (q[3] * t0 - q[1] * t2);
  r[2] = v[2] + 2.0 * (q[1] * t1 - q[2] * t0);
}

/// x where q is the identity, else y.
inline Lane WhereIdentity(const Lane* q, Lane x, Lane y) {
  const Lane off = (Abs(q[0] - 1.0) + Abs(q[1])) + (Abs(q[2]) + Abs(q[3]));
  return WhereLess(off, Splat(0x1p-1074), x, y);
}

/// r = v turned by q, where v may have negative zeros: MuJoCo keeps them where q is the identity.
inline void RotateExactlyByQuat(Lane* r, const Lane* v, const Lane* q) {
  RotateByQuat(r, v, q);
  if (!KeepsZeros()) return;
  for (int i = 0; i < 3; ++i) r[i] = WhereIdentity(q, v[i], r[i]);
}

/// The rotation matrix of q, by rows.
inline void QuatToMatrix(Lane* r, const Lane* q) {
  const Lane q00 = q[0] * q[0], q11 = q[1] * q[1], q22 = q[2] * q[2], q33 = q[3] * q[3];
  const Lane q01 = q[0] * q[1], q02 = q[0] * q[2], q03 = q[0] * q[3];
  const Lane q12 = q[1] * q[2], q13 = q[1] * q[3], q23 = q[2] * q[3];
  r[0] = (q00 - q22) + (q11 - q33);
  r[4] = (q00 + q22) - (q11 + q33);
  r[8] = (q00 - q22) - (q11 - q33);
  r[1] = 2.0 * (q12 - q03);
  r[2] = 2.0 * (q13 + q02);
  r[3] = 2.0 * (q12 + q03);
  r[5] = 2.0 * (q23 - q01);
  r[6] = 2.0 * (q13 - q02);
  r[7] = 2.0 * (q23 + q01);
  // the identity's zeros are positive, whatever those of q are
  if (!MayBeIdentity(q)) return;
  for (int i = 0; i < 9; ++i) {
    if (i % 4 != 0) r[i] = WhereIdentity(q, Splat(0), r[i]);
  }
}

/// The quaternion of a turn about `axis`, from sine and cosine of half its angle; exactly the
/// identity where the angle is zero.
template <class A>
inline void AxisAngleToQuat(Lane* q, const A* axis, Lane angle, Lane sin_half, Lane cos_half) {
  q[0] = cos_half;
  for (int i = 0; i < 3; ++i) q[1 + i] = ZeroWhereNone(angle, axis[i] * sin_half);
}

// ---- six numbers: rotation, then translation
// -----------------------------------------------------

inline Lane Dot6(const Lane* a, const Lane* b) {
  return ((a[0] * b[0] + a[2] * b[2]) + (a[1] * b[1] + a[3] * b[3])) + (a[4] * b[4] + a[5] * b[5]);
}

/// Motion w applied to motion v.
inline void CrossMotion(Lane* r, const Lane* w, const Lane* v) {
  r[0] = -w[2] * v[1] + w[1] * v[2];
  r[1] = w[2] * v[0] - w[0] * v[2];
  r[2] = -w[1] * v[0] + w[0] * v[1];
  r[3] = (-w[2] * v[4] + w[1] * v[5]) + (-w[5] * v[1] + w[4] * v[2]);
  r[4] = (w[2] * v[3] - w[0] * v[5]) + (w[5] * v[0] - w[3] * v[2]);
  r[5] = (-w[1] * v[3] + w[0] * v[4]) + (-w[4] * v[0] + w[3] * v[1]);
}

/// Motion w applied to force f.
inline void CrossForce(Lane* r, const Lane* w, const Lane* f) {
  r[0] = (-w[2] * f[1] + w[1] * f[2]) + (-w[5] * f[4] + w[4] * f[5]);
  r[1] = (w[2] * f[0] - w[0] * f[2]) + (w[5] * f[3] - w[3] * f[5]);
  r[2] = (-w[1] * f[0] + w[0] * f[1]) + (-w[4] * f[3] + w[3] * f[4]);
  r[3] = -w[2] * f[4] + w[1] * f[5];
  r[4] = w[2] * f[3] - w[0] * f[5];
  r[5] = -w[1] * f[3] + w[0] * f[4];
}

/// r = Σ motion v over dofs. MuJoCo's sum of several begins at zero, of one does not: that is seen
/// in the sign of a zero.
inline void SumMotions(Lane* r, const Lane* motion, const Lane* v, int num_dofs) {
  for (int i = 0; i < 6; ++i) {
    if (num_dofs == 1) {
      r[i] = motion[i] * v[0];
      continue;
    }
    r[i] = Splat(0);
    for (int j = 0; j < num_dofs; ++j) r[i] = r[i] + motion[6 * j + i] * v[j];
  }
}

/// Inertia (ten numbers: six of rotation, mass times offset, mass) times motion.
inline void MulInertia(Lane* r, const Lane* i, const Lane* v) {
  r[0] = i[0] * v[0] + i[3] * v[1] + i[4] * v[2] - i[8] * v[4] + i[7] * v[5];
  r[1] = i[3] * v[0] + i[1] * v[1] + i[5] * v[2] + i[8] * v[3] - i[6] * v[5];
  r[2] = i[4] * v[0] + i[5] * v[1] + i[2] * v[2] - i[7] * v[3] + i[6] * v[4];
  r[3] = i[8] * v[1] - i[7] * v[2] + i[9] * v[3];
  r[4] = i[6] * v[2] - i[8] * v[0] + i[9] * v[4];
  r[5] = i[7] * v[0] - i[6] * v[1] + i[9] * v[5];
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
