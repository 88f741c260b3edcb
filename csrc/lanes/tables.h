// A model as the stages read it: plain tables of numbers, made once by Plan and shared read-only.
//
// No standard library here: the stages are compiled once per instruction set, and an inline
// function of a shared template compiled with AVX-512 could be the copy that the linker keeps for
// all.
#pragma once

#include <cstdint>

#include "lanes/numbers.h"
#include "lanes/sensor_table.h"

namespace pyfastenv::lanes {

constexpr int kMaxDofs = 60;  // MuJoCo's own Jacobians are sparse from here on; a mask has 64 bits
constexpr int kMaxChain = 256;  // dofs of a model whose constraints are MuJoCo's
constexpr int kMaxWidth = 8;    // lanes of the widest instruction set

/// A frame fixed to a body: of a geom, a site. `same` is MuJoCo's mjtSameFrame.
struct FixedFrame {
  int body;
  int same;
};

struct Body {
  int parent;
  int root;         // the ancestor that is a child of the world
  int first_joint;  // meaningless without joints
  int num_joints;
  int first_dof;  // meaningless without dofs
  int num_dofs;
  int last_dof;   // of the nearest ancestor, or itself, that has dofs; -1 if none
  int mocap;      // where the state has its frame; -1: the model has it
  bool free;      // a free joint and no other
  int same;       // mjtSameFrame of its inertia
  bool massless;  // with all that hangs on it
  bool in_fluid;
  bool gravcomp;
};

/// The nonlinear part of a spring's or damper's number: a x + b x² …, of the stretch or speed.
struct Polynomial {
  static constexpr int kCount = 2;  // mjNPOLY
  double coefficient[kCount];
  bool is_zero;
};

enum class JointKind : int { kFree, kBall, kSlide, kHinge };

struct Joint {
  JointKind kind;
  int body;
  int qpos;
  int dof;
  bool has_spring;
  bool act_gravcomp;    // gravity compensation counts as its actuators' force
  bool driven;          // a ball that actuators turn
  bool negative_zeros;  // its axis or place may have some
  Polynomial spring;
};
/// Whether a quaternion of qpos is turned by three dofs: a ball's, or a free joint's last.
inline bool HasRotation(const Joint& joint) {
  return joint.kind == JointKind::kFree || joint.kind == JointKind::kBall;
}

struct Dof {
  int body;
  int parent;   // -1 for a tree's first
  bool simple;  // constant diagonal inertia, nothing beside it
  bool turns;   // one of three of a rotation
  bool has_damper;
  int joint;
  Polynomial damper;
  double more_damping, more_armature;  // its actuators'
};

/// A free body that moves as one with all that hangs on it, and its first dof.
struct FreeBody {
  int body;
  int dof;
};

enum class Transmission : int { kJoint, kBall, kFreeJoint, kTendon, kSite };

/// How a control becomes an activation: kFilter integrates (ctrl - act) / tau by Euler's rule,
/// kFilterExact exactly; kMuscle does at a rate of its own.
enum class Dynamics : int { kNone, kIntegrator, kFilter, kFilterExact, kMuscle };

/// How a gain or a bias comes from the parameters: their first, affine in length and velocity, a
/// muscle's active or passive force.
enum class ForceLaw : int { kNone, kFixed, kAffine, kMuscle };

/// What of a muscle its parameters do not say.
struct Muscle {
  static constexpr int kDynamics = 3;

