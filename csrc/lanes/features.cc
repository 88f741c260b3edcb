#include "lanes/features.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include "lanes/number_access.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes {

namespace {

// Pairs of shapes that lanes have code of their own for.
constexpr int kOwn[][2] = {{mjGEOM_PLANE, mjGEOM_SPHERE},   {mjGEOM_PLANE, mjGEOM_CAPSULE},
                           {mjGEOM_PLANE, mjGEOM_BOX},      {mjGEOM_PLANE, mjGEOM_CYLINDER},
                           {mjGEOM_SPHERE, mjGEOM_SPHERE},  {mjGEOM_SPHERE, mjGEOM_CAPSULE},
                           {mjGEOM_CAPSULE, mjGEOM_CAPSULE}};
constexpr size_t kNumOwn = sizeof(kOwn) / sizeof(*kOwn);

// MuJoCo's functions for them, as they are when the program starts.
const std::array<mjfCollision, kNumOwn> kMujocos = [] {
  std::array<mjfCollision, kNumOwn> functions{};
  for (size_t i = 0; i < kNumOwn; ++i) functions[i] = mjCOLLISIONFUNC[kOwn[i][0]][kOwn[i][1]];
  return functions;
}();

// The most constraint rows that lanes may have: those of limits, dry friction, equalities, and so
// many contacts.
mjtSize MostRows(const mjModel& m, int contacts) {
  const auto rolls = [](int condim) { return condim > 3; };
  const bool rolling = std::any_of(m.geom_condim, m.geom_condim + m.ngeom, rolls) ||
                       std::any_of(m.pair_dim, m.pair_dim + m.npair, rolls);
  mjtSize rows = mjtSize{contacts} * (rolling ? 10 : 4) + 2 * m.ntendon;  // limit and friction
  for (int i = 0; i < m.neq; ++i) {
    rows += m.eq_type[i] == mjEQ_WELD ? 6 : m.eq_type[i] == mjEQ_CONNECT ? 3 : 1;
  }
  rows += 2 * std::count(m.jnt_limited, m.jnt_limited + m.njnt, mjtBool{1});
  const auto rubs = [](mjtNum loss) { return loss != 0; };
  return rows + std::count_if(m.dof_frictionloss, m.dof_frictionloss + m.nv, rubs);
}

// What mj_step needs at most for so many contacts, twice over. With less it may drop contacts and
// warn, or stop, where lanes would go on. MuJoCo's default is 4 MiB or more. Heaps of boxes take
// four matrices of rows × dofs (Newton: two), and with PGS one of rows × rows.
// Where MuJoCo makes the constraints it drops and warns itself.
mjtSize EnoughMemory(const mjModel& m, int contacts) {
  constexpr mjtSize kOther = 1 << 20;
  if (AsksForConstraints(m)) return kOther + mjtSize{sizeof(mjContact)} * contacts;
  const mjtSize rows = MostRows(m, contacts);
  const mjtSize by_dofs = 8 * rows * (m.nv + 8);
  const mjtSize by_rows = SolvesDual(m) ? 2 * rows * rows : 0;
  return kOther + mjtSize{sizeof(mjtNum)} * (by_dofs + by_rows);
}

// "joint 'hip'", or "joint 3" if it has no name
std::string Named(const mjModel& m, mjtObj type, int id) {
  std::string r = mju_type2Str(type);
  const char* name = mj_id2name(&m, type, id);
  if (name == nullptr) return r.append(" ").append(std::to_string(id));
  return r.append(" '").append(name).append("'");
}

std::string At(const char* what, const std::string& where) {
  return std::string(what).append(" (").append(where).append(")");
}

bool AnyNonZero(const mjtNum* x, int n) {
  return std::any_of(x, x + n, [](mjtNum v) { return v != 0; });
}

// ---- groups of features: the first thing found, or nothing --------------------------------------

std::string Counts(const mjModel& m) {
  if (m.nv == 0) return "a model without degrees of freedom";
  if (m.nv > kMaxChain) return "more than 256 degrees of freedom";
  if (MaxContacts(m) == 0) return "less memory (size memory) than its constraints may take";
  if (m.nflex > 0) return "flexes";
  if (m.nplugin > 0) return "plugins";
  if (m.nplastic > 0) return "plastic springs and tendons";
  if (m.nhistory > 0) return "delays and history buffers";
  if (m.flg_surfacevel) return "surface velocities of geoms";
  // the flag is the compiler's; mj_step looks at the numbers, which may have been written since
  if (m.flg_adhesion || AnyNonZero(m.geom_adhesion, m.ngeom) ||
      AnyNonZero(m.pair_adhesion, m.npair)) {
    return "adhesion";
  }
  if (m.nactuator != m.nu || m.nout != m.nu) return "actuators with several inputs or outputs";
  return {};
}

std::string Options(const mjModel& m) {
  const mjOption& opt = m.opt;
  constexpr int kKnownOff =
      mjDSBL_CONSTRAINT | mjDSBL_CONTACT | mjDSBL_LIMIT | mjDSBL_GRAVITY | mjDSBL_MIDPHASE |
      mjDSBL_FILTERPARENT | mjDSBL_REFSAFE | mjDSBL_EQUALITY | mjDSBL_FRICTIONLOSS | mjDSBL_SENSOR |
      mjDSBL_NATIVECCD | mjDSBL_MULTICCD | mjDSBL_CLAMPCTRL | mjDSBL_EULERDAMP | mjDSBL_SPRING |
      mjDSBL_DAMPER | mjDSBL_WARMSTART | mjDSBL_ACTUATION | mjDSBL_AUTORESET | mjDSBL_ISLAND;
  if ((opt.disableflags & ~kKnownOff) != 0) return "this set of disabled features";
  constexpr int kInverse = mjENBL_FWDINV | mjENBL_INVDISCRETE;  // beside the step
  const int extra = opt.enableflags & ~(mjENBL_ENERGY | mjENBL_DIAGEXACT);
  // MuJoCo does not do both with every integrator
  if ((extra & ~kInverse) != 0 || extra == kInverse) {
    return "enabled extra features (override, sleep, …)";
  }
  if (opt.integrator == mjINT_IMPLICIT) return "the integrator implicit";
  if (opt.integrator != mjINT_EULER && opt.integrator != mjINT_RK4 &&
      opt.integrator != mjINT_IMPLICITFAST) {
    return "this integrator";
  }
  if (opt.solver != mjSOL_PGS && opt.solver != mjSOL_CG && opt.solver != mjSOL_NEWTON) {
    return "this solver";
  }
  if (opt.cone != mjCONE_PYRAMIDAL && opt.cone != mjCONE_ELLIPTIC) return "this friction cone";
  if (!(opt.impratio < 1e100)) return "an impratio whose square may be infinite";
  if (!(opt.ccd_tolerance >= 0)) return "a negative ccd_tolerance";
  const bool fluid = opt.density != 0 || opt.viscosity != 0;
  for (int g = 0; fluid && g < m.ngeom; ++g) {
    if (m.geom_fluid[mjNFLUID * g] > 0) return "the ellipsoid fluid model";
  }
  return {};
}

std::string Callbacks(const mjModel&) {
  if (mjcb_passive != nullptr || mjcb_control != nullptr || mjcb_contactfilter != nullptr ||
      mjcb_sensor != nullptr || mjcb_act_dyn != nullptr || mjcb_act_gain != nullptr ||
      mjcb_act_bias != nullptr) {
    return "user callbacks";
  }
  if (!CollisionsAreMujocos()) return "a collision function of the user's (mjCOLLISIONFUNC)";
  return {};
}

std::string Joints(const mjModel& m) {
  for (int j = 0; j < m.njnt; ++j) {
    const auto that = [&](const char* what) { return At(what, Named(m, mjOBJ_JOINT, j)); };
    const int type = m.jnt_type[j];
    const int body = m.jnt_bodyid[j];
    if (type == mjJNT_FREE) {
      if (m.body_jntnum[body] != 1) return that("free joints beside others");
    } else if (type != mjJNT_BALL && type != mjJNT_SLIDE && type != mjJNT_HINGE) {
      return that("joints of this type");
    }
    if (m.jnt_limited[j] && type == mjJNT_FREE) return that("limits of free joints");
  }
  return {};
}

std::string Tendons(const mjModel& m) {
  for (int i = 0; i < m.ntendon; ++i) {
    const auto that = [&](const char* what) { return At(what, Named(m, mjOBJ_TENDON, i)); };
    const mjtNum* dampingpoly = m.tendon_dampingpoly + ptrdiff_t{mjNPOLY} * i;
    const double armature = FromActuators(m, mjOBJ_TENDON, i, dampingpoly).armature;
    if ((m.tendon_armature[i] != 0 || armature != 0) && !AllTendonsFixed(m)) {
      return that("armature of tendons where there are spatial ones");
    }
    // whether MuJoCo keeps their rows depends on how it stores the Jacobian
    const mjtNum* coefficients = m.wrap_prm + m.tendon_adr[i];
    if (m.wrap_type[m.tendon_adr[i]] == mjWRAP_JOINT &&
        std::all_of(coefficients, coefficients + m.tendon_num[i],
                    [](double x) { return x == 0; })) {
      return that("tendons whose coefficients are all zero");
    }
    for (int k = m.tendon_adr[i]; k < m.tendon_adr[i] + m.tendon_num[i]; ++k) {
      const bool is_round = m.wrap_type[k] == mjWRAP_SPHERE || m.wrap_type[k] == mjWRAP_CYLINDER;
      const bool known = m.wrap_prm[k] >= -1 && m.wrap_prm[k] < m.nsite - 0.5;
      if (is_round && !known) return that("tendons whose side site is none");
    }
  }
  return {};
}

std::string Actuators(const mjModel& m) {
  for (int a = 0; a < m.nu; ++a) {
    const auto that = [&](const char* what) { return At(what, Named(m, mjOBJ_ACTUATOR, a)); };
    const int transmission = m.actuator_trntype[a];
    if (transmission == mjTRN_SITE) {
      if (m.actuator_trnid[2 * a + 1] >= 0) return that("actuators between two sites");
    } else if (transmission != mjTRN_JOINT && transmission != mjTRN_JOINTINPARENT &&
               transmission != mjTRN_TENDON) {
      return that("actuators on other things than joints, tendons and sites");
    }
    const int dynamics = m.actuator_dyntype[a];
    const bool ball = (transmission == mjTRN_JOINT || transmission == mjTRN_JOINTINPARENT) &&
                      m.jnt_type[m.actuator_trnid[2 * a]] == mjJNT_BALL;
    // MuJoCo takes their setpoint for an angle, of whose turns it chooses the nearest
    if (ball && m.actuator_biastype[a] == mjBIAS_AFFINE) return that("servos on ball joints");
    if (dynamics != mjDYN_NONE && dynamics != mjDYN_INTEGRATOR && dynamics != mjDYN_FILTER &&
        dynamics != mjDYN_FILTEREXACT && dynamics != mjDYN_MUSCLE) {
      return that("dynamics of actuators other than integrator, filter, filterexact and muscle");
    }
    if (m.actuator_actnum[a] > 1) return that("actuators with several activations");
    const int gain = m.actuator_gaintype[a], bias = m.actuator_biastype[a];
    if (gain != mjGAIN_FIXED && gain != mjGAIN_AFFINE && gain != mjGAIN_MUSCLE) {
      return that("actuators whose gain is neither fixed nor affine nor a muscle's");
    }
    if (bias != mjBIAS_NONE && bias != mjBIAS_AFFINE && bias != mjBIAS_MUSCLE) {
      return that("actuators whose bias is neither affine nor a muscle's");
    }
    if (m.actuator_ctrlnum[a] != 1 || m.actuator_outnum[a] != 1) return that("vector actuators");
  }
  return {};
}

std::string Limits(const mjModel& m) {
  for (int j = 0; j < m.njnt; ++j) {
    if (!m.jnt_limited[j]) continue;
    if (!KnownReference(m.jnt_solref + mjNREF * j)) return "solref in a mixed format";
  }
  return {};
}

std::string TendonConstraints(const mjModel& m) {
  if (IsOff(m, mjDSBL_CONSTRAINT)) return {};
  for (int i = 0; i < m.ntendon; ++i) {
    const auto that = [&](const char* what) { return At(what, Named(m, mjOBJ_TENDON, i)); };
    const bool limited = m.tendon_limited[i] && !IsOff(m, mjDSBL_LIMIT);
    const bool rubs = m.tendon_frictionloss[i] > 0 && !IsOff(m, mjDSBL_FRICTIONLOSS);
    const mjtNum* limit = m.tendon_solref_lim + mjNREF * i;
    const mjtNum* friction = m.tendon_solref_fri + mjNREF * i;
    if ((limited && !KnownReference(limit)) || (rubs && !KnownReference(friction))) {
      return that("solref in a mixed format");
    }
  }
  return {};
}

std::string Shapes(const mjModel& m) {
  constexpr int kKnown[] = {mjGEOM_PLANE,   mjGEOM_HFIELD,    mjGEOM_SPHERE,
                            mjGEOM_CAPSULE, mjGEOM_ELLIPSOID, mjGEOM_CYLINDER,
                            mjGEOM_BOX,     mjGEOM_MESH,      mjGEOM_SDF};
  for (int g = 0; g < m.ngeom; ++g) {
    if (std::find(std::begin(kKnown), std::end(kKnown), m.geom_type[g]) == std::end(kKnown)) {
      return At("geoms of this type", Named(m, mjOBJ_GEOM, g));
    }
    if (m.geom_type[g] == mjGEOM_PLANE && m.geom_rbound[g] != 0) {
      return At("planes with a bounding radius", Named(m, mjOBJ_GEOM, g));
    }
  }
  const auto unknown = [](int same) {
    return same < mjSAMEFRAME_NONE || same > mjSAMEFRAME_INERTIAROT;
  };
  if (std::any_of(m.body_sameframe, m.body_sameframe + m.nbody, unknown) ||
      std::any_of(m.geom_sameframe, m.geom_sameframe + m.ngeom, unknown) ||
      std::any_of(m.site_sameframe, m.site_sameframe + m.nsite, unknown)) {
    return "frames that are the body's in this way (sameframe)";
  }
  return {};
}

// Whether MuJoCo finds the contacts of such shapes step by step.
bool IsIterated(const mjModel& m, const GeomPair& pair) {
  const auto curved = [&](int geom) {
    const int type = m.geom_type[geom];
    return type == mjGEOM_ELLIPSOID || type == mjGEOM_CYLINDER || type == mjGEOM_MESH;
  };
  return m.geom_type[pair.geom1] != mjGEOM_PLANE && (curved(pair.geom1) || curved(pair.geom2));
}

std::string Contacts(const mjModel& m) {
  for (const GeomPair& pair : CandidatePairs(m)) {
    const auto that = [&](const char* what) {
      return At(
          what,
          Named(m, mjOBJ_GEOM, pair.geom1).append(", ").append(Named(m, mjOBJ_GEOM, pair.geom2)));
    };
    if (m.geom_type[pair.geom1] == mjGEOM_SDF || m.geom_type[pair.geom2] == mjGEOM_SDF) {
      return that("signed distance fields");
    }
    const ContactSource contact = SourceOfContact(m, pair);
    if (contact.margin + contact.gap < 0 && IsIterated(m, pair)) {
      return that("a negative margin and gap of shapes that MuJoCo collides by iteration");
    }
    mjtNum solref[mjNREF], solimp[mjNIMP];
    CombineSolver(contact, m.geom_solref, m.geom_solimp, solref, solimp);
    if (!KnownReference(solref)) return that("solref in a mixed format");
    const int tree1 = m.body_treeid[m.geom_bodyid[pair.geom1]];
    const int tree2 = m.body_treeid[m.geom_bodyid[pair.geom2]];
    if (tree1 < 0 && tree2 < 0) return that("contact pairs of two fixed bodies");
    const int weld1 = m.body_weldid[m.geom_bodyid[pair.geom1]];
    if (weld1 == m.body_weldid[m.geom_bodyid[pair.geom2]]) {
      return that("contact pairs of two geoms that cannot move against each other");
    }
  }
  return {};
}

bool TurnsWithInertia(int same) {
  return same == mjSAMEFRAME_INERTIA || same == mjSAMEFRAME_INERTIAROT;
}

// MuJoCo's functions, of quaternions that are no unit's, see scaled geoms.
bool GeomsOfMujocosTurnWithInertia(const mjModel& m) {
  const auto turns = [&](int geom) { return TurnsWithInertia(m.geom_sameframe[geom]); };
  const auto pairs = CandidatePairs(m);
  return std::any_of(pairs.begin(), pairs.end(), [&](const GeomPair& pair) {
    return !HasOwnCollision(m, pair) && (turns(pair.geom1) || turns(pair.geom2));
  });
}

bool WeldsSitesThatTurnWithInertia(const mjModel& m) {
  for (int i = 0; i < m.neq; ++i) {
    if (m.eq_type[i] != mjEQ_WELD || m.eq_objtype[i] != mjOBJ_SITE) continue;
    for (const int site : {m.eq_obj1id[i], m.eq_obj2id[i]}) {
      if (TurnsWithInertia(m.site_sameframe[site])) return true;
    }
  }
  return false;
}

std::string FrictionLosses(const mjModel& m) {
  if (IsOff(m, mjDSBL_CONSTRAINT) || IsOff(m, mjDSBL_FRICTIONLOSS)) return {};
  for (int i = 0; i < m.nv; ++i) {
    if (m.dof_frictionloss[i] == 0) continue;
    if (m.dof_frictionloss[i] < 0) return "negative friction loss";
    if (!KnownReference(m.dof_solref + mjNREF * i)) return "solref in a mixed format";
  }
  return {};
}

std::string Equalities(const mjModel& m) {
  if (IsOff(m, mjDSBL_CONSTRAINT) || IsOff(m, mjDSBL_EQUALITY)) return {};
  for (int i = 0; i < m.neq; ++i) {
    const auto that = [&](const char* what) { return At(what, Named(m, mjOBJ_EQUALITY, i)); };
    const int type = m.eq_type[i];
    if (type != mjEQ_JOINT && type != mjEQ_TENDON && type != mjEQ_CONNECT && type != mjEQ_WELD) {
      return that("equality constraints of flexes");
    }
    if (!KnownReference(m.eq_solref + mjNREF * i)) return that("solref in a mixed format");
    if (type != mjEQ_WELD || m.eq_objtype[i] != mjOBJ_SITE) continue;
    for (const int site : {m.eq_obj1id[i], m.eq_obj2id[i]}) {
      const mjtNum* inertia = m.body_iquat + ptrdiff_t{4} * m.site_bodyid[site];
      if (TurnsWithInertia(m.site_sameframe[site]) &&
          !std::equal(inertia, inertia + 4, m.site_quat + ptrdiff_t{4} * site)) {
        return that("welds of sites whose quaternion is not their body's inertia's");
      }
    }
  }
  return {};
}

bool ActuatorsBringMore(const mjModel& m) {
  const auto brings = [](int actuator) { return actuator != -1; };
  return std::any_of(m.jnt_actuatorid, m.jnt_actuatorid + m.njnt, brings) ||
         std::any_of(m.tendon_actuatorid, m.tendon_actuatorid + m.ntendon, brings);
}

}  // namespace

