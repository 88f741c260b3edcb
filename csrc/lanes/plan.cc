#include "lanes/plan.h"

#include <algorithm>

#include "lanes/features.h"
#include "lanes/number_access.h"
#include "lanes/self_check.h"

namespace pyfastenv::lanes {

namespace {

// Contacts and limits of one lane beyond which it falls back: a lying Humanoid has about 20
// contacts.
constexpr int kMaxContacts = 40;

bool IsOff(const mjModel& m, int flag) { return (m.opt.disableflags & flag) != 0; }

FixedFrame MakeFrame(int body, int same, const mjtNum* pos, const mjtNum* quat) {
  FixedFrame frame{body, same, {}, {}};
  std::copy_n(pos, 3, frame.pos);
  std::copy_n(quat, 4, frame.quat);
  return frame;
}

int LastDof(const mjModel& m, int body) {
  while (body > 0 && m.body_dofnum[body] == 0) body = m.body_parentid[body];
  return body > 0 ? m.body_dofadr[body] + m.body_dofnum[body] - 1 : -1;
}

uint64_t DofsThatMove(const mjModel& m, int body) {
  uint64_t dofs = 0;
  for (int i = LastDof(m, body); i >= 0; i = m.dof_parentid[i]) dofs |= uint64_t{1} << i;
  return dofs;
}

PairKind KindOf(int type1, int type2) {
  const bool capsule = type2 == mjGEOM_CAPSULE;
  if (type1 == mjGEOM_PLANE) return capsule ? PairKind::kPlaneCapsule : PairKind::kPlaneSphere;
  if (type1 == mjGEOM_SPHERE) return capsule ? PairKind::kSphereCapsule : PairKind::kSphereSphere;
  return PairKind::kCapsuleCapsule;
}

bool Same(const Surface& a, const Surface& b) {
  return a.condim == b.condim && a.margin == b.margin && a.softness == b.softness;
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
                      const std::vector<std::string>& fields) {
  PlanResult result = MakeUnchecked(model, kernels, fields);
  if (result.plan == nullptr) return result;
  std::string difference = SelfCheck(model, result.plan);
  if (difference.empty()) return result;
  return {nullptr, difference.insert(0, "lanes and mj_step differ on this machine, at ")};
}

PlanResult Plan::MakeUnchecked(const mjModel& model, const Kernels& kernels,
                               const std::vector<std::string>& fields) {
  std::string feature = UnsupportedFeature(model);
  if (feature.empty()) feature = UnsupportedField(model, fields);
  if (!feature.empty()) return {nullptr, feature.insert(0, "lanes do not do ")};
  return {std::shared_ptr<const Plan>(new Plan(model, kernels, fields)), {}};
}

Plan::Plan(const mjModel& m, const Kernels& kernels, const std::vector<std::string>& fields)
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
  AddFrictionLosses(m);
  AddLimits(m);
  AddPairs(m);
  ChooseSolverTree(m);
  DeriveNumbers();
  SetRowLayout(m);
  tables_.sine_by_series = kernels.series_agrees();
  programs_.Make(tables_, kernels_);
}

void Plan::SetSizes(const mjModel& m) {
  Tables& t = tables_;
  t.nq = static_cast<int>(m.nq);
  t.nv = static_cast<int>(m.nv);
  t.nu = static_cast<int>(m.nu);
  t.nout = static_cast<int>(m.nout);
  t.nbody = static_cast<int>(m.nbody);
  t.njnt = static_cast<int>(m.njnt);
  t.ngeom = static_cast<int>(m.ngeom);
  t.nsite = static_cast<int>(m.nsite);
  t.nC = static_cast<int>(m.nC);
  t.has_fluid = m.opt.density > 0 || m.opt.viscosity > 0;
  t.integrator = m.opt.integrator == mjINT_RK4            ? Integrator::kRungeKutta4
                 : m.opt.integrator == mjINT_IMPLICITFAST ? Integrator::kImplicitFast
                                                          : Integrator::kEuler;
  const bool damped =
      t.Varies(Number::dof_damping) ||
      std::any_of(m.dof_damping, m.dof_damping + m.nv, [](mjtNum x) { return x > 0; });
  t.implicit_damping =
      t.integrator == Integrator::kImplicitFast || (damped && !IsOff(m, mjDSBL_EULERDAMP));
  t.timestep = m.opt.timestep;
  t.solver = m.opt.solver == mjSOL_PGS ? Solver::kPGS : Solver::kNewton;
  t.iterations = m.opt.iterations;
  t.ls_iterations = m.opt.ls_iterations;
  t.tolerance = m.opt.tolerance;
  t.ls_tolerance = m.opt.ls_tolerance;
  t.impratio = m.opt.impratio;
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
  for (int column = 0; column < m.nv; ++column) {
    for (int row = static_cast<int>(m.nv) - 1; row > column; --row) {
      for (int a = m.M_rowadr[row]; a < m.M_rowadr[row] + m.M_rownnz[row] - 1; ++a) {
        if (m.M_colind[a] == column) M_below_.push_back({row, a});
      }
    }
    M_colend_.push_back(static_cast<int>(M_below_.size()));
  }
  tables_.M_rownnz = M_rownnz_.data();
  tables_.M_rowadr = M_rowadr_.data();
  tables_.M_colind = M_colind_.data();
  tables_.M_colend = M_colend_.data();
  tables_.M_below = M_below_.data();
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
    body.free = body.num_joints == 1 && m.jnt_type[body.first_joint] == mjJNT_FREE;
    body.same = m.body_sameframe[b];
    body.massless = m.body_subtreemass[b] < mjMINVAL;
    body.in_fluid = tables_.has_fluid && m.body_mass[b] >= mjMINVAL;
    bodies_.push_back(body);
  }
  for (int g = 0; g < m.ngeom; ++g) {
    geoms_.push_back(
        MakeFrame(m.geom_bodyid[g], m.geom_sameframe[g], m.geom_pos + 3 * g, m.geom_quat + 4 * g));
  }
  for (int i = 0; i < m.nsite; ++i) {
    sites_.push_back(
        MakeFrame(m.site_bodyid[i], m.site_sameframe[i], m.site_pos + 3 * i, m.site_quat + 4 * i));
  }
  tables_.body = bodies_.data();
  tables_.geom = geoms_.data();
  tables_.site = sites_.data();
}

