// Whole evaluations and steps, rows in and out of lanes, and the table of functions that the rest
// of the program reaches this instruction set by.
#include <assert.h>

#include "lanes/kernels.h"
#include "lanes/stages/sine_cosine.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

constexpr double kMaxVal = 1e10;     // mjMAXVAL
constexpr double kShortest = 1e-10;  // of quaternions, well above mjMINVAL

unsigned BadNumbers(const Lane* x, int n, double most = kMaxVal) {
  Mask good = Splat(0) == 0.0;
  for (int i = 0; i < n; ++i) good = good & (Abs(x[i]) <= most);
  return ~Bits(good) & kAllLanes;
}

constexpr double kLargestInverse = 1.0 / 1e-15;  // 1 / mjMINVAL

}  // namespace

unsigned ReplacedPivots(const Lane* inverse_diagonal, int n) {
  Mask good = Splat(0) == 0.0;
  for (int i = 0; i < n; ++i) {
    good = good & (inverse_diagonal[i] > 0.0) & (inverse_diagonal[i] <= kLargestInverse);
  }
  return ~Bits(good) & kAllLanes;
}

namespace {

unsigned LanesWhereShort(const Lane* q) {
  const Lane squared = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
  return ~Bits(squared >= kShortest * kShortest) & kAllLanes;
}

// Lanes in which the quaternion of a ball or free joint has hardly any length, where MuJoCo takes
// another. (Of bodies' own, Derivation::IsUsual has looked.)
unsigned ShortQuaternions(const Tables& t, const Scratch& s) {
  unsigned lanes = 0;
  for (int j = 0; j < t.njnt; ++j) {
    if (!HasRotation(t.joint[j])) continue;
    const Lane* q = s.qpos + t.joint[j].qpos + (t.joint[j].kind == JointKind::kFree ? 3 : 0);
    lanes |= LanesWhereShort(q);
  }
  return lanes;
}

// Lanes in which the frame of a mocap body, which the caller has set, is none.
unsigned BadMocap(const Tables& t, const Scratch& s) {
  if (t.nmocap == 0) return 0;
  unsigned lanes = BadNumbers(s.mocap_pos, 3 * t.nmocap) | BadNumbers(s.mocap_quat, 4 * t.nmocap);
  for (int k = 0; k < t.nmocap; ++k) lanes |= LanesWhereShort(s.mocap_quat + 4 * k);
  return lanes;
}

// Whether a program's force is so small that its products may vanish, for which MuJoCo's zero has a
// sign that programs do not keep.
Mask Vanishes(Lane force) { return (Abs(force) < 1e-250) & (force != 0.0); }

unsigned VanishingForces(const Lane* force, int n) {
  Mask vanishes = Splat(0) != 0.0;
  for (int i = 0; i < n; ++i) vanishes = vanishes | Vanishes(force[i]);
  return Bits(vanishes) & kAllLanes;
}

// Lanes with accelerations that MuJoCo would warn of (mj_checkAcc, after every evaluation of
// Runge-Kutta's: the next ones' numbers stay finite by it), with pivots that it replaces, or with
// forces that vanish. Sums and least values tell nearly always that there are none.
unsigned BadEvaluation(const Tables& t, const Scratch& s) {
  Lane accelerations = Splat(0), pivots = Splat(0), least = Splat(kLargestInverse);
  Mask vanishes = Splat(0) != 0.0;
  const bool constrained = s.rows.any != 0;
  for (int i = 0; i < t.nv; ++i) {
    accelerations = accelerations + Abs(s.qacc[i]);
    pivots = pivots + s.qLDiagInv[i];
    least = Min(s.qLDiagInv[i], least);
    if (!s.has_programs) continue;
    vanishes = vanishes | Vanishes(s.qfrc_smooth[i]);
    if (constrained) vanishes = vanishes | Vanishes(s.qfrc_constraint[i]);
  }
  const Mask good = (accelerations <= kMaxVal) & (pivots <= kLargestInverse) & (least > 0.0);
  if ((Bits(good) & ~Bits(vanishes) & kAllLanes) == kAllLanes) return 0;
  unsigned bad = BadNumbers(s.qacc, t.nv) | ReplacedPivots(s.qLDiagInv, t.nv);
  if (s.has_programs) bad |= VanishingForces(s.qfrc_smooth, t.nv);
  if (s.has_programs && constrained) bad |= VanishingForces(s.qfrc_constraint, t.nv);
  return bad;
}

// What has passed since the last call belongs to this phase.
void EndPhase(Scratch& s, Phase phase) {
  if (s.phases == nullptr) return;
  const uint64_t now = Ticks();
  s.phases->ticks[static_cast<int>(phase)] += now - s.phases->last;
  s.phases->last = now;
}

}  // namespace