std::string UnsupportedFeature(const mjModel& m) {
  std::string (*const groups[])(const mjModel&) = {
      Counts,   Options,    Callbacks,         Joints,        Shapes, Tendons, Actuators, Limits,
      Contacts, Equalities, TendonConstraints, FrictionLosses};
  for (const auto group : groups) {
    if (std::string found = group(m); !found.empty()) return found;
  }
  return {};
}

std::string UnsupportedField(const mjModel& m, const std::vector<std::string>& fields) {
  for (const std::string& field : fields) {
    const std::string what = "per-environment " + field;
    if (FindNumber(field) == Number::kCount) return what;
    const bool of_tendons = field == "wrap_prm" || field.compare(0, 7, "tendon_") == 0;
    if (field == "actuator_gear" && ActuatorsBringMore(m)) {
      return At(what.c_str(), "actuators have damping or armature");
    }
    const bool of_fixed = field == "wrap_prm" || field == "tendon_armature";
    if ((of_tendons && !TendonsMatter(m)) || (of_fixed && !AllTendonsFixed(m))) {
      return At(what.c_str(), "there are spatial tendons");
    }
    if ((field == "site_quat" || field == "body_iquat") && WeldsSitesThatTurnWithInertia(m)) {
      return At(what.c_str(), "welded sites turn with it");
    }
    if (field == "body_iquat" && GeomsOfMujocosTurnWithInertia(m)) {
      return At(what.c_str(), "geoms that MuJoCo's functions collide turn with it");
    }
  }
  return {};
}

