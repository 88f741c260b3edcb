#include "lanes/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "lanes/bounding_volumes.h"
#include "lanes/features.h"
#include "lanes/model_trees.h"
#include "lanes/number_access.h"
#include "lanes/self_check.h"
#include "mujoco/owned.h"

namespace pyfastenv::lanes {

namespace {

Dynamics DynamicsOf(const mjModel& m, int a) {
  switch (m.actuator_dyntype[a]) {
    case mjDYN_INTEGRATOR:
      return Dynamics::kIntegrator;
    case mjDYN_FILTER:
      return Dynamics::kFilter;
    case mjDYN_FILTEREXACT:
      return Dynamics::kFilterExact;
    case mjDYN_MUSCLE:
      return Dynamics::kMuscle;
    default:
      return Dynamics::kNone;
  }
}

ForceLaw GainOf(const mjModel& m, int a) {
  switch (m.actuator_gaintype[a]) {
    case mjGAIN_AFFINE:
      return ForceLaw::kAffine;
    case mjGAIN_MUSCLE:
      return ForceLaw::kMuscle;
    default:
      return ForceLaw::kFixed;
  }
}

ForceLaw BiasOf(const mjModel& m, int a) {
  switch (m.actuator_biastype[a]) {
    case mjBIAS_AFFINE:
      return ForceLaw::kAffine;
    case mjBIAS_MUSCLE:
      return ForceLaw::kMuscle;
    default:
      return ForceLaw::kNone;
  }
}

Muscle MuscleOf(const mjModel& m, int a) {
  Muscle r{};
  std::copy_n(m.actuator_lengthrange + ptrdiff_t{2} * a, 2, r.length_range);
  r.acc0 = m.actuator_acc0[a];
  std::copy_n(m.actuator_dynprm + ptrdiff_t{mjNDYN} * a, Muscle::kDynamics, r.dynamics);
  return r;
}

void SetDynamics(const mjModel& m, int a, Actuator& actuator) {
  actuator.dynamics = DynamicsOf(m, a);
  actuator.act = m.actuator_actadr[a];
  actuator.time_constant = std::max(mjMINVAL, m.actuator_dynprm[ptrdiff_t{mjNDYN} * a]);
  actuator.share = 1 - std::exp(-m.opt.timestep / actuator.time_constant);
  actuator.act_early = m.actuator_actearly[a] != 0;
  actuator.clamp_act = m.actuator_actlimited[a] != 0;
  const int group = m.actuator_group[a];
  actuator.disabled =
      group >= 0 && group <= 30 && (static_cast<unsigned>(m.opt.disableactuator) >> group & 1) != 0;
  std::copy_n(m.actuator_actrange + ptrdiff_t{2} * a, 2, actuator.act_range);
}

bool HasNegativeZero(const mjtNum* numbers, int count) {
  return std::any_of(numbers, numbers + count, [](mjtNum x) { return x == 0 && std::signbit(x); });
}

Polynomial MakePolynomial(const mjtNum* coefficients) {
  static_assert(Polynomial::kCount == mjNPOLY);
  Polynomial r{};
  std::copy_n(coefficients, mjNPOLY, r.coefficient);
  r.is_zero = std::all_of(r.coefficient, r.coefficient + mjNPOLY, [](double x) { return x == 0; });
  return r;
}

PairKind KindOf(const mjModel& m, const GeomPair& pair) {
  if (!HasOwnCollision(m, pair)) return PairKind::kOther;
  const int type1 = m.geom_type[pair.geom1], type2 = m.geom_type[pair.geom2];
  if (type2 == mjGEOM_BOX) return PairKind::kPlaneBox;
  if (type2 == mjGEOM_CYLINDER) return PairKind::kPlaneCylinder;
  const bool capsule = type2 == mjGEOM_CAPSULE;
  if (type1 == mjGEOM_PLANE) return capsule ? PairKind::kPlaneCapsule : PairKind::kPlaneSphere;
  if (type1 == mjGEOM_SPHERE) return capsule ? PairKind::kSphereCapsule : PairKind::kSphereSphere;
  return PairKind::kCapsuleCapsule;
}

int MostContacts(PairKind kind) {
  switch (kind) {
    case PairKind::kOther:
      return kMaxPointsOfPair;
    case PairKind::kPlaneBox:
    case PairKind::kPlaneCylinder:
      return 4;
    default:
      return 2;
  }
}

bool Same(const Surface& a, const Surface& b) {
  return a.condim == b.condim && a.softness == b.softness;
}

// The index of a value in a table, at whose end it is put if it is not there.
template <class T>
int IndexOf(std::vector<T>& table, const T& value) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const T& x) { return Same(x, value); });
  const auto index = found - table.begin();
  if (found == table.end()) table.push_back(value);
  return static_cast<int>(index);
}

}  // namespace

