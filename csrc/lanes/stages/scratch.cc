#include "lanes/stages/scratch.h"

#include "lanes/stages/cones.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// Hands out arrays from a block; of a block at address 0 only the places are of use.
class Carver {
 public:
  explicit Carver(void* memory) : begin_(reinterpret_cast<uintptr_t>(memory)) {}

  template <class T>
  void Take(T*& array, int count) {
    array = reinterpret_cast<T*>(begin_ + used_);
    used_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
  }
  size_t used() const { return used_; }

 private:
  uintptr_t begin_;
  size_t used_ = 0;
};

void CarveContacts(const Tables& t, Carver& carver, Contacts& c) {
  carver.Take(c.pair, t.max_contacts);
  carver.Take(c.dist, t.max_contacts);
  carver.Take(c.pos, 3 * t.max_contacts);
  carver.Take(c.frame, 9 * t.max_contacts);
  carver.Take(c.first_row, t.max_contacts);
  carver.Take(c.num_rows, t.max_contacts);
}

void CarveRows(const Tables& t, Carver& carver, Rows& r) {
  carver.Take(r.valid, t.max_rows);
  carver.Take(r.active, t.max_rows);
  carver.Take(r.dofs, t.max_rows);
  carver.Take(r.limit, t.max_limit_rows);
  if (t.several_trees) carver.Take(r.trees, t.max_rows);
  if (t.asks_for_constraints) {
    carver.Take(r.velocity, t.max_rows);
  } else {
    carver.Take(r.J, t.max_rows * t.nv);
  }
  Lane** const per_row[] = {&r.violation, &r.impedance, &r.stiffness, &r.damping,
                            &r.R,         &r.D,         &r.aref,      &r.force};
  for (Lane** array : per_row) carver.Take(*array, t.max_rows);
  const int max_cones = t.elliptic ? t.max_contacts : 0;
  carver.Take(r.cones.first_row, max_cones);
  carver.Take(r.cones.num_rows, max_cones);
  carver.Take(r.cones.mu, max_cones);
  carver.Take(r.cones.friction, kFrictions * max_cones);
}

void CarveSolver(const Tables& t, Carver& carver, SolverScratch& s) {
  s.capacity = t.max_rows / 4 * 4 + 4;
  carver.Take(s.residual, t.max_rows);
  if (t.solver == Solver::kPGS || t.noslip_iterations > 0) {
    carver.Take(s.Y, t.max_rows * t.nv);
    carver.Take(s.Y_dofs, t.max_rows);
    carver.Take(s.A, t.max_rows * (t.max_rows + 1) / 2);
    carver.Take(s.b, t.max_rows);
    carver.Take(s.dense, kWidth * s.capacity * s.capacity);
    carver.Take(s.vectors, kWidth * SolverScratch::kVectors * s.capacity);
    carver.Take(s.lane_rows, kWidth * t.max_rows);
    carver.Take(s.island_rows, kWidth * s.capacity);
    carver.Take(s.slip, kWidth * s.capacity);
  }
  if (t.solver == Solver::kPGS) {
    carver.Take(s.own_order, kWidth * s.capacity);
    constexpr int kRows = VisitOrders::kMaxRows;
    carver.Take(s.orders.table, kRows * (kRows + 1) / 2 * VisitOrders::kMaxSweeps);
    carver.Take(s.orders.num_filled, kRows + 1);
    carver.Take(s.orders.random, kRows + 1);
    return;
  }
  Lane** const per_row[] = {&s.direction, &s.quad0, &s.quad1, &s.quad2};
  for (Lane** array : per_row) carver.Take(*array, t.max_rows);
  carver.Take(s.loss, t.num_friction_losses);
  carver.Take(s.bound, t.num_friction_losses);
  carver.Take(s.was_active, t.max_rows);
  carver.Take(s.exerting, t.num_friction_losses > 0 || t.elliptic ? t.max_rows : 0);
  Lane** const per_dof[] = {&s.gradient, &s.Mgrad, &s.update};
  for (Lane** array : per_dof) carver.Take(*array, t.nv);
  carver.Take(s.updates, SolverScratch::kMaxUpdates * t.nv);
  carver.Take(s.update_signs, SolverScratch::kMaxUpdates);
  carver.Take(s.hessian, t.nv * t.nv);
  if (!t.elliptic) return;
  carver.Take(s.cone_hessian, t.nv * t.nv);
  carver.Take(s.cone_update, 6 * t.nv);
  carver.Take(s.cone_line, t.max_contacts);
  carver.Take(s.sliding, t.max_contacts);
}