OfActuators FromActuators(const mjModel& m, mjtObj type, int id, const mjtNum* dampingpoly) {
  OfActuators r{};
  std::copy_n(dampingpoly, mjNPOLY, r.dampingpoly);
  // the compiler's: none (-1), this one, or any that drive it (less than -1)
  const int which = type == mjOBJ_TENDON ? m.tendon_actuatorid[id] : m.jnt_actuatorid[id];
  for (int a = 0; a < m.nu; ++a) {
    if (which >= -1 && a != which) continue;
    const int acts_on = m.actuator_trntype[a];
    const bool drives = type == mjOBJ_TENDON
                            ? acts_on == mjTRN_TENDON
                            : acts_on == mjTRN_JOINT || acts_on == mjTRN_JOINTINPARENT;
    if (!drives || m.actuator_trnid[2 * a] != id) continue;
    const double squared = m.actuator_gear[6 * a] * m.actuator_gear[6 * a];
    r.damping += m.actuator_damping[a] * squared;
    r.armature += m.actuator_armature[a] * squared;
    for (int k = 0; k < mjNPOLY; ++k) {
      r.dampingpoly[k] += m.actuator_dampingpoly[mjNPOLY * a + k] * squared;
    }
  }
  return r;
}

bool AsksForConstraints(const mjModel& m) {
  if (m.nv >= kMaxDofs || mj_isSparse(&m) || m.opt.solver == mjSOL_CG || IsOff(m, mjDSBL_ISLAND) ||
      (m.opt.enableflags & mjENBL_DIAGEXACT) != 0) {
    return true;
  }
  const auto rubs = [](int condim) { return condim > 1; };
  const bool frictional = std::any_of(m.geom_condim, m.geom_condim + m.ngeom, rubs) ||
                          std::any_of(m.pair_dim, m.pair_dim + m.npair, rubs);
  return m.opt.cone == mjCONE_ELLIPTIC && frictional &&
         (SolvesDual(m) || AnyNonZero(m.pair_solreffriction, mjNREF * static_cast<int>(m.npair)));
}