PlanResult Plan::Make(const mjModel& model, const Kernels& kernels,
                      const std::vector<std::string>& fields, const mjModel* whole,
                      Sensing sensing) {
  PlanResult result = MakeUnchecked(model, kernels, fields, whole, sensing);
  if (result.plan == nullptr) return result;
  std::string difference = SelfCheck(model, {&result.plan, 1});
  if (difference.empty()) return result;
  return {nullptr, std::move(difference)};
}

PlanResult Plan::MakeUnchecked(const mjModel& model, const Kernels& kernels,
                               const std::vector<std::string>& fields, const mjModel* whole,
                               Sensing sensing) {
  std::string feature = UnsupportedFeature(model);
  if (feature.empty()) feature = UnsupportedField(model, fields);
  if (!feature.empty()) return {nullptr, feature.insert(0, "lanes do not do ")};
  const mjModel& to_copy = whole != nullptr ? *whole : model;
  std::shared_ptr<const Plan> plan(new Plan(model, kernels, fields, to_copy, sensing));
  const Tables& tables = plan->tables();
  std::string number = Derivation::UnusualNumber(tables, tables.numbers, /*all=*/true);
  if (!number.empty()) return {nullptr, number.insert(0, "lanes do not do ")};
  return {std::move(plan), {}};
}

Plan::Plan(const mjModel& m, const Kernels& kernels, const std::vector<std::string>& fields,
           const mjModel& whole, Sensing sensing)
    : kernels_(kernels), derivation_(m) {
  uint64_t varied = 0;
  for (const std::string& field : fields) {
    fields_.push_back(FindNumber(field));
    varied |= uint64_t{1} << static_cast<int>(fields_.back());
  }
  tables_.varied = WithDerived(varied);
  SetSizes(m);
  SetNumbers(m);
  SetMatrix(m);
  AddBodies(m);
  AddJoints(m);
  AddActuators(m);
  AddTendons(m);
  AddEqualities(m);
  AddFrictionLosses(m);
  AddLimits(m);
  AddPairs(m, whole);
  SetConstrainedTrees(m);
  DeriveNumbers();
  SetRowLayout(m);
  if (sensing == Sensing::kYes) AddSensors(m, whole);
  tables_.sine_by_series = kernels.series_agrees();
  programs_.Make(tables_, kernels_);
}