void Evaluate(const Tables& t, Scratch& s, bool keep_fields) {
  EndPhase(s, Phase::kIntegration);
  Angles(t, s);
  ActivationRates(t, s);
  s.redo |= ShortQuaternions(t, s);
  // fine with MuJoCo, but programs leave out what is times zero
  if (t.na > 0) s.redo |= BadNumbers(s.act, t.na) | BadNumbers(s.act_dot, t.na, 1e200);
#ifndef NDEBUG
  short_quaternions = 0;
#endif
  if (keep_fields || !s.has_programs) {
    SmoothDynamics(t, s);
  } else {
    if (t.has_spatial_tendons) {
      Run(RecordedStage::kPlaces, t, s);
      SpatialTendons(t, s);
    }
    Run(RecordedStage::kSmoothDynamics, t, s);
  }
  assert((short_quaternions & ~s.redo) == 0);
  if (s.applied != 0) AddAppliedForces(t, s);
  EndPhase(s, Phase::kSmooth);
  Collide(t, s);
  EndPhase(s, Phase::kCollision);
  if (!t.asks_for_constraints) {
    MakeRows(t, s);
    ReferenceAcceleration(t, s);
  }
  for (int i = 0; i < (t.starts_warm ? 0 : t.nv); ++i) s.qacc_warmstart[i] = s.qacc_smooth[i];
  EndPhase(s, Phase::kRows);
  if (t.asks_for_constraints) {
    AskForConstraints(t, s);
  } else if (t.solver == Solver::kPGS) {
    SolvePGS(t, s);
  } else {
    SolveNewton(t, s);
    if (t.noslip_iterations > 0) RemoveSlip(t, s);
  }
  s.redo |= BadEvaluation(t, s);
  EndPhase(s, Phase::kSolver);
}

namespace {

void RememberState(const Tables& t, Scratch& s) {
  for (int l = 0; l < kWidth; ++l) s.evaluated_time[l] = s.time[l];
  for (int i = 0; i < t.nq; ++i) s.evaluated_qpos[i] = s.qpos[i];
  for (int i = 0; i < t.nv; ++i) s.evaluated_qvel[i] = s.qvel[i];
}

void Swap(Lane* a, Lane* b, int n) {
  for (int i = 0; i < n; ++i) {
    const Lane old = a[i];
    a[i] = b[i];
    b[i] = old;
  }
}

// The state that Runge-Kutta has begun with and the one that it has made.
void SwapStates(const Tables& t, Scratch& s) {
  for (int l = 0; l < kWidth; ++l) {
    const double old = s.time[l];
    s.time[l] = s.evaluated_time[l];
    s.evaluated_time[l] = old;
  }
  Swap(s.qpos, s.q0, t.nq);
  Swap(s.qvel, s.X, t.nv);
  Swap(s.act, s.act0, t.na);
  Swap(s.qacc_warmstart, s.start_warm, t.nv);
}

// Makes the first evaluation of Runge-Kutta again, whose fields sensors are computed from by
// MuJoCo's functions after the step.
void SenseFirstEvaluation(const Tables& t, Scratch& s) {
  SwapStates(t, s);
  Evaluate(t, s, /*keep_fields=*/false);
  ComputeSensors(t, s);
  SwapStates(t, s);
}

}  // namespace

