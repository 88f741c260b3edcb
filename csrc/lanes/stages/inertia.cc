// The joint-space inertia matrix by composite rigid bodies, and its sparse Lᵀ D L factors.
#include "lanes/stages/blas.h"
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

void CompositeInertias(const Tables& t, Scratch& s) {
  for (int i = 0; i < 10 * t.nbody; ++i) s.crb[i] = s.cinert[i];
  for (int b = t.nbody - 1; b > 0; --b) {
    const int parent = t.body[b].parent;
    if (parent == 0) continue;
    for (int i = 0; i < 10; ++i)
      s.crb[10 * parent + i] = s.crb[10 * parent + i] + s.crb[10 * b + i];
  }
}

// M += armature Jᵀ J
void TendonArmatures(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.ntendon; ++i) {
    if (!t.tendon[i].has_armature) continue;
    const int adr = t.ten_J.rowadr[i];
    const Lane armature = s.tendon_armature[i] + t.tendon[i].more_armature;
    for (int k = 0; k < t.ten_J.rownnz[i]; ++k) {
      const int dof = t.ten_J.colind[adr + k];
      const SparseRows M{t.M_rownnz, t.M_rowadr, t.M_colind};
      AddScaledRow(M, dof, s.M, t.ten_J, i, s.ten_J, armature * s.ten_J[adr + k]);
    }
  }
}

}  // namespace

void InertiaMatrix(const Tables& t, Scratch& s) {
  CompositeInertias(t, s);
  for (int i = 0; i < t.nv; ++i) {
    const Dof& dof = t.dof[i];
    Lane* diagonal = s.M + t.M_rowadr[i] + t.M_rownnz[i] - 1;
    if (dof.simple) {
      *diagonal = s.dof_M0[i];
      continue;
    }
    Lane force[6];
    MulInertia(force, s.crb + 10 * dof.body, s.cdof + 6 * i);
    Lane* entry = diagonal;
    for (int j = i; j >= 0; j = t.dof[j].parent) {
      *entry-- =
          (j == i ? s.dof_armature[i] + dof.more_armature : Splat(0)) + Dot6(s.cdof + 6 * j, force);
    }
  }
  TendonArmatures(t, s);
  for (int i = 0; i < t.nC; ++i) s.qLD[i] = s.M[i];
  Factor(t, s.qLD, s.qLDiagInv);
}

void Factor(const Tables& t, Lane* matrix, Lane* inverse_diagonal) {
  for (int k = t.nv - 1; k >= 0; --k) {
    const int diagonal = t.M_rownnz[k] - 1;
    Lane* row = matrix + t.M_rowadr[k];
    const int* column = t.M_colind + t.M_rowadr[k];
    const Lane inverse = 1.0 / row[diagonal];
    inverse_diagonal[k] = inverse;
    for (int a = diagonal - 1; a >= 0; --a) {
      const int i = column[a];
      const Lane scale = -row[a] * inverse;
      Lane* above = matrix + t.M_rowadr[i];
      for (int c = 0; c < t.M_rownnz[i]; ++c) above[c] = above[c] + row[c] * scale;
    }
    for (int c = 0; c < diagonal; ++c) row[c] = row[c] * inverse;
  }
}

void SolveFactored(const Tables& t, Lane* x, const Lane* factor, const Lane* inverse_diagonal,
                   int first, int n) {
  for (int i = first + n - 1; i >= first; --i) {
    const Lane* row = factor + t.M_rowadr[i];
    const int* column = t.M_colind + t.M_rowadr[i];
    for (int a = 0; a < t.M_rownnz[i] - 1; ++a) x[column[a]] = x[column[a]] - row[a] * x[i];
  }
  // the matrix is positive, or its lanes are left to MuJoCo
  for (int i = first; i < first + n; ++i) x[i] = TimesPositive(x[i], inverse_diagonal[i]);
  for (int i = first; i < first + n; ++i) {
    const int below = t.M_rownnz[i] - 1;
    if (below == 0) continue;
    x[i] = x[i] - DotSparse(factor + t.M_rowadr[i], x, t.M_colind + t.M_rowadr[i], below);
  }
}

void MulInertiaMatrix(const Tables& t, Lane* r, const Lane* M, const Lane* v) {
  for (int i = 0; i < t.nv; ++i) {
    const Lane* row = M + t.M_rowadr[i];
    const int* column = t.M_colind + t.M_rowadr[i];
    const int diagonal = t.M_rownnz[i] - 1;
    Lane sum = row[diagonal] * v[i];
    for (int a = diagonal - 1; a >= 0; --a) {
      const int j = column[a];
      sum = sum + row[a] * v[j];
      r[j] = r[j] + row[a] * v[i];
    }
    r[i] = sum;
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