void Plan::SetSizes(const mjModel& m) {
  Tables& t = tables_;
  t.nq = static_cast<int>(m.nq);
  t.nv = static_cast<int>(m.nv);
  t.na = static_cast<int>(m.na);
  t.nu = static_cast<int>(m.nu);
  t.nout = static_cast<int>(m.nout);
  t.nbody = static_cast<int>(m.nbody);
  t.nmocap = static_cast<int>(m.nmocap);
  t.njnt = static_cast<int>(m.njnt);
  t.ngeom = static_cast<int>(m.ngeom);
  t.nsite = static_cast<int>(m.nsite);
  for (int b = 0; b < m.nbody; ++b) {
    if (m.body_bvhnum[b] > 0)
      t.num_volumes = std::max(t.num_volumes, m.body_bvhadr[b] + m.body_bvhnum[b]);
  }
  t.nC = static_cast<int>(m.nC);
  t.nD = static_cast<int>(m.nD);
  if (TendonsMatter(m)) {
    t.has_spatial_tendons = SpatialTendonsPull(m);
    t.ntendon = static_cast<int>(m.ntendon);
    t.nJten = static_cast<int>(m.nJten);
    t.nwrap = static_cast<int>(m.nwrap);
  }
  t.has_fluid = m.opt.density > 0 || m.opt.viscosity > 0;
  t.has_wind = t.Varies(Number::opt_wind) ||
               std::any_of(m.opt.wind, m.opt.wind + 3, [](mjtNum x) { return x != 0; });
  const bool weightless = !t.Varies(Number::opt_gravity) && mju_norm3(m.opt.gravity) == 0;
  t.has_gravcomp = m.flg_gravcomp && !weightless && !IsOff(m, mjDSBL_GRAVITY);
  t.passive = !IsOff(m, mjDSBL_SPRING) || !IsOff(m, mjDSBL_DAMPER);
  t.actuation = !IsOff(m, mjDSBL_ACTUATION);
  t.starts_warm = !IsOff(m, mjDSBL_WARMSTART);
  t.integrator = m.opt.integrator == mjINT_RK4            ? Integrator::kRungeKutta4
                 : m.opt.integrator == mjINT_IMPLICITFAST ? Integrator::kImplicitFast
                                                          : Integrator::kEuler;
  const bool damped =
      t.Varies(Number::dof_damping) ||
      std::any_of(m.jnt_actuatorid, m.jnt_actuatorid + m.njnt, [](int a) { return a != -1; }) ||
      std::any_of(m.dof_damping, m.dof_damping + m.nv, [](mjtNum x) { return x > 0; }) ||
      std::any_of(m.dof_dampingpoly, m.dof_dampingpoly + mjNPOLY * m.nv,
                  [](mjtNum x) { return x != 0; });
  t.implicit_damping = t.integrator == Integrator::kImplicitFast ||
                       (damped && !IsOff(m, mjDSBL_EULERDAMP) && !IsOff(m, mjDSBL_DAMPER));
  t.timestep = m.opt.timestep;
  t.solver = m.opt.solver == mjSOL_PGS ? Solver::kPGS : Solver::kNewton;  // UnsupportedFeature
  t.iterations = m.opt.iterations;
  t.ls_iterations = m.opt.ls_iterations;
  t.tolerance = m.opt.tolerance;
  t.ls_tolerance = m.opt.ls_tolerance;
  t.noslip_iterations = m.opt.noslip_iterations;
  t.noslip_tolerance = m.opt.noslip_tolerance;
  t.elliptic = m.opt.cone == mjCONE_ELLIPTIC;
  t.impratio = m.opt.impratio;
  t.asks_for_constraints = AsksForConstraints(m);
}

// Copies mjModel's.
void Plan::SetNumbers(const mjModel& m) {
  std::vector<size_t> places;
  for (int i = 0; i < static_cast<int>(Number::kCount); ++i) {
    const auto number = static_cast<Number>(i);
    places.push_back(model_numbers_.size());
    const mjtNum* values = Get(m, number);
    if (values == nullptr) continue;  // derived, or an array of nothing
    model_numbers_.insert(model_numbers_.end(), values, values + CountOf(tables_, number));
  }
  for (size_t i = 0; i < places.size(); ++i) {
    Set(tables_.numbers, static_cast<Number>(i), model_numbers_.data() + places[i]);
  }
}

void Plan::DeriveNumbers() {
  Tables& t = tables_;
  t.num_softness = derivation_.num_softness();
  derived_numbers_.resize(Derivation::Size(t));
  derivation_.Run(t, ~uint64_t{0}, t.numbers, derived_numbers_.data());
}