void CarveIsland(const Tables& t, Carver& carver, IslandScratch& s) {
  carver.Take(s.dof, t.nv);
  carver.Take(s.row, t.max_rows);
  carver.Take(s.friction_loss, t.num_friction_losses);
  carver.Take(s.M_rownnz, t.nv);
  carver.Take(s.M_rowadr, t.nv);
  carver.Take(s.M_colind, t.nC);
  carver.Take(s.M, t.nC);
  carver.Take(s.qLD, t.nC);
  Lane** const per_dof[] = {&s.qLDiagInv, &s.qfrc_smooth, &s.qfrc_constraint, &s.qacc, &s.Ma};
  for (Lane** array : per_dof) carver.Take(*array, t.nv);
  CarveRows(t, carver, s.rows);
}

void Carve(const Tables& t, Carver& carver, Scratch& s) {
#define PYFASTENV_LANES_FIELD(name, entries, numbers) carver.Take(s.name, t.entries*(numbers));
  PYFASTENV_LANES_FIELDS(PYFASTENV_LANES_FIELD)
#undef PYFASTENV_LANES_FIELD
#define PYFASTENV_LANES_NUMBER(name, count, ...) carver.Take(s.name, count);
  PYFASTENV_LANES_NUMBERS(PYFASTENV_LANES_NUMBER)
  PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
  carver.Take(s.evaluated_qpos, t.nq);
  carver.Take(s.evaluated_qvel, t.nv);
  carver.Take(s.sin_half, t.njnt);
  carver.Take(s.cos_half, t.njnt);
  carver.Take(s.spring_turn, 3 * t.njnt);
  carver.Take(s.ball_turn, 3 * t.njnt);
  carver.Take(s.limit_axis, 3 * t.num_limits);
  carver.Take(s.body_force, 6 * t.nbody);
  carver.Take(s.body_acc, 6 * t.nbody);
  carver.Take(s.actuator_moment, t.nJmom);
  carver.Take(s.sensordata, t.sensors.num_data);
  const int num_subtrees = t.sensors.subtree_velocities ? t.nbody : 0;
  carver.Take(s.subtree_linvel, 3 * num_subtrees);
  carver.Take(s.subtree_angmom, 3 * num_subtrees);
  carver.Take(s.inertia_vel, 6 * num_subtrees);
  if (t.integrator == Integrator::kImplicitFast) carver.Take(s.qDeriv, t.nD);
  carver.Take(s.H, t.nC);
  carver.Take(s.H_inverse_diagonal, t.nv);
  carver.Take(s.free_matrix, 36 * t.num_free_bodies);
  carver.Take(s.acc, t.nv);
  carver.Take(s.Ma, t.nv);
  carver.Take(s.search, t.nv);
  carver.Take(s.Mv, t.nv);
  if (t.integrator == Integrator::kRungeKutta4) {
    carver.Take(s.q0, t.nq);
    carver.Take(s.X, 4 * t.nv);
    carver.Take(s.F, 4 * t.nv);
    carver.Take(s.dx, t.nv);
    carver.Take(s.dv, t.nv);
    carver.Take(s.act0, t.na);
    carver.Take(s.start_warm, t.nv);
    carver.Take(s.act_F, 4 * t.na);
    carver.Take(s.dact, t.na);
  }
  carver.Take(s.equality_active, t.num_equalities);
  CarveContacts(t, carver, s.contacts);
  CarveRows(t, carver, s.rows);
  if (!t.asks_for_constraints) CarveSolver(t, carver, s.solver);
  if (t.several_trees) CarveIsland(t, carver, s.island);
  carver.Take(s.spill, t.num_spills);
}

// The layout of a block, as one at address 0; returns its size.
size_t Layout(const Tables& t, Scratch& s) {
  Carver carver(nullptr);
  Scratch* header;
  carver.Take(header, 1);
  Carve(t, carver, s);
  return carver.used();
}

}  // namespace

size_t ScratchBytes(const Tables& t) {
  Scratch s{};
  return Layout(t, s);
}

void ProgramOffsets(const Tables& t, size_t* offsets) {
  Scratch s{};
  Layout(t, s);
#define PYFASTENV_LANES_OFFSET(name, ...) *offsets++ = reinterpret_cast<uintptr_t>(s.name);
  PYFASTENV_LANES_PROGRAM_ARRAYS(PYFASTENV_LANES_OFFSET)
  PYFASTENV_LANES_NUMBERS(PYFASTENV_LANES_OFFSET)
  PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_OFFSET)
#undef PYFASTENV_LANES_OFFSET
}

Scratch* MakeScratch(const Tables& t, void* memory) {
  Carver carver(memory);
  Scratch* s;
  carver.Take(s, 1);
  *s = Scratch{};
  Carve(t, carver, *s);
#define PYFASTENV_LANES_NUMBER(name, count, ...) \
  for (int i = 0; i < count; ++i) s->name[i] = Splat(t.numbers.name[i]);
  PYFASTENV_LANES_NUMBERS(PYFASTENV_LANES_NUMBER)
  PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
  PlaceWorld(t, *s);
  return s;
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
