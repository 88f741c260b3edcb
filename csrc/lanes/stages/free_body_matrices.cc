// implicitfast, free bodies without joints on them: the matrix of their accelerations, which their
// gyroscopic forces make unsymmetric (mjd_freeMhat).
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// r = a b
void MulMatrices(Lane* r, const Lane* a, const Lane* b) {
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) {
      r[3 * i + k] = a[3 * i] * b[k] + a[3 * i + 1] * b[3 + k] + a[3 * i + 2] * b[6 + k];
    }
  }
}

// r = aᵀ b
void MulTransposed(Lane* r, const Lane* a, const Lane* b) {
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) {
      r[3 * i + k] = a[i] * b[k] + a[3 + i] * b[3 + k] + a[6 + i] * b[6 + k];
    }
  }
}

// Derivatives, each (3, 3), of a body's bias forces by its angular velocity: of the forces, without
// the factor -mass, and of the torques. (mjd_freeBias_vel, of the composite inertia)
void BiasDerivative(const Scratch& s, const FreeBody& free, Lane* linear, Lane* turning) {
  const int b = free.body;
  const Lane* R = s.xmat + 9 * b;
  const Lane* crb = s.crb + 10 * b;
  const Lane mass = crb[9];
  const Lane inertia[9] = {crb[0], crb[3], crb[4], crb[3], crb[1], crb[5], crb[4], crb[5], crb[2]};
  Lane offset[3], w[3], swept[3], momentum[3];
  for (int i = 0; i < 3; ++i) offset[i] = s.subtree_com[3 * b + i] - s.xpos[3 * b + i];
  Rotate(w, R, s.qvel + free.dof + 3);
  Cross(swept, w, offset);
  Rotate(momentum, inertia, w);
  const Lane along = Dot3(w, offset);
  const Lane K[9] = {
      offset[0] * w[0] - along,    offset[0] * w[1] - swept[2], offset[0] * w[2] + swept[1],
      offset[1] * w[0] + swept[2], offset[1] * w[1] - along,    offset[1] * w[2] - swept[0],
      offset[2] * w[0] - swept[1], offset[2] * w[1] + swept[0], offset[2] * w[2] - along};
  MulMatrices(linear, K, R);
  const Lane none = Splat(0);
  const Lane turned[9] = {none,        momentum[2], -momentum[1], -momentum[2], none,
                          momentum[0], momentum[1], -momentum[0], none};
  Lane C[9];
  for (int k = 0; k < 3; ++k) {
    const Lane of_K[3] = {K[k], K[3 + k], K[6 + k]};
    const Lane of_inertia[3] = {inertia[k], inertia[3 + k], inertia[6 + k]};
    Lane by_mass[3], by_inertia[3];
    Cross(by_mass, offset, of_K);
    Cross(by_inertia, w, of_inertia);
    for (int i = 0; i < 3; ++i) {
      C[3 * i + k] = -mass * by_mass[i] + by_inertia[i] + turned[3 * i + k];
    }
  }
  Lane half[9];
  MulTransposed(half, R, C);
  MulMatrices(turning, half, R);
}

}  // namespace

void FreeBodyMatrices(const Tables& t, Scratch& s) {
  for (int k = 0; k < t.num_free_bodies; ++k) {
    const FreeBody& free = t.free_body[k];
    Lane* A = s.free_matrix + 36 * k;
    for (int i = 0; i < 36; ++i) A[i] = Splat(0);
    for (int r = 0; r < 6; ++r) {
      const int begin = t.M_rowadr[free.dof + r];
      for (int a = begin; a < begin + t.M_rownnz[free.dof + r]; ++a) {
        const int c = t.M_colind[a] - free.dof;
        A[6 * r + c] = A[6 * c + r] = s.H[a] = s.M[a];
      }
    }
    for (int r = 0; r < 6; ++r) {
      const int begin = t.D.rowadr[free.dof + r];
      for (int a = begin; a < begin + t.D.rownnz[free.dof + r]; ++a) {
        Lane& entry = A[6 * r + t.D.colind[a] - free.dof];
        entry = entry - t.timestep * s.qDeriv[a];
      }
    }
    Lane linear[9], turning[9];
    BiasDerivative(s, free, linear, turning);
    const Lane mass = s.crb[10 * free.body + 9];
    for (int r = 0; r < 3; ++r) {
      for (int c = 0; c < 3; ++c) {
        Lane &force = A[6 * r + 3 + c], &torque = A[6 * (3 + r) + 3 + c];
        force = force + t.timestep * (-mass * linear[3 * r + c]);
        torque = torque + t.timestep * turning[3 * r + c];
      }
    }
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