void Plan::SetMatrix(const mjModel& m) {
  M_rownnz_.assign(m.M_rownnz, m.M_rownnz + m.nv);
  M_rowadr_.assign(m.M_rowadr, m.M_rowadr + m.nv);
  M_colind_.assign(m.M_colind, m.M_colind + m.nC);
  tables_.M_rownnz = M_rownnz_.data();
  tables_.M_rowadr = M_rowadr_.data();
  tables_.M_colind = M_colind_.data();
  D_ = {{m.D_rownnz, m.D_rownnz + m.nv},
        {m.D_rowadr, m.D_rowadr + m.nv},
        {m.D_colind, m.D_colind + m.nD}};
  D_diag_.assign(m.D_diag, m.D_diag + m.nv);
  mapD2M_.assign(m.mapD2M, m.mapD2M + m.nC);
  tables_.D = D_.view();
  tables_.D_diag = D_diag_.data();
  tables_.mapD2M = mapD2M_.data();
}

void Plan::AddBodies(const mjModel& m) {
  for (int b = 0; b < m.nbody; ++b) {
    Body body{};
    body.parent = m.body_parentid[b];
    body.root = m.body_rootid[b];
    body.first_joint = m.body_jntadr[b];
    body.num_joints = m.body_jntnum[b];
    body.first_dof = m.body_dofadr[b];
    body.num_dofs = m.body_dofnum[b];
    body.last_dof = LastDof(m, b);
    body.mocap = m.body_mocapid[b];
    body.free = body.num_joints == 1 && m.jnt_type[body.first_joint] == mjJNT_FREE;
    const bool single = body.free && m.tree_dofnum[m.body_treeid[b]] == 6;
    if (single && tables_.integrator == Integrator::kImplicitFast) {
      free_bodies_.push_back({b, body.first_dof});
    }
    body.same = m.body_sameframe[b];
    body.massless = m.body_subtreemass[b] < mjMINVAL;
    body.gravcomp =
        tables_.has_gravcomp && (tables_.Varies(Number::body_gravcomp) || m.body_gravcomp[b] != 0);
    body.in_fluid = tables_.has_fluid && m.body_mass[b] >= mjMINVAL;
    bodies_.push_back(body);
  }
  for (int g = 0; g < m.ngeom; ++g) {
    geoms_.push_back({m.geom_bodyid[g], m.geom_sameframe[g]});
    GeomBounds bounds{{}, {}, m.geom_rbound[g]};
    std::copy_n(m.geom_aabb + ptrdiff_t{6} * g, 3, bounds.center);
    std::copy_n(m.geom_aabb + ptrdiff_t{6} * g + 3, 3, bounds.half);
    bounds_.push_back(bounds);
  }
  for (int i = 0; i < m.nsite; ++i) {
    sites_.push_back({m.site_bodyid[i], m.site_sameframe[i]});
  }
  tables_.body = bodies_.data();
  tables_.free_body = free_bodies_.data();
  tables_.num_free_bodies = static_cast<int>(free_bodies_.size());
  tables_.geom = geoms_.data();
  tables_.bounds = bounds_.data();
  tables_.site = sites_.data();
}

