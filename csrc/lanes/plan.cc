#include "lanes/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <new>
#include <numeric>

#include "lanes/features.h"
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

// mj_inertiaBoxFluidModel's constants.
void SetFluid(const mjModel& m, int b, Body& body) {
  const double density = m.opt.density, viscosity = m.opt.viscosity;
  body.in_fluid = (density > 0 || viscosity > 0) && body.mass >= mjMINVAL;
  if (!body.in_fluid) return;
  const mjtNum* inertia = m.body_inertia + 3 * b;
  double box[3];
  for (int i = 0; i < 3; ++i) {
    const int j = i == 0 ? 1 : 0, k = i == 2 ? 1 : 2;
    box[i] = std::sqrt(std::max(mjMINVAL, inertia[j] + inertia[k] - inertia[i]) / body.mass * 6.0);
  }
  if (viscosity > 0) {
    const double diameter = (box[0] + box[1] + box[2]) / 3.0;
    body.viscous_torque = -mjPI * diameter * diameter * diameter * viscosity;
    body.viscous_force = -3.0 * mjPI * diameter * viscosity;
  }
  if (density > 0) {
    for (int i = 0; i < 3; ++i) {
      const double j = box[i == 0 ? 1 : 0], k = box[i == 2 ? 1 : 2];
      body.quadratic_force[i] = 0.5 * density * j * k;
      body.quadratic_torque[i] = density * box[i] * (j * j * j * j + k * k * k * k);
    }
  }
}