void Plan::AddJoints(const mjModel& m) {
  for (int j = 0; j < m.njnt; ++j) {
    Joint joint{};
    joint.kind = m.jnt_type[j] == mjJNT_FREE    ? JointKind::kFree
                 : m.jnt_type[j] == mjJNT_SLIDE ? JointKind::kSlide
                                                : JointKind::kHinge;
    joint.body = m.jnt_bodyid[j];
    joint.qpos = m.jnt_qposadr[j];
    joint.dof = m.jnt_dofadr[j];
    joint.has_spring = joint.kind != JointKind::kFree &&
                       (tables_.Varies(Number::jnt_stiffness) || m.jnt_stiffness[j] != 0);
    joints_.push_back(joint);
    if (m.jnt_actfrclimited[j]) force_limits_.push_back({joint.dof, j});
  }
  for (int i = 0; i < m.nv; ++i) {
    dofs_.push_back({m.dof_bodyid[i], m.dof_parentid[i], m.dof_simplenum[i] != 0,
                     tables_.Varies(Number::dof_damping) || m.dof_damping[i] != 0});
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
    const int joint = m.actuator_trnid[2 * a];
    actuator.qpos = m.jnt_qposadr[joint];
    actuator.dof = m.jnt_dofadr[joint];
    actuator.has_bias = m.actuator_biastype[a] == mjBIAS_AFFINE;
    actuator.clamp_ctrl = m.actuator_ctrllimited[a] != 0 && !IsOff(m, mjDSBL_CLAMPCTRL);
    actuator.clamp_force = m.actuator_forcelimited[a] != 0;
    actuators_.push_back(actuator);
  }
  tables_.actuator = actuators_.data();
}

// All, or none if one is of another kind.
void Plan::AddTendons(const mjModel& m) {
  for (int i = 0; i < m.ntendon; ++i) {
    Tendon tendon{};
    tendon.num_terms = m.tendon_num[i];
    if (tendon.num_terms > Tendon::kMaxTerms) return;
    for (int k = 0; k < tendon.num_terms; ++k) {
      const int wrap = m.tendon_adr[i] + k;
      if (m.wrap_type[wrap] != mjWRAP_JOINT) return;
      const int joint = m.wrap_objid[wrap];
      tendon.qpos[k] = m.jnt_qposadr[joint];
      tendon.dof[k] = m.jnt_dofadr[joint];
      tendon.coef[k] = m.wrap_prm[wrap];
      if (k > 0 && tendon.dof[k] <= tendon.dof[k - 1]) return;
    }
    tendons_.push_back(tendon);
  }
  tables_.ntendon = static_cast<int>(tendons_.size());
  tables_.tendon = tendons_.data();
}