void Plan::AddJoints(const mjModel& m) {
  for (int j = 0; j < m.njnt; ++j) {
    Joint joint{};
    joint.kind = m.jnt_type[j] == mjJNT_FREE    ? JointKind::kFree
                 : m.jnt_type[j] == mjJNT_BALL  ? JointKind::kBall
                 : m.jnt_type[j] == mjJNT_SLIDE ? JointKind::kSlide
                                                : JointKind::kHinge;
    joint.body = m.jnt_bodyid[j];
    joint.qpos = m.jnt_qposadr[j];
    joint.dof = m.jnt_dofadr[j];
    joint.spring = MakePolynomial(m.jnt_stiffnesspoly + ptrdiff_t{mjNPOLY} * j);
    joint.has_spring =
        !IsOff(m, mjDSBL_SPRING) &&
        (tables_.Varies(Number::jnt_stiffness) || m.jnt_stiffness[j] != 0 || !joint.spring.is_zero);
    joint.act_gravcomp = tables_.has_gravcomp && m.jnt_actgravcomp[j];
    joint.negative_zeros = tables_.Varies(Number::jnt_pos) || tables_.Varies(Number::jnt_axis) ||
                           HasNegativeZero(m.jnt_pos + ptrdiff_t{3} * j, 3) ||
                           HasNegativeZero(m.jnt_axis + ptrdiff_t{3} * j, 3);
    joints_.push_back(joint);
    if (m.jnt_actfrclimited[j]) force_limits_.push_back({joint.dof, j});
  }
  for (int i = 0; i < m.nv; ++i) {
    const OfActuators more =
        FromActuators(m, mjOBJ_JOINT, m.dof_jntid[i], m.dof_dampingpoly + ptrdiff_t{mjNPOLY} * i);
    const Polynomial damper = MakePolynomial(more.dampingpoly);
    const bool has_damper =
        !IsOff(m, mjDSBL_DAMPER) && (tables_.Varies(Number::dof_damping) ||
                                     m.dof_damping[i] + more.damping != 0 || !damper.is_zero);
    const Joint& joint = joints_[static_cast<size_t>(m.dof_jntid[i])];
    const bool turns =
        joint.kind == JointKind::kBall || (joint.kind == JointKind::kFree && i >= joint.dof + 3);
    dofs_.push_back({m.dof_bodyid[i], m.dof_parentid[i], m.dof_simplenum[i] != 0, turns, has_damper,
                     m.dof_jntid[i], damper, more.damping, more.armature});
  }
  tables_.joint = joints_.data();
  tables_.dof = dofs_.data();
  tables_.force_limit = force_limits_.data();
  tables_.num_force_limits = static_cast<int>(force_limits_.size());
}

void Plan::AddActuators(const mjModel& m) {
  if (m.nu == 0) force_limits_.clear();
  for (int a = 0; a < m.nu; ++a) {
    Actuator actuator{};
    const int target = m.actuator_trnid[2 * a];
    moment_.rowadr.push_back(static_cast<int>(moment_.colind.size()));
    actuator.force_limited_joint = -1;
    if (m.actuator_trntype[a] == mjTRN_SITE) {
      actuator.transmission = Transmission::kSite;
      actuator.target = target;
      tables_.uses_site_velocities |=
          m.actuator_gaintype[a] != mjGAIN_FIXED || m.actuator_biastype[a] != mjBIAS_NONE;
      const std::vector<int> dofs = DofsThatMove(m, m.site_bodyid[target]);
      moment_.colind.insert(moment_.colind.end(), dofs.begin(), dofs.end());
    } else if (m.actuator_trntype[a] == mjTRN_TENDON) {
      actuator.transmission = Transmission::kTendon;
      actuator.target = target;
      const int* dofs = m.ten_J_colind + m.ten_J_rowadr[target];
      moment_.colind.insert(moment_.colind.end(), dofs, dofs + m.ten_J_rownnz[target]);
    } else {
      const bool free = m.jnt_type[target] == mjJNT_FREE, ball = m.jnt_type[target] == mjJNT_BALL;
      actuator.transmission = free   ? Transmission::kFreeJoint
                              : ball ? Transmission::kBall
                                     : Transmission::kJoint;
      actuator.target = m.jnt_qposadr[target];
      actuator.ball = target;
      actuator.in_parent = m.actuator_trntype[a] == mjTRN_JOINTINPARENT;
      joints_[static_cast<size_t>(target)].driven = ball;
      if (m.jnt_actfrclimited[target]) actuator.force_limited_joint = target;
      const int dofs = free ? 6 : ball ? 3 : 1;
      for (int k = 0; k < dofs; ++k) moment_.colind.push_back(m.jnt_dofadr[target] + k);
    }
    moment_.rownnz.push_back(static_cast<int>(moment_.colind.size()) - moment_.rowadr.back());
    SetDynamics(m, a, actuator);
    actuator.gain = GainOf(m, a);
    actuator.bias = BiasOf(m, a);
    actuator.muscle = MuscleOf(m, a);
    actuator.clamp_ctrl = m.actuator_ctrllimited[a] != 0 && !IsOff(m, mjDSBL_CLAMPCTRL);
    actuator.clamp_force = m.actuator_forcelimited[a] != 0;
    actuators_.push_back(actuator);
  }
  tables_.actuator = actuators_.data();
  tables_.moment = moment_.view();
  tables_.nJmom = static_cast<int>(moment_.colind.size());
}