void Step(const Tables& t, Scratch& s, bool keep_fields, bool sensors) {
  if (keep_fields || sensors) RememberState(t, s);
  // mj_checkPos, mj_checkVel: MuJoCo would warn and reset
  s.redo |= BadNumbers(s.qpos, t.nq) | BadNumbers(s.qvel, t.nv);
  const bool one_evaluation = t.integrator != Integrator::kRungeKutta4;
  Evaluate(t, s, keep_fields && one_evaluation);
  const bool again = sensors && t.sensors.others && !one_evaluation;
  for (int i = 0; i < (again ? t.nv : 0); ++i) s.start_warm[i] = s.qacc_warmstart[i];
  if (sensors && !again) ComputeSensors(t, s);
  Integrate(t, s, keep_fields);
  if (again) SenseFirstEvaluation(t, s);
  EndPhase(s, Phase::kIntegration);
}

namespace {

// Positive ones.
bool AllZero(const double* x, int n) {
  uint64_t bits = 0;
  for (int i = 0; i < n; ++i) {
    uint64_t x_bits;
    __builtin_memcpy(&x_bits, x + i, sizeof(x_bits));
    bits |= x_bits;
  }
  return bits == 0;
}

bool HasNegativeZero(const double* x, int n) {
  bool found = false;
  for (int i = 0; i < n; ++i) {
    uint64_t x_bits;
    __builtin_memcpy(&x_bits, x + i, sizeof(x_bits));
    found |= x_bits == uint64_t{1} << 63;
  }
  return found;
}

void LoadNumbers(const Tables& t, Scratch& s, const Numbers* numbers) {
#define PYFASTENV_LANES_NUMBER(name, count, ...)                            \
  for (int i = 0; i < (t.Varies(Number::name) ? (count) : 0); ++i) {        \
    for (int l = 0; l < kWidth; ++l) At(s.name[i], l) = numbers[l].name[i]; \
  }
  PYFASTENV_LANES_NUMBERS(PYFASTENV_LANES_NUMBER)
  PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
}

void LoadAppliedForces(const Tables& t, Scratch& s, const double* const* rows) {
  const RowLayout& at = t.row;
  const unsigned before = s.applied;
  s.applied = 0;
  for (int l = 0; l < kWidth; ++l) {
    const double *forces = rows[l] + at.qfrc_applied, *wrenches = rows[l] + at.xfrc_applied;
    if (AllZero(forces, t.nv) && AllZero(wrenches, 6 * t.nbody)) continue;
    s.applied |= 1u << l;
    if (HasNegativeZero(forces, t.nv)) s.redo |= 1u << l;
  }
  if ((before | s.applied) == 0) return;
  for (int l = 0; l < kWidth; ++l) {
    for (int i = 0; i < t.nv; ++i) At(s.qfrc_applied[i], l) = rows[l][at.qfrc_applied + i];
    for (int i = 0; i < 6 * t.nbody; ++i) At(s.xfrc_applied[i], l) = rows[l][at.xfrc_applied + i];
  }
  s.redo |= BadNumbers(s.qfrc_applied, t.nv) | BadNumbers(s.xfrc_applied, 6 * t.nbody);
}

void Load(const Tables& t, void* scratch, const double* const* rows, int count,
          const Numbers* numbers) {
  Scratch& s = *static_cast<Scratch*>(scratch);
  if (numbers != nullptr) LoadNumbers(t, s, numbers);
  if (numbers != nullptr && t.WorldVaries()) PlaceWorld(t, s);
  const RowLayout& at = t.row;
  s.redo = kAllLanes & ~((1u << count) - 1);
  s.has_programs = t.programs != nullptr;
  for (int l = 0; l < kWidth; ++l) {
    const double* row = rows[l];
    s.time[l] = row[at.time];
    for (int i = 0; i < t.nq; ++i) At(s.qpos[i], l) = row[at.qpos + i];
    for (int i = 0; i < t.nv; ++i) At(s.qvel[i], l) = row[at.qvel + i];
    for (int i = 0; i < t.na; ++i) At(s.act[i], l) = row[at.act + i];
    for (int i = 0; i < t.nv; ++i) At(s.qacc_warmstart[i], l) = row[at.warmstart + i];
    for (int i = 0; i < t.nu; ++i) At(s.ctrl[i], l) = row[at.ctrl + i];
    for (int i = 0; i < 3 * t.nmocap; ++i) At(s.mocap_pos[i], l) = row[at.mocap_pos + i];
    for (int i = 0; i < 4 * t.nmocap; ++i) At(s.mocap_quat[i], l) = row[at.mocap_quat + i];
    for (int e = 0; e < t.num_equalities; ++e) {
      const unsigned active = row[at.eq_active + e] != 0 ? 1u << l : 0;
      s.equality_active[e] = (s.equality_active[e] & ~(1u << l)) | active;
    }
    // lanes make no negative zeros: what becomes of a caller's shows in zeros that are added
    if (HasNegativeZero(row + at.warmstart, t.nv)) s.redo |= 1u << l;
  }
  LoadAppliedForces(t, s, rows);
  s.redo |= BadNumbers(s.qacc_warmstart, t.nv);
}

void Store(const Tables& t, const void* scratch, int l, double* row) {
  const Scratch& s = *static_cast<const Scratch*>(scratch);
  const RowLayout& at = t.row;
  row[at.time] = s.time[l];
  for (int i = 0; i < t.nq; ++i) row[at.qpos + i] = At(s.qpos[i], l);
  for (int i = 0; i < t.nv; ++i) row[at.qvel + i] = At(s.qvel[i], l);
  for (int i = 0; i < t.na; ++i) row[at.act + i] = At(s.act[i], l);
  for (int i = 0; i < t.nv; ++i) row[at.warmstart + i] = At(s.qacc_warmstart[i], l);
}

void* Make(const Tables& t, void* memory, const NarrowPhaseCall& narrow_phase,
           const ConstraintCall& constraints) {
  Scratch* s = MakeScratch(t, memory);
  s->narrow_phase = narrow_phase;
  s->constraints = constraints;
  return s;
}

// What the caller has set: neither changes during the steps of a call.
void CheckInputs(const Tables& t, Scratch& s) {
  CheckControls(t, s);
  s.redo |= BadMocap(t, s);
}

unsigned RunForward(const Tables& t, void* scratch) {
  Scratch& s = *static_cast<Scratch*>(scratch);
  CheckInputs(t, s);
  Evaluate(t, s, /*keep_fields=*/true);
  return s.redo & kAllLanes;
}

unsigned RunSteps(const Tables& t, void* scratch, int num_steps, bool keep_fields, bool sensors) {
  Scratch& s = *static_cast<Scratch*>(scratch);
  if (s.phases != nullptr) s.phases->last = Ticks();
  CheckInputs(t, s);
  for (int k = 1; k <= num_steps; ++k) {
    const bool last = k == num_steps;
    Step(t, s, keep_fields && last, sensors && last);
  }
  return s.redo & kAllLanes;
}

void CountPhases(void* scratch, PhaseTicks* phases) {
  static_cast<Scratch*>(scratch)->phases = phases;
}

void RunRefresh(const Tables& t, void* scratch) { Refresh(t, *static_cast<Scratch*>(scratch)); }

void RunExternalForces(const Tables& t, void* scratch) {
  ExternalForces(t, *static_cast<Scratch*>(scratch));
}

void Read(const Tables& t, const void* scratch, Field field, int l, double* out) {
  const Scratch& s = *static_cast<const Scratch*>(scratch);
  switch (field) {
#define PYFASTENV_LANES_FIELD(name, entries, numbers)                          \
  case Field::name:                                                            \
    for (int i = 0; i < t.entries * (numbers); ++i) out[i] = At(s.name[i], l); \
    break;
    PYFASTENV_LANES_FIELDS(PYFASTENV_LANES_FIELD)
#undef PYFASTENV_LANES_FIELD
  }
}

void ReadSensors(const Tables& t, const void* scratch, int l, double* out) {
  const Scratch& s = *static_cast<const Scratch*>(scratch);
  for (int i = 0; i < t.sensors.num_data; ++i) out[i] = At(s.sensordata[i], l);
}

void ReadEvaluated(const Tables& t, const void* scratch, int l, double* time, double* qpos,
                   double* qvel) {
  const Scratch& s = *static_cast<const Scratch*>(scratch);
  *time = s.evaluated_time[l];
  for (int i = 0; i < t.nq; ++i) qpos[i] = At(s.evaluated_qpos[i], l);
  for (int i = 0; i < t.nv; ++i) qvel[i] = At(s.evaluated_qvel[i], l);
}

int CountContacts(const void* scratch, int l) {
  return static_cast<const Scratch*>(scratch)->contacts.count[l];
}

int RowsBefore(const Rows& rows, int end, int l) {
  int count = 0;
  for (int r = 0; r < end; ++r) count += static_cast<int>(rows.valid[r] >> l & 1);
  return count;
}

ContactView ReadContact(const void* scratch, int k, int l) {
  const Scratch& s = *static_cast<const Scratch*>(scratch);
  const Contacts& c = s.contacts;
  ContactView view{c.pair[k][l], At(c.dist[k], l), {}, {}, RowsBefore(s.rows, c.first_row[k], l)};
  for (int i = 0; i < 3; ++i) view.pos[i] = At(c.pos[3 * k + i], l);
  for (int i = 0; i < 9; ++i) view.frame[i] = At(c.frame[9 * k + i], l);
  return view;
}

int CountRows(const void* scratch, int l) {
  return static_cast<const Scratch*>(scratch)->rows.count[l];
}

RowView ReadRow(const Tables& t, const void* scratch, int k, int l) {
  const Rows& rows = static_cast<const Scratch*>(scratch)->rows;
  int r = 0;
  for (;; ++r) {
    if ((rows.valid[r] >> l & 1) != 0 && k-- == 0) break;
  }
  RowView view{};
  for (int i = 0; i < t.nv; ++i) view.J[i] = At(rows.J[r * t.nv + i], l);
  view.violation = At(rows.violation[r], l);
  view.R = At(rows.R[r], l);
  view.D = At(rows.D[r], l);
  view.aref = At(rows.aref[r], l);
  view.force = At(rows.force[r], l);
  return view;
}

void ReadForces(const void* scratch, int l, double* out) {
  const Rows& rows = static_cast<const Scratch*>(scratch)->rows;
  for (int r = 0; r < rows.max_count; ++r) {
    if ((rows.valid[r] >> l & 1) != 0) *out++ = At(rows.force[r], l);
  }
}

}  // namespace

extern const Kernels kKernels = {
    .width = kWidth,
    .scratch_bytes = ScratchBytes,
    .make_scratch = Make,
    .load = Load,
    .store = Store,
    .forward = RunForward,
    .step = RunSteps,
    .count_phases = CountPhases,
    .refresh = RunRefresh,
    .external_forces = RunExternalForces,
    .read = Read,
    .read_evaluated = ReadEvaluated,
    .read_sensors = ReadSensors,
    .count_contacts = CountContacts,
    .contact = ReadContact,
    .count_rows = CountRows,
    .row = ReadRow,
    .row_forces = ReadForces,
    .series_agrees = SeriesAgrees,
    .program_offsets = ProgramOffsets,
};

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