int MaxContacts(const mjModel& m) {
  // a lying Humanoid has about 20; PGS's matrices grow with the square
  constexpr int kMany = 100, kSome = 40;
  if (!SolvesDual(m) && m.narena >= EnoughMemory(m, kMany)) return kMany;
  return m.narena >= EnoughMemory(m, kSome) ? kSome : 0;
}

bool HasMiddlePhase(const mjModel& m, int body1, int body2) {
  return !IsOff(m, mjDSBL_MIDPHASE) && (m.body_geomnum[body1] > 1 || m.body_geomnum[body2] > 1) &&
         m.body_bvhadr[body1] >= 0 && m.body_bvhadr[body2] >= 0;
}

bool AllTendonsFixed(const mjModel& m) {
  return std::all_of(m.wrap_type, m.wrap_type + m.nwrap,
                     [](int type) { return type == mjWRAP_JOINT; });
}

bool TendonsMatter(const mjModel& m) {
  const auto acts = [](int type) { return type == mjTRN_TENDON; };
  const auto ties = [](int type) { return type == mjEQ_TENDON; };
  const auto has = [](const auto* values, mjtSize count) {
    return std::any_of(values, values + count, [](auto x) { return x != 0; });
  };
  return AllTendonsFixed(m) || has(m.tendon_stiffness, m.ntendon) ||
         has(m.tendon_stiffnesspoly, mjNPOLY * m.ntendon) || has(m.tendon_damping, m.ntendon) ||
         has(m.tendon_dampingpoly, mjNPOLY * m.ntendon) || has(m.tendon_limited, m.ntendon) ||
         has(m.tendon_frictionloss, m.ntendon) ||
         std::any_of(m.actuator_trntype, m.actuator_trntype + m.nu, acts) ||
         std::any_of(m.eq_type, m.eq_type + m.neq, ties);
}