void Plan::AddTendons(const mjModel& m) {
  const Tables& t = tables_;
  for (int i = 0; i < t.ntendon; ++i) {
    Tendon tendon{};
    tendon.spring = MakePolynomial(m.tendon_stiffnesspoly + ptrdiff_t{mjNPOLY} * i);
    const OfActuators more =
        FromActuators(m, mjOBJ_TENDON, i, m.tendon_dampingpoly + ptrdiff_t{mjNPOLY} * i);
    tendon.more_damping = more.damping;
    tendon.more_armature = more.armature;
    tendon.damper = MakePolynomial(more.dampingpoly);
    tendon.has_spring =
        !IsOff(m, mjDSBL_SPRING) && (t.Varies(Number::tendon_stiffness) ||
                                     m.tendon_stiffness[i] != 0 || !tendon.spring.is_zero);
    tendon.has_damper = !IsOff(m, mjDSBL_DAMPER) &&
                        (t.Varies(Number::tendon_damping) ||
                         m.tendon_damping[i] + more.damping != 0 || !tendon.damper.is_zero);
    tendon.has_armature =
        t.Varies(Number::tendon_armature) || m.tendon_armature[i] + more.armature != 0;
    tendon.limits_force = m.tendon_actfrclimited[i] != 0;
    std::copy_n(m.tendon_actfrcrange + ptrdiff_t{2} * i, 2, tendon.force_range);
    tendons_.push_back(tendon);
    if (m.wrap_type[m.tendon_adr[i]] == mjWRAP_JOINT) {
      AddTendonTerms(m, i);
    } else {
      AddTendonPieces(m, i);
    }
  }
  ten_J_ = {{m.ten_J_rownnz, m.ten_J_rownnz + t.ntendon},
            {m.ten_J_rowadr, m.ten_J_rowadr + t.ntendon},
            {m.ten_J_colind, m.ten_J_colind + t.nJten}};
  tables_.tendon = tendons_.data();
  tables_.tendon_term = tendon_terms_.data();
  tables_.tendon_piece = tendon_pieces_.data();
  tables_.ten_J = ten_J_.view();
  if (!t.has_spatial_tendons) return;
  moves_.assign(static_cast<size_t>(m.nbody * m.nv), 0);
  for (int b = 0; b < m.nbody; ++b) {
    for (const int i : DofsThatMove(m, b)) moves_[static_cast<size_t>(b * m.nv + i)] = 1;
  }
  tables_.moves = moves_.data();
}

void Plan::AddTendonTerms(const mjModel& m, int i) {
  Tendon& tendon = tendons_.back();
  tendon.first_term = m.tendon_adr[i];
  tendon.num_terms = m.tendon_num[i];
  tendon_terms_.resize(static_cast<size_t>(tendon.first_term));
  const int* begin = m.ten_J_colind + m.ten_J_rowadr[i];
  const int* end = begin + m.ten_J_rownnz[i];
  for (int k = tendon.first_term; k < tendon.first_term + tendon.num_terms; ++k) {
    const int joint = m.wrap_objid[k];
    const int* entry = std::find(begin, end, m.jnt_dofadr[joint]);
    tendon_terms_.push_back({m.jnt_qposadr[joint], static_cast<int>(entry - m.ten_J_colind)});
  }
}