  double length_range[2], acc0;
  double dynamics[kDynamics];  // times of rising and falling, width of the change between them
};

/// force = gain u + bias; u is the control or the activation.
struct Actuator {
  Transmission transmission;
  int target;      // position in qpos, tendon or site
  int ball;        // the joint, if that is one
  bool in_parent;  // the frame of the gear that turns a ball or a free joint
  Dynamics dynamics;
  int act;  // its activation; -1 without dynamics
  double time_constant;
  double share;    // of the way that kFilterExact goes in a step
  bool act_early;  // u is the next step's activation
  bool clamp_act;
  double act_range[2];
  ForceLaw gain, bias;
  Muscle muscle;
  bool clamp_ctrl;
  bool clamp_force;
  bool disabled;            // it has no force, and its activation stands still
  int force_limited_joint;  // that it drives, whose sum of forces is bounded; -1: none
};

/// Bounds on the sum of a dof's actuator forces.
struct ForceLimit {
  int dof;
  int joint;
};

/// Dry friction of a dof or a tendon: a row whose force is at most so large, either way.
struct FrictionLoss {
  int dof;
  int tendon;  // -1 for a dof
  int softness;
  double tendon_loss, tendon_inverse_weight;
};

enum class EqualityKind : int { kJoint, kTendon, kConnect, kWeld };

/// A pair that shall stay together: two joints' positions or tendons' lengths (or one at a place),
/// two points, two frames.
struct Equality {
  static constexpr int kData = 11;

