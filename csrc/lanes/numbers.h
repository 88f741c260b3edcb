// The numbers of mjModel that a step reads, and what is made of them.
//
// Each environment may have its own of some of them (per-environment model fields); then they come
// with its row, else they are the model's. The stages see no difference: they read Scratch, where
// each number stands in lanes. A plan's programs have the model's folded in and read the others.
//
// No standard library here: see tables.h.
#pragma once

#include <cstdint>

namespace pyfastenv::lanes {

/// X(name, how many, field of mjModel): mjModel's arrays that stages read. `t` is Tables.
#define PYFASTENV_LANES_NUMBERS(X)                             \
  X(qpos0, t.nq, qpos0)                                        \
  X(qpos_spring, t.nq, qpos_spring)                            \
  X(body_pos, 3 * t.nbody, body_pos)                           \
  X(body_quat, 4 * t.nbody, body_quat)                         \
  X(body_ipos, 3 * t.nbody, body_ipos)                         \
  X(body_iquat, 4 * t.nbody, body_iquat)                       \
  X(body_mass, t.nbody, body_mass)                             \
  X(body_inertia, 3 * t.nbody, body_inertia)                   \
  X(jnt_pos, 3 * t.njnt, jnt_pos)                              \
  X(jnt_axis, 3 * t.njnt, jnt_axis)                            \
  X(jnt_stiffness, t.njnt, jnt_stiffness)                      \
  X(jnt_range, 2 * t.njnt, jnt_range)                          \
  X(jnt_margin, t.njnt, jnt_margin)                            \
  X(jnt_actfrcrange, 2 * t.njnt, jnt_actfrcrange)              \
  X(dof_armature, t.nv, dof_armature)                          \
  X(dof_frictionloss, t.nv, dof_frictionloss)                  \
  X(dof_damping, t.nv, dof_damping)                            \
  X(dof_invweight0, t.nv, dof_invweight0)                      \
  X(dof_M0, t.nv, dof_M0)                                      \
  X(geom_size, 3 * t.ngeom, geom_size)                         \
  X(geom_pos, 3 * t.ngeom, geom_pos)                           \
  X(geom_quat, 4 * t.ngeom, geom_quat)                         \
  X(site_pos, 3 * t.nsite, site_pos)                           \
  X(site_quat, 4 * t.nsite, site_quat)                         \
  X(wrap_prm, t.nwrap, wrap_prm)                               \
  X(tendon_stiffness, t.ntendon, tendon_stiffness)             \
  X(tendon_damping, t.ntendon, tendon_damping)                 \
  X(tendon_armature, t.ntendon, tendon_armature)               \
  X(tendon_lengthspring, 2 * t.ntendon, tendon_lengthspring)   \
  X(actuator_gear, kGear* t.nu, actuator_gear)                 \
  X(actuator_gainprm, kGainParameters* t.nu, actuator_gainprm) \
  X(actuator_biasprm, kBiasParameters* t.nu, actuator_biasprm) \
  X(actuator_ctrlrange, 2 * t.nu, actuator_ctrlrange)          \
  X(actuator_forcerange, 2 * t.nu, actuator_forcerange)        \
  X(body_gravcomp, t.nbody, body_gravcomp)                     \
  X(opt_gravity, 3, opt.gravity)                               \
  X(opt_wind, 3, opt.wind)

/// The same of arrays from which alone the derived numbers are made.
#define PYFASTENV_LANES_SOURCES(X)                  \
  X(body_subtreemass, t.nbody, body_subtreemass)    \
  X(body_invweight0, 2 * t.nbody, body_invweight0)  \
  X(jnt_solref, kReferences* t.njnt, jnt_solref)    \
  X(jnt_solimp, kImpedances* t.njnt, jnt_solimp)    \
  X(dof_solref, kReferences* t.nv, dof_solref)      \
  X(dof_solimp, kImpedances* t.nv, dof_solimp)      \
  X(body_margin, t.nbody, body_margin)              \
  X(bvh_aabb, 6 * t.num_volumes, bvh_aabb)          \
  X(geom_aabb, 6 * t.ngeom, geom_aabb)              \
  X(geom_rbound, t.ngeom, geom_rbound)              \
  X(geom_margin, t.ngeom, geom_margin)              \
  X(geom_friction, 3 * t.ngeom, geom_friction)      \
  X(geom_solref, kReferences* t.ngeom, geom_solref) \
  X(geom_solimp, kImpedances* t.ngeom, geom_solimp) \
  X(opt_density, 1, opt.density)                    \
  X(opt_viscosity, 1, opt.viscosity)

/// All that are fields of mjModel.
#define PYFASTENV_LANES_FIELD_NUMBERS(X) \
  PYFASTENV_LANES_NUMBERS(X)             \
  PYFASTENV_LANES_SOURCES(X)

/// X(name, how many): what stages read and Derivation makes.
#define PYFASTENV_LANES_DERIVED(X)                                                            \
  X(world_acc, 3) /* that gravity amounts to */                                               \
  X(inverse_subtree_mass, t.nbody)                                                            \
  /* box of a body's inertia in a fluid: force = -(viscous + quadratic |v|) v, per axis;      \
     the quadratic torque is to be divided by 64 */                                           \
  X(viscous_torque, t.nbody)                                                                  \
  X(viscous_force, t.nbody)                                                                   \
  X(quadratic_torque, 3 * t.nbody)                                                            \
  X(quadratic_force, 3 * t.nbody)                                                             \
  X(pair_friction, kFrictions* t.num_pairs)                                                   \
  X(pair_limits, kPairLimits* t.num_pairs)                                                    \
  X(equality_inverse_weight, 2 * t.num_equalities) /* of moving, of turning */                \
  X(pair_inverse_weight, t.num_pairs) /* diagonal of A, approximately, of a contact's rows */ \
  X(softness, Softness::kNumbers* t.num_softness)

/// Distances of a pair of geoms at which something begins; of all pairs the first, then the second
/// …
enum class PairLimit : int {
  kMargin,   // rows of constraints
  kReach,    // points of collision functions: margin and gap
  kBound,    // bounding spheres' meeting: of centers, or of a plane and a center; may be infinite
  kSeen,     // Sight::distance
  kOverlap,  // Sight::overlap
  kCount
};
constexpr int kPairLimits = static_cast<int>(PairLimit::kCount);

// mjModel's widths
constexpr int kGear = 6, kGainParameters = 10, kBiasParameters = 10;
constexpr int kReferences = 2, kImpedances = 5, kFrictions = 5;

/// How violation becomes impedance and reference acceleration, from solref and solimp; solimp's
/// sigmoid is y = rise xᵖ up to the middle, 1 - fall (1 - x)ᵖ behind it, with a straight line if
/// the power p is 1.
struct Softness {
  double d0, dwidth, width, midpoint;
  double rise, fall, power;
  double stiffness, damping;  // K and B of aref = -B v - K d r

  static constexpr int kNumbers = 9;
};
static_assert(sizeof(Softness) == Softness::kNumbers * sizeof(double));

enum class Number : int {
#define PYFASTENV_LANES_NUMBER(name, ...) name,
  PYFASTENV_LANES_NUMBERS(PYFASTENV_LANES_NUMBER) PYFASTENV_LANES_SOURCES(PYFASTENV_LANES_NUMBER)
      PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
          kCount
};

/// The numbers of one environment.
struct Numbers {
#define PYFASTENV_LANES_NUMBER(name, ...) const double* name;
  PYFASTENV_LANES_NUMBERS(PYFASTENV_LANES_NUMBER)
  PYFASTENV_LANES_SOURCES(PYFASTENV_LANES_NUMBER)
  PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
};

}  // namespace pyfastenv::lanes