void Plan::AddTendonPieces(const mjModel& m, int i) {
  const auto point = [&](int index, const int* body_of) {
    return TendonPoint{index, body_of[index]};
  };
  Tendon& tendon = tendons_.back();
  tendon.first_piece = static_cast<int>(tendon_pieces_.size());
  const int end = m.tendon_adr[i] + m.tendon_num[i];
  double divisor = 1;
  for (int k = m.tendon_adr[i]; k + 1 < end; ++k) {
    if (m.wrap_type[k] == mjWRAP_PULLEY) divisor = m.wrap_prm[k];
    if (m.wrap_type[k] != mjWRAP_SITE || m.wrap_type[k + 1] == mjWRAP_PULLEY) continue;
    TendonPiece piece{};
    piece.site1 = point(m.wrap_objid[k], m.site_bodyid);
    piece.geom.index = -1;
    piece.divisor = divisor;
    if (m.wrap_type[k + 1] != mjWRAP_SITE) {
      ++k;  // to the geom, which stands between two sites
      piece.geom = point(m.wrap_objid[k], m.geom_bodyid);
      piece.shape = m.wrap_type[k];
      piece.is_cylinder = piece.shape == mjWRAP_CYLINDER;
      piece.radius = m.geom_size[3 * piece.geom.index];
      piece.side = SideSite(m, k);
      derivation_.KeepShape(piece.geom.index);
    }
    piece.site2 = point(m.wrap_objid[k + 1], m.site_bodyid);
    tendon_pieces_.push_back(piece);
  }
  tendon.num_pieces = static_cast<int>(tendon_pieces_.size()) - tendon.first_piece;
}

void Plan::AddPairs(const mjModel& m, const mjModel& whole) {
  const std::vector<GeomPair> pairs = CandidatePairs(m);
  if (tables_.asks_for_constraints) KeepModel(whole);
  if (pairs.empty()) return;
  const BoundingVolumes volumes(m, FixedShapes(m));
  bool asks_mujoco = false;
  for (const GeomPair& geoms : pairs) {
    AddContactPair(m, geoms, volumes);
    const Pair& pair = pairs_.back();
    asks_mujoco = asks_mujoco || pair.kind == PairKind::kOther || !pair.all_seen;
  }
  tables_.pair = pairs_.data();
  tables_.num_pairs = static_cast<int>(pairs_.size());
  tables_.surface = surfaces_.data();
  if (!asks_mujoco) return;
  KeepModel(whole);
  derivation_.SetVolumes(kept_model_);
}

void Plan::KeepModel(const mjModel& whole) {
  if (kept_model_ != nullptr) return;
  kept_model_ = CopyModel(whole);
}

namespace {

// Of shapes that overlap, only a plane's distance is exact, and a sphere's or capsule's from a
// height field's prism, unless its center or segment is inside.
double ExactAbove(const mjModel& m, int geom1, int geom2) {
  const int type1 = m.geom_type[geom1], type2 = m.geom_type[geom2];
  if (type1 == mjGEOM_PLANE) return -std::numeric_limits<double>::infinity();
  const bool round = type2 == mjGEOM_SPHERE || type2 == mjGEOM_CAPSULE;
  if (type1 != mjGEOM_HFIELD || !round || (m.opt.disableflags & mjDSBL_NATIVECCD) != 0) return 0;
  return 2 * m.opt.ccd_tolerance - m.geom_size[ptrdiff_t{3} * geom2];
}

}  // namespace

