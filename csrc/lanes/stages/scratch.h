// Everything a group of kWidth environments has while it is stepped: mjData in lanes.
//
// One Scratch per worker; all arrays are carved from one block of memory that its owner frees.
// Fields that mjData has are under mjData's names and layouts (a Lane for each of its numbers).
#pragma once

#include <stddef.h>

#include "lanes/fields.h"
#include "lanes/phases.h"
#include "lanes/program/arrays.h"
#include "lanes/stages/lane.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// Contacts, compacted: the k-th of each lane side by side, though they may be of different pairs.
struct Contacts {
  int count[kWidth];
  int max_count;
  // of the pair at hand, bits of lanes: where it touches, and where one of its touches is so deep
  // that MuJoCo sees the pair for certain
  unsigned touching, seen;
  unsigned uncertain;   // lanes that have pairs which MuJoCo may not see
  int (*pair)[kWidth];  // (max_contacts): of each lane, where it has a k-th contact
  Lane* dist;           // (max_contacts)
  Lane* pos;            // (max_contacts, 3)
  Lane* frame;          // (max_contacts, 9): by rows; until MakeRows, normal and wished tangent
  // its rows among Rows
  int* first_row;  // (max_contacts)
  int* num_rows;   // (max_contacts): most that any lane's contact has
};

/// Elliptic friction cones: contacts with more than one row in some lane, in the rows' order.
struct Cones {
  int count;
  int* first_row;  // (max_contacts)
  int* num_rows;   // (max_contacts): 3, 4 or 6
  Lane* mu;        // (max_contacts): of the regularized cone
  Lane* friction;  // (max_contacts, kFrictions): zero in directions that a lane's contact has not
};

/// Constraint rows. First those of equalities and of dry friction, which stand at the same places
/// in all lanes; then limits, compacted per lane; then each contact's. A row that a lane does not
/// have is zero there.
struct Rows {
  int count[kWidth];  // that each lane has
  int max_count;      // rows in use, of any lane
  // bits of lanes
  unsigned any;      // with rows
  unsigned* valid;   // (max_rows)
  unsigned* active;  // (max_rows): pushed against, so that it resists as a spring does
  uint64_t* dofs;    // (max_rows): bits of dofs whose entries in J are not zero in all lanes
  uint64_t (*trees)[kWidth];  // (max_rows): of each lane's row, bits of the trees it acts on, if
                              // the model constrains several
  int (*limit)[kWidth];       // (max_limit_rows): 2 * limit + side
  Lane* J;                    // (max_rows, nv)
  Lane* violation;            // (max_rows): distance less margin
  Lane* impedance;            // (max_rows)
  Lane* stiffness;            // (max_rows): K
  Lane* damping;              // (max_rows): B
  Lane* R;                    // (max_rows)
  Lane* D;                    // (max_rows): 1 / R
  Lane* aref;                 // (max_rows)
  Lane* force;                // (max_rows)
  Lane* velocity;             // (max_rows): where MuJoCo makes them, of limits
  Cones cones;
};

struct ConeLine;
enum class Slip : unsigned char;

/// The orders in which the sweeps of PGS visit so many rows, made when first needed.
struct VisitOrders {
  static constexpr int kMaxRows = 64;
  static constexpr int kMaxSweeps = 100;
  uint16_t* table;   // for each number of rows n up to kMaxRows: (kMaxSweeps, n)
  int* num_filled;   // (kMaxRows + 1): sweeps that stand in the table
  uint64_t* random;  // (kMaxRows + 1): the generator behind the last of them
};

/// The solvers' own.
struct SolverScratch {
  // Newton
  static constexpr int kMaxUpdates = 24;
  Lane *residual, *direction;    // (max_rows): J a - aref and J search
  Lane *quad0, *quad1, *quad2;   // (max_rows): each row's cost along the search
  Lane *loss, *bound;            // (num_friction_losses): of dry friction: force, residual for it
  unsigned* was_active;          // (max_rows): bits of lanes
  unsigned* exerting;            // (max_rows): the same, if there are dry friction or elliptic
                                 // cones: with a force
  Lane *gradient, *Mgrad;        // (nv)
  Lane* update;                  // (nv)
  Lane *updates, *update_signs;  // (kMaxUpdates, nv), (kMaxUpdates): of the Hessian's factor
  Lane* hessian;                 // (nv, nv)
  // with elliptic cones
  Lane* cone_hessian;   // (nv, nv): with that of sliding cones
  Lane* cone_update;    // (6, nv)
  ConeLine* cone_line;  // (max_contacts)
  unsigned* sliding;    // (max_contacts): bits of lanes
  // the dual problem
  Lane* Y;           // (max_rows, nv)
  uint64_t* Y_dofs;  // (max_rows): bits of dofs where a row of Y is not zero in all lanes
  Lane* A;           // (max_rows (max_rows + 1) / 2): lower triangle of J M⁻¹ Jᵀ + R
  Lane* b;           // (max_rows)
  static constexpr int kVectors = 10;
  int capacity;         // max_rows rounded up to whole fours, and some more
  double* dense;        // (kWidth, capacity, capacity): A of each lane, one behind the other
  double* vectors;      // (kWidth, kVectors, capacity): the sweeps' own
  int* lane_rows;       // (kWidth, max_rows): each lane's rows among all
  int* island_rows;     // (kWidth, capacity): each lane's rows by islands
  Slip* slip;           // (kWidth, capacity)
  uint16_t* own_order;  // (kWidth, capacity): of a lane whose order is not in the table
  VisitOrders orders;
};