// mj_makeImpedance's constants of one solref and solimp.
Softness MakeSoftness(const mjModel& m, const mjtNum* solref, const mjtNum* solimp) {
  double ref[2] = {solref[0], solref[1]};
  if (!IsOff(m, mjDSBL_REFSAFE) && ref[0] > 0) ref[0] = std::max(ref[0], 2 * m.opt.timestep);
  const auto impedance = [](double x) { return std::min(mjMAXIMP, std::max(mjMINIMP, x)); };
  Softness s{};
  s.d0 = impedance(solimp[0]);
  s.dwidth = impedance(solimp[1]);
  s.width = std::max(0.0, solimp[2]);
  s.midpoint = impedance(solimp[3]);
  s.rise = 1 / s.midpoint;
  s.fall = 1 / (1 - s.midpoint);
  if (ref[0] > 0) {
    s.stiffness = 1 / std::max(mjMINVAL, s.dwidth * s.dwidth * ref[0] * ref[0] * ref[1] * ref[1]);
    s.damping = 2 / std::max(mjMINVAL, s.dwidth * ref[0]);
  } else {
    s.stiffness = -ref[0] / std::max(mjMINVAL, s.dwidth * s.dwidth);
    s.damping = -ref[1] / std::max(mjMINVAL, s.dwidth);
  }
  if (s.d0 == s.dwidth || s.width <= mjMINVAL) {  // flat
    s.d0 = s.dwidth = 0.5 * (s.d0 + s.dwidth);
    s.width = std::numeric_limits<double>::infinity();
  }
  return s;
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

// Whether MuJoCo tries a body against all others: the world, and fixed bodies that have planes.
bool CollidesAlways(const mjModel& m, int body) {
  const int* types = m.geom_type + m.body_geomadr[body];
  return body == 0 || (m.body_dofnum[m.body_weldid[body]] == 0 &&
                       std::find(types, types + m.body_geomnum[body], mjGEOM_PLANE) !=
                           types + m.body_geomnum[body]);
}

bool Same(const Surface& a, const Surface& b) {
  return a.condim == b.condim && a.friction == b.friction && a.margin == b.margin &&
         a.softness == b.softness;
}

bool Same(const Softness& a, const Softness& b) {
  return a.d0 == b.d0 && a.dwidth == b.dwidth && a.width == b.width && a.midpoint == b.midpoint &&
         a.stiffness == b.stiffness && a.damping == b.damping;
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

PlanResult Plan::Make(const mjModel& model, const Kernels& kernels, const mjModel* whole) {
  PlanResult result = MakeUnchecked(model, kernels, whole);
  if (result.plan == nullptr) return result;
  std::string difference = SelfCheck(model, result.plan);
  if (difference.empty()) return result;
  return {nullptr, difference.insert(0, "lanes and mj_step differ on this machine, at ")};
}

PlanResult Plan::MakeUnchecked(const mjModel& model, const Kernels& kernels, const mjModel* whole) {
  std::string feature = UnsupportedFeature(model);
  if (!feature.empty()) return {nullptr, feature.insert(0, "lanes do not do ")};
  return {std::shared_ptr<const Plan>(new Plan(model, kernels, whole != nullptr ? *whole : model)),
          {}};
}

Plan::Plan(const mjModel& m, const Kernels& kernels, const mjModel& whole) : kernels_(kernels) {
  SetSizes(m);
  SetMatrix(m);
  AddBodies(m);
  AddJoints(m);
  AddActuators(m);
  AddTendons(m);
  AddLimits(m);
  AddPairs(m, whole);
  SetConstrainedTrees(m);
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
  for (int i = 0; i < 3; ++i) t.gravity[i] = IsOff(m, mjDSBL_GRAVITY) ? 0 : m.opt.gravity[i];
  t.has_fluid = m.opt.density > 0 || m.opt.viscosity > 0;
  t.integrator = m.opt.integrator == mjINT_RK4            ? Integrator::kRungeKutta4
                 : m.opt.integrator == mjINT_IMPLICITFAST ? Integrator::kImplicitFast
                                                          : Integrator::kEuler;
  const bool damped =
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
    std::copy_n(m.body_pos + 3 * b, 3, body.pos);
    std::copy_n(m.body_quat + 4 * b, 4, body.quat);
    body.mass = m.body_mass[b];
    std::copy_n(m.body_inertia + 3 * b, 3, body.inertia);
    body.inverse_subtree_mass = m.body_subtreemass[b] < mjMINVAL ? 0 : 1.0 / m.body_subtreemass[b];
    SetFluid(m, b, body);
    bodies_.push_back(body);
    inertias_.push_back(
        MakeFrame(b, m.body_sameframe[b], m.body_ipos + 3 * b, m.body_iquat + 4 * b));
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
  tables_.inertia = inertias_.data();
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
    std::copy_n(m.jnt_axis + 3 * j, 3, joint.axis);
    std::copy_n(m.jnt_pos + 3 * j, 3, joint.pos);
    joint.qpos0 = m.qpos0[joint.qpos];
    joint.stiffness = m.jnt_stiffness[j];
    joint.qpos_spring = m.qpos_spring[joint.qpos];
    joints_.push_back(joint);
    if (m.jnt_actfrclimited[j]) {
      force_limits_.push_back(
          {joint.dof, {m.jnt_actfrcrange[2 * j], m.jnt_actfrcrange[2 * j + 1]}});
    }
  }
  for (int i = 0; i < m.nv; ++i) {
    dofs_.push_back({m.dof_bodyid[i], m.dof_parentid[i], m.dof_simplenum[i] != 0, m.dof_M0[i],
                     m.dof_armature[i], m.dof_damping[i]});
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
    actuator.gear = m.actuator_gear[6 * a];
    actuator.gain = m.actuator_gainprm[mjNGAIN * a];
    actuator.has_bias = m.actuator_biastype[a] == mjBIAS_AFFINE;
    std::copy_n(m.actuator_biasprm + mjNBIAS * a, 3, actuator.bias);
    actuator.clamp_ctrl = m.actuator_ctrllimited[a] != 0 && !IsOff(m, mjDSBL_CLAMPCTRL);
    std::copy_n(m.actuator_ctrlrange + 2 * a, 2, actuator.ctrl_range);
    actuator.clamp_force = m.actuator_forcelimited[a] != 0;
    std::copy_n(m.actuator_forcerange + 2 * a, 2, actuator.force_range);
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

void Plan::AddLimits(const mjModel& m) {
  const bool off = IsOff(m, mjDSBL_CONSTRAINT) || IsOff(m, mjDSBL_LIMIT);
  for (int j = 0; j < m.njnt && !off; ++j) {
    if (!m.jnt_limited[j]) continue;
    const int dof = m.jnt_dofadr[j];
    limits_.push_back({m.jnt_qposadr[j],
                       dof,
                       {m.jnt_range[2 * j], m.jnt_range[2 * j + 1]},
                       m.jnt_margin[j],
                       m.dof_invweight0[dof],
                       IndexOf(softnesses_, MakeSoftness(m, m.jnt_solref + mjNREF * j,
                                                         m.jnt_solimp + mjNIMP * j))});
  }
  tables_.limit = limits_.data();
  tables_.num_limits = static_cast<int>(limits_.size());
}

void Plan::AddPairs(const mjModel& m, const mjModel& whole) {
  bool all_own = true;
  for (const GeomPair& pair : CandidatePairs(m)) {
    AddContactPair(m, pair);
    all_own = all_own && pairs_.back().kind != PairKind::kOther;
  }
  tables_.pair = pairs_.data();
  tables_.num_pairs = static_cast<int>(pairs_.size());
  tables_.surface = surfaces_.data();
  tables_.softness = softnesses_.data();
  if (all_own) return;
  collision_model_ = {mj_copyModel(nullptr, &whole),
                      [](const mjModel* copy) { mj_deleteModel(const_cast<mjModel*>(copy)); }};
  if (collision_model_ == nullptr) throw std::bad_alloc();
}

void Plan::AddContactPair(const mjModel& m, const GeomPair& geoms) {
  const int geom1 = geoms.geom1, geom2 = geoms.geom2;
  const ContactParameters contact = CombineGeoms(m, geoms);
  Pair pair{};
  pair.kind = KindOf(m, geoms);
  pair.geom1 = geom1;
  pair.geom2 = geom2;
  pair.body1 = m.geom_bodyid[geom1];
  pair.body2 = m.geom_bodyid[geom2];
  pair.radius1 = m.geom_size[3 * geom1];
  pair.half_length1 = m.geom_size[3 * geom1 + 1];
  pair.radius2 = m.geom_size[3 * geom2];
  pair.half_length2 = m.geom_size[3 * geom2 + 1];
  std::copy_n(m.geom_size + ptrdiff_t{3} * geom2, 3, pair.half_sizes2);
  pair.margin = contact.margin;
  pair.reach = contact.margin + contact.gap;
  pair.plane = m.geom_type[geom1] == mjGEOM_PLANE;
  pair.swept =
      geoms.explicit_pair < 0 && !CollidesAlways(m, pair.body1) && !CollidesAlways(m, pair.body2);
  const double rbound1 = m.geom_rbound[geom1], rbound2 = m.geom_rbound[geom2];
  const bool bounded = rbound2 > 0 && (pair.plane || rbound1 > 0);
  pair.bound = !bounded     ? std::numeric_limits<double>::infinity()
               : pair.plane ? pair.reach + rbound2
                            : rbound1 + rbound2 + pair.reach;
  pair.bound_squared = pair.bound * pair.bound;
  // MuJoCo keeps friction above mjMINMU when it makes a contact
  const double friction = std::max(mjMINMU, contact.friction[0]);
  const double translation =
      m.body_invweight0[ptrdiff_t{2} * pair.body1] + m.body_invweight0[ptrdiff_t{2} * pair.body2];
  pair.inverse_weight =
      contact.condim == 1 ? translation : translation + friction * friction * translation;
  for (const int body : {pair.body1, pair.body2}) {
    if (m.body_treeid[body] >= 0) pair.trees |= uint64_t{1} << m.body_treeid[body];
  }
  const uint64_t dofs1 = DofsThatMove(m, pair.body1), dofs2 = DofsThatMove(m, pair.body2);
  pair.dofs1 = dofs1 & ~dofs2;
  pair.dofs2 = dofs2 & ~dofs1;
  const int softness = IndexOf(softnesses_, MakeSoftness(m, contact.solref, contact.solimp));
  pair.surface = IndexOf(surfaces_, {contact.condim, friction, pair.margin, softness});
  pairs_.push_back(pair);
}

void Plan::SetConstrainedTrees(const mjModel& m) {
  uint64_t trees = 0;
  for (const Limit& limit : limits_) trees |= uint64_t{1} << m.dof_treeid[limit.dof];
  for (const Pair& pair : pairs_) trees |= pair.trees;
  Tables& t = tables_;
  t.several_trees = (trees & (trees - 1)) != 0;
  dof_tree_.assign(m.dof_treeid, m.dof_treeid + m.nv);
  t.dof_tree = dof_tree_.data();
  const int tree = trees == 0 ? 0 : std::countr_zero(trees);
  t.first_solver_dof = m.tree_dofadr[tree];
  t.num_solver_dofs = m.tree_dofnum[tree];
  t.max_limit_rows = 2 * t.num_limits;
  const auto most_contacts = [](int sum, const Pair& pair) {
    return std::min(kMaxContacts, sum + MostContacts(pair.kind));
  };
  t.max_contacts = std::accumulate(pairs_.begin(), pairs_.end(), 0, most_contacts);
  t.max_rows = t.max_limit_rows + 4 * t.max_contacts;
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