void Plan::AddContactPair(const mjModel& m, const GeomPair& geoms, const BoundingVolumes& volumes) {
  const int geom1 = geoms.geom1, geom2 = geoms.geom2;
  const ContactSource contact = SourceOfContact(m, geoms);
  Pair pair{};
  pair.kind = KindOf(m, geoms);
  pair.geom1 = geom1;
  pair.geom2 = geom2;
  pair.body1 = m.geom_bodyid[geom1];
  pair.body2 = m.geom_bodyid[geom2];
  pair.plane = m.geom_type[geom1] == mjGEOM_PLANE;
  pair.reach = contact.margin + contact.gap;
  const Sight sight = volumes.Of(m, geoms, pair.reach);
  pair.all_seen = sight.distance == std::numeric_limits<double>::infinity();
  pair.rounding = sight.rounding;
  pair.swept = sight.swept;
  pair.exact = ExactAbove(m, geom1, geom2);
  pair.apart = volumes.ApartFrom(m, geoms, pair.reach);
  pair.trees = TreeOf(m, pair.body1) | TreeOf(m, pair.body2);
  if (!tables_.asks_for_constraints) {
    const uint64_t dofs1 = MaskOf(DofsThatMove(m, pair.body1));
    const uint64_t dofs2 = MaskOf(DofsThatMove(m, pair.body2));
    pair.dofs1 = dofs1 & ~dofs2;
    pair.dofs2 = dofs2 & ~dofs1;
  }
  const int softness = derivation_.AddSoftness(tables_, contact);
  pair.surface = IndexOf(surfaces_, {contact.condim, softness});
  pairs_.push_back(pair);
  derivation_.AddPair(contact);
  if (pair.plane) derivation_.KeepVolumes(geom1);
  if (pair.kind == PairKind::kOther) {
    derivation_.KeepShape(geom1);
    derivation_.KeepShape(geom2);
  }
}

void Plan::SetConstrainedTrees(const mjModel& m) {
  uint64_t trees = 0;
  const bool own = tables_.Varies(Number::wrap_prm);
  for (const Equality& equality : equalities_) trees |= equality.trees;
  for (const FrictionLoss& loss : friction_losses_) {
    trees |=
        loss.tendon >= 0 ? TreesOfTendon(m, loss.tendon, own) : TreeOf(m, m.dof_bodyid[loss.dof]);
  }
  for (const Limit& limit : limits_) trees |= limit.trees;
  for (const Pair& pair : pairs_) trees |= pair.trees;
  Tables& t = tables_;
  t.several_trees = !t.asks_for_constraints && (trees & (trees - 1)) != 0;
  dof_tree_.assign(m.dof_treeid, m.dof_treeid + m.nv);
  t.dof_tree = dof_tree_.data();
  const int tree = trees == 0 ? 0 : std::countr_zero(trees);
  t.first_solver_dof = m.tree_dofadr[tree];
  t.num_solver_dofs = m.tree_dofnum[tree];
  t.max_limit_rows = 2 * t.num_limits;
  const int limit = MaxContacts(m);
  const auto most_contacts = [limit](int sum, const Pair& pair) {
    return std::min(limit, sum + MostContacts(pair.kind));
  };
  t.max_contacts = std::accumulate(pairs_.begin(), pairs_.end(), 0, most_contacts);
  for (const Surface& surface : surfaces_) {
    t.rows_of_contact = std::max(t.rows_of_contact, RowsOfContact(t, surface.condim));
  }
  t.max_rows = FixedContactRow(t, t.max_contacts);
}

void Plan::SetRowLayout(const mjModel& m) {
  // a row holds the components in the order of their bits
  const auto offset = [&](int component) {
    return static_cast<int>(mj_stateSize(&m, mjSTATE_INTEGRATION & (component - 1)));
  };
  tables_.row = {static_cast<int>(mj_stateSize(&m, mjSTATE_INTEGRATION)),
                 offset(mjSTATE_TIME),
                 offset(mjSTATE_QPOS),
                 offset(mjSTATE_QVEL),
                 offset(mjSTATE_ACT),
                 offset(mjSTATE_WARMSTART),
                 offset(mjSTATE_CTRL),
                 offset(mjSTATE_EQ_ACTIVE),
                 offset(mjSTATE_MOCAP_POS),
                 offset(mjSTATE_MOCAP_QUAT),
                 offset(mjSTATE_QFRC_APPLIED),
                 offset(mjSTATE_XFRC_APPLIED)};
}

}  // namespace pyfastenv::lanes
