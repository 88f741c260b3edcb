// The quantities of mjData that lanes compute, under mjData's names: X(name, entries, numbers per
// entry).
//
// They stand in the order of evaluation. `entries` is a size of Tables (and of mjModel). One list
// serves the scratch memory, what a caller may ask for after a step, and the tests, which compare
// every quantity with mjData's.
#pragma once

#define PYFASTENV_LANES_FIELDS(X) \
  /* the state */                 \
  X(qpos, nq, 1)                  \
  X(qvel, nv, 1)                  \
  X(act, na, 1)                   \
  X(qacc_warmstart, nv, 1)        \
  X(ctrl, nu, 1)                  \
  X(mocap_pos, nmocap, 3)         \
  X(mocap_quat, nmocap, 4)        \
  X(qfrc_applied, nv, 1)          \
  X(xfrc_applied, nbody, 6)       \
  /* of the position */           \
  X(xpos, nbody, 3)               \
  X(xquat, nbody, 4)              \
  X(xmat, nbody, 9)               \
  X(xipos, nbody, 3)              \
  X(ximat, nbody, 9)              \
  X(xanchor, njnt, 3)             \
  X(xaxis, njnt, 3)               \
  X(geom_xpos, ngeom, 3)          \
  X(geom_xmat, ngeom, 9)          \
  X(site_xpos, nsite, 3)          \
  X(site_xmat, nsite, 9)          \
  X(subtree_com, nbody, 3)        \
  X(cinert, nbody, 10)            \
  X(cdof, nv, 6)                  \
  X(crb, nbody, 10)               \
  X(M, nC, 1)                     \
  X(qLD, nC, 1)                   \
  X(qLDiagInv, nv, 1)             \
  X(actuator_length, nout, 1)     \
  X(ten_length, ntendon, 1)       \
  X(ten_J, nJten, 1)              \
  /* of position and velocity */  \
  X(actuator_velocity, nout, 1)   \
  X(ten_velocity, ntendon, 1)     \
  X(cvel, nbody, 6)               \
  X(cdof_dot, nv, 6)              \
  X(qfrc_spring, nv, 1)           \
  X(qfrc_damper, nv, 1)           \
  X(qfrc_fluid, nv, 1)            \
  X(qfrc_gravcomp, nv, 1)         \
  X(qfrc_passive, nv, 1)          \
  X(qfrc_bias, nv, 1)             \
  /* of the controls too */       \
  X(act_dot, na, 1)               \
  X(actuator_force, nout, 1)      \
  X(qfrc_actuator, nv, 1)         \
  X(qfrc_smooth, nv, 1)           \
  X(qacc_smooth, nv, 1)           \
  X(qfrc_constraint, nv, 1)       \
  X(qacc, nv, 1)                  \
  /* on request */                \
  X(cfrc_ext, nbody, 6)

namespace pyfastenv::lanes {

enum class Field : int {
#define PYFASTENV_LANES_FIELD(name, entries, numbers) name,
  PYFASTENV_LANES_FIELDS(PYFASTENV_LANES_FIELD)
#undef PYFASTENV_LANES_FIELD
};

/// Whether it is computed in mj_step2, and not before: all from "of the controls too" on.
constexpr bool DependsOnControl(Field field) { return field >= Field::act_dot; }
static_assert(DependsOnControl(Field::actuator_force) && !DependsOnControl(Field::qfrc_bias));

/// Whether LaneStepper::Refresh computes it: where everything is, and how fast.
constexpr bool IsRefreshed(Field field) {
  return (field >= Field::xpos && field <= Field::cdof) || field == Field::ten_length ||
         field == Field::ten_velocity || field == Field::cvel || field == Field::cdof_dot;
}

}  // namespace pyfastenv::lanes
