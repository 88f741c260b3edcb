// A model as the stages read it: plain tables of numbers, made once by Plan and shared read-only.
//
// No standard library here: the stages are compiled once per instruction set, and an inline
// function of a shared template compiled with AVX-512 could be the copy that the linker keeps for
// all.
#pragma once

#include <cstdint>

namespace pyfastenv::lanes {

constexpr int kMaxDofs = 60;  // MuJoCo's own Jacobians are sparse from here on; a mask has 64 bits
constexpr int kMaxWidth = 8;  // lanes of the widest instruction set

/// A frame fixed to a body: of its inertia, a geom, a site. `same` is MuJoCo's mjtSameFrame.
struct FixedFrame {
  int body;
  int same;
  double pos[3];
  double quat[4];
};

struct Body {
  int parent;
  int root;         // the ancestor that is a child of the world
  int first_joint;  // meaningless without joints
  int num_joints;
  int first_dof;  // meaningless without dofs
  int num_dofs;
  int last_dof;  // of the nearest ancestor, or itself, that has dofs; -1 if none
  bool free;     // a free joint and no other
  double pos[3];
  double quat[4];
  double mass;
  double inertia[3];
  double inverse_subtree_mass;  // 0 for a subtree without mass
  // Box of the same inertia in a fluid: force = -(viscous + quadratic |v|) v, per axis.
  bool in_fluid;
  double viscous_torque;
  double viscous_force;
  double quadratic_torque[3];  // to be divided by 64
  double quadratic_force[3];
};

enum class JointKind : int { kFree, kSlide, kHinge };

struct Joint {
  JointKind kind;
  int body;
  int qpos;
  int dof;
  double axis[3];
  double pos[3];
  double qpos0;
  double stiffness;
  double qpos_spring;
};

struct Dof {
  int body;
  int parent;   // -1 for a tree's first
  bool simple;  // constant diagonal inertia, nothing beside it
  double M0;
  double armature;
  double damping;
};

/// An entry of a column of the inertia matrix.
struct MatrixEntry {
  int row;
  int index;  // in M
};

/// A motor, position or velocity servo on a slide or hinge joint: force = gain ctrl + affine bias.
struct Actuator {
  int qpos;
  int dof;
  double gear;
  double gain;
  bool has_bias;
  double bias[3];  // constant, per length, per velocity
  bool clamp_ctrl;
  double ctrl_range[2];
  bool clamp_force;
  double force_range[2];
};

/// Bounds on the sum of a dof's actuator forces.
struct ForceLimit {
  int dof;
  double range[2];
};

/// How violation becomes impedance and reference acceleration, from solref and solimp; in solimp's
/// sigmoid the power is 2: y = rise x² up to the middle, 1 - fall (1 - x)² behind it.
struct Softness {
  double d0, dwidth, width, midpoint;
  double rise, fall;
  double stiffness, damping;  // K and B of aref = -B v - K d r
};

struct Limit {
  int qpos;
  int dof;
  double range[2];
  double margin;
  double inverse_weight;
  int softness;
};

enum class PairKind : int {
  kPlaneSphere,
  kPlaneCapsule,
  kPlaneBox,
  kPlaneCylinder,
  kSphereSphere,
  kSphereCapsule,
  kCapsuleCapsule,
  kOther  // by MuJoCo's collision function
};

/// A contact of two geoms as collision functions give it: mjPreContact.
struct ContactPoint {
  double dist;
  double pos[3];
  double normal[3];
  double tangent[3];  // wished; zero: any
};
constexpr int kMaxPointsOfPair = 50;  // mjMAXCONPAIR

/// MuJoCo's collision function of a pair in one environment, from the geoms' frames. Returns the
/// number of points; -1 if MuJoCo raised an error.
struct NarrowPhaseCall {
  void* self;
  int (*collide)(void* self, int pair, const double* pos1, const double* mat1, const double* pos2,
                 const double* mat2, ContactPoint* points);
};

/// What contacts of many pairs have in common.
struct Surface {
  int condim;  // 1 or 3
  double friction;
  double margin;
  int softness;
};

/// Two geoms that may touch; in the order in which MuJoCo lists contacts.
struct Pair {
  PairKind kind;
  int geom1, geom2;
  int body1, body2;
  int surface;
  double radius1, half_length1;
  double radius2, half_length2;
  double half_sizes2[3];  // of a box
  double margin;
  double reach;  // margin and gap: what collision functions take for the margin
  bool plane;    // the first geom is one
  bool swept;    // found by MuJoCo's sweep over bodies
  // of the distance of centres, or of plane and centre; infinite where MuJoCo does not ask
  double bound, bound_squared;
  double inverse_weight;  // diagonal of A, approximately, of all of a contact's rows
  uint64_t trees;         // bits of those that the geoms belong to
  uint64_t dofs1, dofs2;  // that move body 1 and not body 2, and the reverse
};

enum class Integrator : int { kEuler, kImplicitFast, kRungeKutta4 };
enum class Solver : int { kNewton, kPGS };

/// Straight-line code of a stage for one model; `scratch` is the block that stages work in.
using Program = void (*)(void* scratch);

/// The stages that are recorded as programs, under their functions' names.
enum class RecordedStage : int {
  kSmoothDynamics,
  kAccelerationProduct,
  kSearchProduct,
  kConstraintAcceleration,
  kDampedAcceleration,
  kCount
};

/// Where in a row of mjSTATE_INTEGRATION things are.
/// A fixed tendon: a sum over joints, in the order of its dofs.
struct Tendon {
  static constexpr int kMaxTerms = 3;
  int num_terms;
  int qpos[kMaxTerms], dof[kMaxTerms];
  double coef[kMaxTerms];
};

struct RowLayout {
  int size;
  int time, qpos, qvel, warmstart, ctrl;
  int qfrc_applied, xfrc_applied;
};

struct Tables {
  // sizes under MuJoCo's names
  int nq, nv, nu, nout, nbody, njnt, ngeom, nsite, nC;
  int ntendon;  // 0 if there is any of another kind
  int num_limits, num_force_limits, num_pairs;