  EqualityKind kind;
  int first_row, num_rows;
  int object1, object2;  // joints or tendons; the second may be -1
  double length1, length2, tendon_inverse_weight;
  // of the others
  bool sites;  // frames are sites' (site1, site2), not bodies'
  int site1, site2;
  bool site1_turns, site2_turns;  // against their bodies
  int body1, body2;
  uint64_t dofs1, dofs2;  // that move each
  uint64_t trees;
  double data[kData];  // mjModel's eq_data
  int softness;
};

enum class LimitKind : int { kPosition, kBall, kTendon };

/// A limit of a slide's or hinge's position or a tendon's length, from both sides; of the angle
/// that a ball is turned by.
struct Limit {
  LimitKind kind;
  int qpos;
  int dof;
  int joint;
  int softness;
  // of a tendon
  int tendon;
  uint64_t trees;
  double range[2], margin, inverse_weight;
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

/// A contact of mj_collision's that has rows.
struct ListedContact {
  int geom1, geom2;
  double dist;
  double pos[3];
  double normal[3];
};

/// Where the positions of an environment go.
struct Positions {
  double *qpos, *mocap_pos, *mocap_quat;
};

/// A geom's frame and size.
struct GeomPlace {
  double pos[3], mat[9], size[3];
};

/// MuJoCo's collisions and rays in one environment.
struct NarrowPhaseCall {
  void* self;
  /// The collision function of a pair, from the geoms' frames. Returns the number of points; -1 if
  /// MuJoCo raised an error.
  int (*collide)(void* self, int lane, int pair, const double* pos1, const double* mat1,
                 const double* pos2, const double* mat2, ContactPoint* points);
  /// Where to write the positions that `list` is asked about.
  Positions (*positions)(void* self);
  /// All that mj_collision lists there; valid until the next call. Returns how many; -1 if MuJoCo
  /// raised an error.
  int (*list)(void* self, int lane, const ListedContact** contacts);
  /// How far along a ray a geom is, as mj_ray computes it; < 0: nowhere; NaN if MuJoCo raised an
  /// error.
  double (*cast)(void* self, int lane, const RayTarget& target, const GeomPlace& place,
                 const double* from, const double* along);
};

/// A constraint row that MuJoCo has made and solved.
struct SolvedRow {
  int row;  // among Rows
  double force;
  // of a limit
  int limit;  // 2 * limit + side; -1: another row
  double violation, velocity;
};

/// MuJoCo's constraints of one environment.
struct SolvedConstraints {
  const double *qacc, *qfrc_constraint;  // (nv)
  const SolvedRow* row;
  int num_rows;
};

/// Makes and solves constraints by MuJoCo's functions.
struct ConstraintCall {
  void* self;
  bool* eq_active;  // (num_equalities): to be set before
  /// Of a lane, from its fields and contacts; `solved` is valid until the next call. False if
  /// MuJoCo raised an error or warned.
  bool (*solve)(void* self, int lane, SolvedConstraints* solved);
};

/// The numbers that contacts of many pairs have in common.
struct Surface {
  int condim;  // 1, 3, 4 or 6
  int softness;
};

/// A geom's bounding volumes, as the compiler has made them: geom_aabb and geom_rbound.
struct GeomBounds {
  double center[3], half[3];
  double radius;
};

/// The touches of a pair that MuJoCo's broad and middle phases see for certain (BoundingVolumes):
/// those nearer than `distance` less `rounding` times the touch's coordinates; and, whatever the
/// distance of overlapping shapes is said to be, those of geoms whose bounding boxes overlap by
/// `overlap`, and bounding spheres too if bodies are swept.
struct Sight {
  double distance;
  double rounding;
  double overlap;
  bool swept;
};

/// Two geoms that may touch; in the order in which MuJoCo lists contacts.
struct Pair {
  PairKind kind;
  int geom1, geom2;
  int body1, body2;
  int surface;
  bool plane;       // the first geom is one
  bool all_seen;    // by MuJoCo's broad and middle phases, however they stand
  double rounding;  // of Sight
  bool swept;
  double exact;  // signed distances above it are the shapes' own; below it iterations may be off
  // where MuJoCo's functions collide the geoms, which are the model's in every environment
  double reach;           // margin and gap: what those functions take for the margin
  double apart;           // of geoms' boxes along a face's normal: beyond it nothing touches
  uint64_t trees;         // bits of those that the geoms belong to
  uint64_t dofs1, dofs2;  // that move body 1 and not body 2, and the reverse
};

enum class Integrator : int { kEuler, kImplicitFast, kRungeKutta4 };
enum class Solver : int { kNewton, kPGS };

/// Straight-line code of a stage for one model; `scratch` is the block that stages work in.
using Program = void (*)(void* scratch);

/// The stages that are recorded as programs, under their functions' names.
enum class RecordedStage : int {
  kPlaces,  // with spatial tendons
  kSmoothDynamics,
  kAccelerationProduct,
  kSearchProduct,
  kConstraintAcceleration,
  kDampedAcceleration,
  kSensors,
  kCount
};

/// A joint in a fixed tendon, which is a sum over them: of wrap_prm qpos.
struct TendonTerm {
  int qpos;
  int entry;  // in ten_J
};

/// A point of a spatial tendon.
struct TendonPoint {
  int index;  // site or geom
  int body;
};

/// A piece of a spatial tendon, from one site to the next, round a geom that is in its way.
struct TendonPiece {
  TendonPoint site1, site2;
  TendonPoint geom;  // its index is -1: straight
  int shape;         // mjtWrap
  bool is_cylinder;
  double radius;
  int side;        // the site by which the path passes; -1: any way
  double divisor;  // of the pulley before it
};

struct Tendon {
  int first_term, num_terms;    // of a fixed one, among wrap objects
  int first_piece, num_pieces;  // of a spatial one
  bool has_spring, has_damper, has_armature;
  bool limits_force;  // of all its actuators together
  double force_range[2];
  Polynomial spring, damper;
  double more_damping, more_armature;  // its actuators'
};

/// Rows of which only some entries can differ from zero.
struct SparseRows {
  const int* rownnz;
  const int* rowadr;
  const int* colind;
};

/// Where in a row of mjSTATE_INTEGRATION things are.
struct RowLayout {
  int size;
  int time, qpos, qvel, act, warmstart, ctrl, eq_active, mocap_pos, mocap_quat;
  int qfrc_applied, xfrc_applied;
};

struct Tables {
  // sizes under MuJoCo's names
  int nq, nv, na, nu, nout, nbody, nmocap, njnt, ngeom, nsite, nC, nD;
  int num_volumes;            // of bvh_aabb: bodies'
  int ntendon, nJten, nwrap;  // 0 if spatial tendons are there that do nothing
  int nJmom;
  int num_friction_losses, num_limits, num_force_limits, num_pairs;
  int num_equalities, num_equality_rows;
  int num_softness;
  int num_free_bodies;  // with implicitfast