/// Where the numbers of an island of trees are put together.
struct IslandScratch {
  int *dof, *row;               // (nv), (max_rows): of the whole
  FrictionLoss* friction_loss;  // (num_friction_losses), with dofs of the whole
  int *M_rownnz, *M_rowadr, *M_colind;
  Lane *M, *qLD, *qLDiagInv, *qfrc_smooth, *qfrc_constraint, *qacc, *Ma;
  Rows rows;
};

struct Scratch {
#define PYFASTENV_LANES_FIELD(name, entries, numbers) Lane* name;
  PYFASTENV_LANES_FIELDS(PYFASTENV_LANES_FIELD)
#undef PYFASTENV_LANES_FIELD
  // the model's numbers, or each environment's own
#define PYFASTENV_LANES_NUMBER(name, ...) Lane* name;
  PYFASTENV_LANES_NUMBERS(PYFASTENV_LANES_NUMBER)
  PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER

  Lane *sin_half, *cos_half;  // (njnt): of hinges' half angles
  Lane* spring_turn;          // (njnt, 3): of rotations from their springs' rest
  Lane* ball_turn;            // (njnt, 3): of balls with actuators
  Lane* limit_axis;           // (num_limits, 3): that a limited ball is turned about
  Lane* body_force;           // (nbody, 6)
  Lane* body_acc;             // (nbody, 6)
  Lane* actuator_moment;      // (nJmom)
  // of sensors
  Lane* sensordata;                       // (sensors.num_data)
  Lane *subtree_linvel, *subtree_angmom;  // (nbody, 3), if they are sensed
  Lane* inertia_vel;                      // (nbody, 6): of bodies' inertias in the world's frame
  Lane* qDeriv;                           // (nD)
  Lane *H, *H_inverse_diagonal;           // (nC), (nv): M with damping, factored
  Lane* free_matrix;                      // (num_free_bodies, 6, 6)
  Lane* acc;                              // (nv): what the integrator advances the velocity with
  Lane *Ma, *search, *Mv;  // (nv): of Newton's solver: M qacc, its direction, M search
  // Runge-Kutta
  Lane* q0;          // (nq)
  Lane *X, *F;       // (4, nv): velocities and accelerations of the evaluations
  Lane *dx, *dv;     // (nv)
  Lane* act0;        // (na)
  Lane* start_warm;  // (nv): the warm start
  Lane* act_F;       // (4, na): act_dot of the evaluations
  Lane* dact;        // (na)

  unsigned* equality_active;  // (num_equalities): bits of lanes
  Contacts contacts;
  Rows rows;
  SolverScratch solver;
  IslandScratch island;
  NarrowPhaseCall narrow_phase;
  ConstraintCall constraints;
  double time[kWidth];
  // the state that kept fields are of: the integrator has moved it on
  double evaluated_time[kWidth];
  Lane *evaluated_qpos, *evaluated_qvel;  // (nq), (nv)
  Lane* spill;                            // (num_spills): of programs

  /// Whether the model has programs.
  bool has_programs;
  /// Lanes with qfrc_applied or xfrc_applied, which are zero without.
  unsigned applied;
  /// Lanes whose step MuJoCo itself must do; their numbers mean nothing.
  unsigned redo;
  /// Where time is counted; null: nowhere.
  PhaseTicks* phases;
};

/// Bytes of the block that a model's Scratch is carved from.
size_t ScratchBytes(const Tables& t);
/// Where programs find their arrays: bytes from the block's beginning, one of each ProgramArray.
void ProgramOffsets(const Tables& t, size_t* offsets);
/// Carves a Scratch into `memory` (zeroed, 64-byte aligned) and sets what never changes: the
/// model's numbers and the world's frame.
Scratch* MakeScratch(const Tables& t, void* memory);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