bool Computes(const mjModel& m, Field field) {
  const bool of_tendons =
      field == Field::ten_length || field == Field::ten_velocity || field == Field::ten_J;
  return !of_tendons || TendonsMatter(m);
}

bool HasOwnCollision(const mjModel& m, const GeomPair& pair) {
  const int type1 = m.geom_type[pair.geom1], type2 = m.geom_type[pair.geom2];
  const auto degenerate = [&](int geom) {  // a segment without length
    return m.geom_type[geom] == mjGEOM_CAPSULE && !(m.geom_size[3 * geom + 1] > 1e-6);
  };
  if (degenerate(pair.geom1) || degenerate(pair.geom2)) return false;
  return std::any_of(std::begin(kOwn), std::end(kOwn),
                     [&](const int* own) { return own[0] == type1 && own[1] == type2; });
}

bool CollisionsAreMujocos() {
  for (size_t i = 0; i < kNumOwn; ++i) {
    if (mjCOLLISIONFUNC[kOwn[i][0]][kOwn[i][1]] != kMujocos[i]) return false;
  }
  return true;
}

namespace {

int Signature(int body1, int body2) {
  return (std::min(body1, body2) << 16) + std::max(body1, body2);
}

bool Contains(const int* begin, mjtSize count, int value) {
  return std::find(begin, begin + count, value) != begin + count;
}

// With the simpler shape first, as MuJoCo's collision functions take them; nothing if they take
// none of such two shapes.
void AddPair(const mjModel& m, GeomPair pair, std::vector<GeomPair>& pairs) {
  if (m.geom_type[pair.geom1] > m.geom_type[pair.geom2]) std::swap(pair.geom1, pair.geom2);
  if (mjCOLLISIONFUNC[m.geom_type[pair.geom1]][m.geom_type[pair.geom2]] == nullptr) return;
  pairs.push_back(pair);
}

// Whether bodies' geoms may collide at all: canCollide2, by the masks that the compiler has made of
// the geoms', and filterBodyPair.
bool MayCollide(const mjModel& m, int body1, int body2) {
  if ((m.body_contype[body1] & m.body_conaffinity[body2]) == 0 &&
      (m.body_contype[body2] & m.body_conaffinity[body1]) == 0) {
    return false;
  }
  const int weld1 = m.body_weldid[body1], weld2 = m.body_weldid[body2];
  const auto weld_parent = [&](int weld) { return m.body_weldid[m.body_parentid[weld]]; };
  if (weld1 == weld2 || (m.body_dofnum[weld1] == 0 && m.body_dofnum[weld2] == 0)) return false;
  const bool relatives = weld1 == weld_parent(weld2) || weld2 == weld_parent(weld1);
  return weld1 == 0 || weld2 == 0 || !relatives || IsOff(m, mjDSBL_FILTERPARENT);
}

bool IsExplicit(const mjModel& m, int geom1, int geom2) {
  for (int k = 0; k < m.npair; ++k) {
    const int g = m.pair_geom1[k], h = m.pair_geom2[k];
    if ((g == geom1 && h == geom2) || (g == geom2 && h == geom1)) return true;
  }
  return false;
}

// Whether a geom stands in its body's tree of bounding volumes: the compiler leaves out those whose
// masks are zero, whatever they are made later.
bool IsInTree(const mjModel& m, int geom) {
  const int body = m.geom_bodyid[geom];
  const int* nodes = m.bvh_nodeid + m.body_bvhadr[body];
  return Contains(nodes, m.body_bvhnum[body], geom);
}

// The geoms of two bodies, but explicit pairs.
void AddBodies(const mjModel& m, int body1, int body2, std::vector<GeomPair>& pairs) {
  const auto begin = static_cast<ptrdiff_t>(pairs.size());
  const bool descends = HasMiddlePhase(m, body1, body2);
  for (int g = m.body_geomadr[body1]; g < m.body_geomadr[body1] + m.body_geomnum[body1]; ++g) {
    for (int h = m.body_geomadr[body2]; h < m.body_geomadr[body2] + m.body_geomnum[body2]; ++h) {
      const bool masks = (m.geom_contype[g] & m.geom_conaffinity[h]) != 0 ||
                         (m.geom_contype[h] & m.geom_conaffinity[g]) != 0;
      if (descends && !(IsInTree(m, g) && IsInTree(m, h))) continue;
      if (masks && !IsExplicit(m, g, h)) AddPair(m, {g, h}, pairs);
    }
  }
  // with a tree of bounding volumes, contacts of two bodies are sorted afterwards
  if (descends) {
    std::sort(pairs.begin() + begin, pairs.end(), [](const GeomPair& a, const GeomPair& b) {
      return a.geom1 != b.geom1 ? a.geom1 < b.geom1 : a.geom2 < b.geom2;
    });
  }
}

}  // namespace

std::vector<GeomPair> CandidatePairs(const mjModel& m) {
  std::vector<GeomPair> pairs;
  if (IsOff(m, mjDSBL_CONSTRAINT) || IsOff(m, mjDSBL_CONTACT)) return pairs;
  int next = 0;  // explicit pairs stand in the order of signatures, before the bodies' others
  const auto add_explicit = [&](int up_to) {
    for (; next < m.npair && m.pair_signature[next] <= up_to; ++next) {
      AddPair(m, {m.pair_geom1[next], m.pair_geom2[next], next}, pairs);
    }
  };
  for (int body1 = 0; body1 < m.nbody; ++body1) {
    for (int body2 = body1 + 1; body2 < m.nbody; ++body2) {
      const int signature = Signature(body1, body2);
      add_explicit(signature);
      const bool excluded = Contains(m.exclude_signature, m.nexclude, signature);
      if (!excluded && MayCollide(m, body1, body2)) AddBodies(m, body1, body2, pairs);
    }
  }
  add_explicit(std::numeric_limits<int>::max());
  return pairs;
}

}  // namespace pyfastenv::lanes