  /// The model's own; in lanes they stand in Scratch.
  Numbers numbers;
  /// Which of them every environment may have its own of: bits of Number.
  uint64_t varied;
  bool Varies(Number number) const { return (varied >> static_cast<int>(number) & 1) != 0; }
  /// Whether what is fixed to the world may stand elsewhere in every environment.
  bool WorldVaries() const {
    return Varies(Number::geom_pos) || Varies(Number::geom_quat) || Varies(Number::site_pos) ||
           Varies(Number::site_quat);
  }

  const Body* body;          // (nbody)
  const FixedFrame* geom;    // (ngeom)
  const GeomBounds* bounds;  // (ngeom)
  const FixedFrame* site;    // (nsite)
  const Joint* joint;        // (njnt)
  const Dof* dof;            // (nv)
  const FreeBody* free_body;
  const Actuator* actuator;       // (nu)
  const Tendon* tendon;           // (ntendon)
  const TendonTerm* tendon_term;  // (nwrap): unused where no joint is
  const TendonPiece* tendon_piece;
  const unsigned char* moves;  // (nbody, nv): whether a dof moves a body; with spatial tendons
  SparseRows ten_J;            // (ntendon)
  SparseRows moment;           // (nout)
  const ForceLimit* force_limit;
  const Equality* equality;
  const FrictionLoss* friction_loss;
  const Limit* limit;
  const Pair* pair;
  const Surface* surface;
  SensorTable sensors;

  // the sparse inertia matrix's rows
  const int* M_rownnz;  // (nv)
  const int* M_rowadr;  // (nv)
  const int* M_colind;  // (nC)

  // derivatives of forces by velocities: all pairs of dofs of which one moves the other's body
  SparseRows D;
  const int* D_diag;  // (nv): entry in its row
  const int* mapD2M;  // (nC): where in D an entry of M is

  bool has_frame_equalities;  // connects or welds
  bool constrains_tendons;
  bool has_spatial_tendons;
  bool uses_site_velocities;  // those of actuators at sites, which programs do not compute
  /// Whether constraints are made and solved by MuJoCo's functions, lane by lane.
  bool asks_for_constraints;
  /// Whether constraints may act on more than one tree.
  bool several_trees;
  const int* dof_tree;  // (nv)
  // the one tree, otherwise
  int first_solver_dof;
  int num_solver_dofs;

  int max_limit_rows;
  int max_contacts;
  int rows_of_contact;  // most
  int max_rows;

  bool has_fluid, has_wind, has_gravcomp;
  bool passive;      // there are springs, dampers and what comes with them
  bool actuation;    // actuators act
  bool starts_warm;  // the solver begins at the last step's acceleration if that costs less
  Integrator integrator;
  bool implicit_damping;  // Euler with damped dofs, implicitfast
  double timestep;
  Solver solver;
  int iterations;
  int ls_iterations;
  double tolerance;
  double ls_tolerance;
  int noslip_iterations;
  double noslip_tolerance;
  bool elliptic;  // friction cones
  double impratio;

  RowLayout row;

  bool sine_by_series;      // in all lanes at once: Kernels::series_agrees
  const Program* programs;  // one of each RecordedStage; null if this machine cannot
  int num_spills;           // Lanes of memory that programs need
};

/// The first row whose force only pushes: of limits and contacts.
inline int FirstInequality(const Tables& t) { return t.num_equality_rows + t.num_friction_losses; }

/// The first row of the k-th contact, where MuJoCo makes them: the same place in all lanes.
inline int FixedContactRow(const Tables& t, int k) {
  return FirstInequality(t) + t.max_limit_rows + k * t.rows_of_contact;
}

/// Constraint rows of a contact; 0 of none.
inline int RowsOfContact(const Tables& t, int condim) {
  return condim <= 1 || t.elliptic ? condim : 2 * (condim - 1);
}

}  // namespace pyfastenv::lanes