void Plan::AddFrictionLosses(const mjModel& m) {
  for (int i = 0; i < m.nv && !IsOff(m, mjDSBL_FRICTIONLOSS); ++i) {
    if (m.dof_frictionloss[i] == 0) continue;
    friction_losses_.push_back({i, derivation_.AddDofSoftness(tables_, i)});
  }
  tables_.friction_loss = friction_losses_.data();
  tables_.num_friction_losses = static_cast<int>(friction_losses_.size());
}

void Plan::AddLimits(const mjModel& m) {
  for (int j = 0; j < m.njnt && !IsOff(m, mjDSBL_LIMIT); ++j) {
    if (!m.jnt_limited[j]) continue;
    const int dof = m.jnt_dofadr[j];
    limits_.push_back({m.jnt_qposadr[j], dof, j, derivation_.AddJointSoftness(tables_, j)});
  }
  tables_.limit = limits_.data();
  tables_.num_limits = static_cast<int>(limits_.size());
}

void Plan::AddPairs(const mjModel& m) {
  for (const GeomPair& pair : CandidatePairs(m)) AddContactPair(m, pair.geom1, pair.geom2);
  tables_.pair = pairs_.data();
  tables_.num_pairs = static_cast<int>(pairs_.size());
  tables_.surface = surfaces_.data();
}

void Plan::AddContactPair(const mjModel& m, int geom1, int geom2) {
  const ContactSource contact = SourceOfContact(m, geom1, geom2);
  Pair pair{};
  pair.kind = KindOf(m.geom_type[geom1], m.geom_type[geom2]);
  pair.geom1 = geom1;
  pair.geom2 = geom2;
  pair.body1 = m.geom_bodyid[geom1];
  pair.body2 = m.geom_bodyid[geom2];
  pair.radius1 = m.geom_size[3 * geom1];
  pair.half_length1 = m.geom_size[3 * geom1 + 1];
  pair.radius2 = m.geom_size[3 * geom2];
  pair.half_length2 = m.geom_size[3 * geom2 + 1];
  pair.margin = m.geom_margin[geom1] + m.geom_margin[geom2];
  const double bound = m.geom_rbound[geom1] + m.geom_rbound[geom2] + pair.margin;
  pair.bound_squared = bound * bound;
  const uint64_t dofs1 = DofsThatMove(m, pair.body1), dofs2 = DofsThatMove(m, pair.body2);
  pair.dofs1 = dofs1 & ~dofs2;
  pair.dofs2 = dofs2 & ~dofs1;
  const int softness = derivation_.AddSoftness(tables_, contact);
  pair.surface = IndexOf(surfaces_, {contact.condim, pair.margin, softness});
  pairs_.push_back(pair);
  derivation_.AddPair(contact);
}

// The tree that contacts act on, or else that with dry friction, or else the first with limits, or
// else the first.
void Plan::ChooseSolverTree(const mjModel& m) {
  int tree = 0;
  if (!pairs_.empty()) {
    tree = std::max(m.body_treeid[pairs_[0].body1], m.body_treeid[pairs_[0].body2]);
  } else if (!friction_losses_.empty()) {
    tree = m.dof_treeid[friction_losses_[0].dof];
  } else if (!limits_.empty()) {
    tree = m.dof_treeid[limits_[0].dof];
  }
  Tables& t = tables_;
  t.first_solver_dof = m.tree_dofadr[tree];
  t.num_solver_dofs = m.tree_dofnum[tree];
  t.contact_root = m.body_rootid[m.tree_bodyadr[tree]];
  t.max_limit_rows = 2 * t.num_limits;
  t.max_contacts = std::min(kMaxContacts, 2 * t.num_pairs);
  t.max_rows = t.num_friction_losses + t.max_limit_rows + 4 * t.max_contacts;
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
                 offset(mjSTATE_WARMSTART),
                 offset(mjSTATE_CTRL),
                 offset(mjSTATE_QFRC_APPLIED),
                 offset(mjSTATE_XFRC_APPLIED)};
}

}  // namespace pyfastenv::lanes