  const Body* body;           // (nbody)
  const FixedFrame* inertia;  // (nbody)
  const FixedFrame* geom;     // (ngeom)
  const FixedFrame* site;     // (nsite)
  const Joint* joint;         // (njnt)
  const Dof* dof;             // (nv)
  const Actuator* actuator;   // (nu)
  const Tendon* tendon;       // (ntendon)
  const ForceLimit* force_limit;
  const Limit* limit;
  const Pair* pair;
  const Surface* surface;
  const Softness* softness;  // no two the same

  // the sparse inertia matrix's rows
  const int* M_rownnz;  // (nv)
  const int* M_rowadr;  // (nv)
  const int* M_colind;  // (nC)
  // its columns below the diagonal, from the last row to the first
  const int* M_colend;         // (nv): where in M_below a dof's column ends; it begins where the
                               // dof's before it ends
  const MatrixEntry* M_below;  // (nC - nv)

  /// Whether constraints may act on more than one tree.
  bool several_trees;
  const int* dof_tree;  // (nv)
  // the one tree, otherwise
  int first_solver_dof;
  int num_solver_dofs;

  int max_limit_rows;
  int max_contacts;
  int max_rows;

  double gravity[3];
  bool has_fluid;
  Integrator integrator;
  bool implicit_damping;  // Euler with damped dofs, implicitfast
  double timestep;
  Solver solver;
  int iterations;
  int ls_iterations;
  double tolerance;
  double ls_tolerance;
  double impratio;

  RowLayout row;

  bool sine_by_series;      // in all lanes at once: Kernels::series_agrees
  const Program* programs;  // one of each RecordedStage; null if this machine cannot
  int num_spills;           // Lanes of memory that programs need
};

}  // namespace pyfastenv::lanes
