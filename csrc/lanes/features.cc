#include "lanes/features.h"

#include <algorithm>
#include <cstddef>

#include "lanes/number_access.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes {

namespace {

// What mj_step needs at most for kMaxContacts and every limit of kMaxDofs dofs, twice over (its
// largest matrices, rows × dofs and rows × rows, stay below half of it). With less it may drop
// contacts and warn, or stop, where lanes would go on. MuJoCo's default is 4 MiB or more.
constexpr mjtSize kEnoughMemory = 2 << 20;

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

bool IsOff(const mjModel& m, int flag) { return (m.opt.disableflags & flag) != 0; }

// ---- groups of features: the first thing found, or nothing --------------------------------------

std::string Counts(const mjModel& m) {
  if (m.nv == 0) return "a model without degrees of freedom";
  if (m.nv >= kMaxDofs) return "60 or more degrees of freedom";
  if (m.narena < kEnoughMemory) return "less than 2 MiB of memory (size memory)";
  if (mj_isSparse(&m)) return "sparse constraint Jacobians (option jacobian)";
  if (m.na > 0) return "actuators with activation states";
  if (m.nflex > 0) return "flexes";
  if (m.neq > 0) return "equality constraints";
  if (m.npair > 0) return "explicit contact pairs";
  if (m.nmocap > 0) return "mocap bodies";
  if (m.nplugin > 0) return "plugins";
  if (m.nplastic > 0) return "plastic springs";
  if (m.nhistory > 0) return "delays and history buffers";
  if (m.ngravcomp > 0) return "gravity compensation";
  if (m.flg_surfacevel) return "surface velocities of geoms";
  if (m.flg_adhesion) return "adhesion";
  if (m.nactuator != m.nu || m.nout != m.nu) return "actuators with several inputs or outputs";
  return {};
}

std::string Options(const mjModel& m) {
  const mjOption& opt = m.opt;
  constexpr int kKnownOff = mjDSBL_CONTACT | mjDSBL_LIMIT | mjDSBL_GRAVITY | mjDSBL_MIDPHASE |
                            mjDSBL_FILTERPARENT | mjDSBL_REFSAFE | mjDSBL_EQUALITY |
                            mjDSBL_FRICTIONLOSS | mjDSBL_SENSOR | mjDSBL_NATIVECCD |
                            mjDSBL_MULTICCD | mjDSBL_CLAMPCTRL | mjDSBL_EULERDAMP;
  if ((opt.disableflags & ~kKnownOff) != 0) return "this set of disabled features";
  if (opt.enableflags != 0) return "enabled extra features (energy, override, sleep, …)";
  if (opt.disableactuator != 0) return "disabled actuator groups";
  if (opt.integrator == mjINT_IMPLICIT) return "the integrator implicit";
  if (opt.integrator != mjINT_EULER && opt.integrator != mjINT_RK4 &&
      opt.integrator != mjINT_IMPLICITFAST) {
    return "this integrator";
  }
  if (opt.solver == mjSOL_CG) return "the solver CG";
  if (opt.noslip_iterations > 0) return "noslip iterations";
  if (AnyNonZero(opt.wind, 3)) return "wind";
  const bool fluid = opt.density > 0 || opt.viscosity > 0;
  if (fluid && opt.integrator == mjINT_IMPLICITFAST) return "implicitfast in a fluid";
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
  return {};
}

std::string Joints(const mjModel& m) {
  for (int j = 0; j < m.njnt; ++j) {
    const auto that = [&](const char* what) { return At(what, Named(m, mjOBJ_JOINT, j)); };
    const int type = m.jnt_type[j];
    const int body = m.jnt_bodyid[j];
    if (type == mjJNT_BALL) return that("ball joints");
    if (type == mjJNT_FREE) {
      if (m.body_jntnum[body] != 1) return that("free joints beside others");
      if (m.jnt_stiffness[j] != 0) return that("springs of free joints");
      if (m.opt.integrator == mjINT_IMPLICITFAST && m.tree_bodynum[m.body_treeid[body]] == 1) {
        return that("implicitfast with single free bodies");
      }
    }
    if (m.jnt_actuatorid[j] != -1) return that("damping or armature from actuators");
    if (m.jnt_actgravcomp[j]) return that("gravity compensation");
    if (m.jnt_plasticadr[j] >= 0) return that("plastic springs");
    if (AnyNonZero(m.jnt_stiffnesspoly + mjNPOLY * j, mjNPOLY)) return that("non-linear springs");
    if (m.jnt_limited[j] && type == mjJNT_FREE) return that("limits of free joints");
  }
  for (int i = 0; i < m.nv; ++i) {
    if (AnyNonZero(m.dof_dampingpoly + mjNPOLY * i, mjNPOLY)) return "non-linear dampers";
  }
  return {};
}

std::string Tendons(const mjModel& m) {
  for (int i = 0; i < m.ntendon; ++i) {
    const auto that = [&](const char* what) { return At(what, Named(m, mjOBJ_TENDON, i)); };
    if (m.tendon_limited[i]) return that("limits of tendons");
    if (m.tendon_actfrclimited[i]) return that("force limits of tendons");
    if (m.tendon_stiffness[i] != 0 || m.tendon_damping[i] != 0 ||
        AnyNonZero(m.tendon_stiffnesspoly + mjNPOLY * i, mjNPOLY) ||
        AnyNonZero(m.tendon_dampingpoly + mjNPOLY * i, mjNPOLY)) {
      return that("springs or dampers of tendons");
    }
    if (m.tendon_armature[i] != 0) return that("armature of tendons");
    if (m.tendon_frictionloss[i] != 0) return that("friction loss of tendons");
    if (m.tendon_actuatorid[i] != -1) return that("damping or armature from actuators");
    if (m.tendon_plasticadr[i] >= 0) return that("plastic tendons");
  }
  return {};
}

std::string Actuators(const mjModel& m) {
  for (int a = 0; a < m.nu; ++a) {
    const auto that = [&](const char* what) { return At(what, Named(m, mjOBJ_ACTUATOR, a)); };
    if (m.actuator_trntype[a] != mjTRN_JOINT && m.actuator_trntype[a] != mjTRN_JOINTINPARENT) {
      return that("actuators on other things than joints");
    }
    const int type = m.jnt_type[m.actuator_trnid[2 * a]];
    if (type != mjJNT_SLIDE && type != mjJNT_HINGE) return that("actuators on free joints");
    if (m.actuator_dyntype[a] != mjDYN_NONE) return that("actuators with dynamics");
    if (m.actuator_gaintype[a] != mjGAIN_FIXED) return that("actuators whose gain is not fixed");
    if (m.actuator_biastype[a] != mjBIAS_NONE && m.actuator_biastype[a] != mjBIAS_AFFINE) {
      return that("actuators whose bias is not affine");
    }
    const bool velocity_bias =
        m.actuator_biastype[a] == mjBIAS_AFFINE && m.actuator_biasprm[mjNBIAS * a + 2] != 0;
    if (velocity_bias && m.opt.integrator == mjINT_IMPLICITFAST) {
      return that("implicitfast with velocity feedback");
    }
    if (m.actuator_ctrlnum[a] != 1 || m.actuator_outnum[a] != 1) return that("vector actuators");
    if (m.actuator_damping[a] != 0 || m.actuator_armature[a] != 0) {
      return that("damping or armature of actuators");
    }
  }
  return {};
}

std::string Limits(const mjModel& m) {
  for (int j = 0; j < m.njnt; ++j) {
    if (!m.jnt_limited[j]) continue;
    if (!KnownImpedance(m.jnt_solimp + mjNIMP * j)) return "solimp with a power other than 2";
    if (!KnownReference(m.jnt_solref + mjNREF * j)) return "solref in a mixed format";
  }
  return {};
}

std::string Contacts(const mjModel& m) {
  int tree = -1;
  for (const GeomPair& pair : CandidatePairs(m)) {
    const int type1 = m.geom_type[pair.geom1], type2 = m.geom_type[pair.geom2];
    const auto that = [&](const char* what) {
      return At(
          what,
          Named(m, mjOBJ_GEOM, pair.geom1).append(", ").append(Named(m, mjOBJ_GEOM, pair.geom2)));
    };
    const bool known =
        (type1 == mjGEOM_PLANE || type1 == mjGEOM_SPHERE || type1 == mjGEOM_CAPSULE) &&
        (type2 == mjGEOM_SPHERE || type2 == mjGEOM_CAPSULE);
    if (!known) return that("contacts of other shapes than planes, spheres and capsules");
    if (type1 == mjGEOM_PLANE && m.geom_bodyid[pair.geom1] != 0) return that("planes that move");
    if (m.geom_gap[pair.geom1] + m.geom_gap[pair.geom2] != 0) return that("contact gaps");
    const ContactSource contact = SourceOfContact(m, pair.geom1, pair.geom2);
    if (contact.condim != 1 && contact.condim != 3) return that("contacts of condim 4 or 6");
    if (contact.condim == 3 && m.opt.cone != mjCONE_PYRAMIDAL)
      return that("elliptic friction cones");
    mjtNum solref[mjNREF], solimp[mjNIMP];
    CombineSolver(contact, m.geom_solref, m.geom_solimp, solref, solimp);
    if (!KnownImpedance(solimp)) return that("solimp with a power other than 2");
    if (!KnownReference(solref)) return that("solref in a mixed format");
    for (const int geom : {pair.geom1, pair.geom2}) {
      const int body = m.geom_bodyid[geom];
      const int of = m.body_treeid[body];
      if (body != 0 && of < 0) return that("contacts with fixed bodies other than the world");
      if (of >= 0 && tree >= 0 && of != tree) return that("contacts on several trees");
      if (of >= 0) tree = of;
    }
  }
  return {};
}

// Whether some contact is searched for in trees of bounding volumes, which are placed by the frame
// of a body's inertia. That of a plane is everywhere.
bool BoundsFollowInertia(const mjModel& m) {
  if (IsOff(m, mjDSBL_MIDPHASE)) return false;
  const auto pairs = CandidatePairs(m);
  return std::any_of(pairs.begin(), pairs.end(), [&](const GeomPair& pair) {
    const int body1 = m.geom_bodyid[pair.geom1], body2 = m.geom_bodyid[pair.geom2];
    return m.geom_type[pair.geom1] != mjGEOM_PLANE &&
           (m.body_geomnum[body1] > 1 || m.body_geomnum[body2] > 1);
  });
}

bool TouchingGeomsTurnWithInertia(const mjModel& m) {
  const auto turns = [&](int geom) {
    const int same = m.geom_sameframe[geom];
    return same == mjSAMEFRAME_INERTIA || same == mjSAMEFRAME_INERTIAROT;
  };
  const auto pairs = CandidatePairs(m);
  return std::any_of(pairs.begin(), pairs.end(),
                     [&](const GeomPair& pair) { return turns(pair.geom1) || turns(pair.geom2); });
}

std::string FrictionLosses(const mjModel& m) {
  if (IsOff(m, mjDSBL_FRICTIONLOSS)) return {};
  const auto pairs = CandidatePairs(m);
  int tree = -1;
  if (!pairs.empty()) {
    tree = std::max(m.body_treeid[m.geom_bodyid[pairs[0].geom1]],
                    m.body_treeid[m.geom_bodyid[pairs[0].geom2]]);
  }
  for (int i = 0; i < m.nv; ++i) {
    if (m.dof_frictionloss[i] == 0) continue;
    if (m.dof_frictionloss[i] < 0) return "negative friction loss";
    if (m.opt.solver != mjSOL_NEWTON) return "friction loss with another solver than Newton";
    if (tree >= 0 && m.dof_treeid[i] != tree) return "friction loss on several trees";
    tree = m.dof_treeid[i];
    if (!KnownImpedance(m.dof_solimp + mjNIMP * i)) return "solimp with a power other than 2";
    if (!KnownReference(m.dof_solref + mjNREF * i)) return "solref in a mixed format";
  }
  return {};
}

std::string Trees(const mjModel& m) {
  if (m.opt.solver == mjSOL_PGS && m.ntree > 1) return "the solver PGS with several trees";
  return {};
}

}  // namespace

std::string UnsupportedFeature(const mjModel& m) {
  std::string (*const groups[])(const mjModel&) = {Counts,         Options,   Callbacks, Joints,
                                                   Tendons,        Actuators, Limits,    Contacts,
                                                   FrictionLosses, Trees};
  for (const auto group : groups) {
    if (std::string found = group(m); !found.empty()) return found;
  }
  return {};
}

std::string UnsupportedField(const mjModel& m, const std::vector<std::string>& fields) {
  for (const std::string& field : fields) {
    const std::string what = "per-environment " + field;
    if (FindNumber(field) == Number::kCount) return what;
    if (field != "body_ipos" && field != "body_iquat") continue;
    if (BoundsFollowInertia(m)) {
      return At(what.c_str(), "bounding volumes of bodies with several geoms move with it");
    }
    // a quaternion that is no unit's scales them beyond MuJoCo's bounds
    if (field == "body_iquat" && TouchingGeomsTurnWithInertia(m)) {
      return At(what.c_str(), "geoms that may touch turn with it");
    }
  }
  return {};
}

std::vector<GeomPair> CandidatePairs(const mjModel& m) {
  if (IsOff(m, mjDSBL_CONTACT)) return {};
  const auto weld_parent = [&](int body) {
    return m.body_weldid[m.body_parentid[m.body_weldid[body]]];
  };
  const auto excluded = [&](int body1, int body2) {
    const int signature = (body1 << 16) + body2;
    return std::find(m.exclude_signature, m.exclude_signature + m.nexclude, signature) !=
           m.exclude_signature + m.nexclude;
  };
  const auto may_touch = [&](int g, int h) {
    return (m.geom_contype[g] & m.geom_conaffinity[h]) != 0 ||
           (m.geom_contype[h] & m.geom_conaffinity[g]) != 0;
  };
  std::vector<GeomPair> pairs;
  for (int body1 = 0; body1 < m.nbody; ++body1) {
    for (int body2 = body1 + 1; body2 < m.nbody; ++body2) {
      const int weld1 = m.body_weldid[body1], weld2 = m.body_weldid[body2];
      if (weld1 == weld2 || excluded(body1, body2)) continue;
      const bool relatives = weld1 == weld_parent(body2) || weld2 == weld_parent(body1);
      if (weld1 != 0 && weld2 != 0 && relatives && !IsOff(m, mjDSBL_FILTERPARENT)) continue;
      const size_t begin = pairs.size();
      for (int g = m.body_geomadr[body1]; g < m.body_geomadr[body1] + m.body_geomnum[body1]; ++g) {
        for (int h = m.body_geomadr[body2]; h < m.body_geomadr[body2] + m.body_geomnum[body2];
             ++h) {
          if (!may_touch(g, h)) continue;
          // MuJoCo's collision functions take the simpler shape first
          const bool swap = m.geom_type[g] > m.geom_type[h];
          pairs.push_back(swap ? GeomPair{h, g} : GeomPair{g, h});
        }
      }
      // with a tree of bounding volumes, contacts of two bodies are sorted afterwards
      const bool several = m.body_geomnum[body1] > 1 || m.body_geomnum[body2] > 1;
      const bool trees = m.body_bvhadr[body1] >= 0 && m.body_bvhadr[body2] >= 0;
      if (several && trees && !IsOff(m, mjDSBL_MIDPHASE)) {
        std::sort(pairs.begin() + static_cast<ptrdiff_t>(begin), pairs.end(),
                  [](const GeomPair& a, const GeomPair& b) {
                    return a.geom1 != b.geom1 ? a.geom1 < b.geom1 : a.geom2 < b.geom2;
                  });
      }
    }
  }
  return pairs;
}

ContactSource SourceOfContact(const mjModel& m, int geom1, int geom2) {
  const int priority1 = m.geom_priority[geom1], priority2 = m.geom_priority[geom2];
  if (priority1 != priority2) {
    const int geom = priority1 > priority2 ? geom1 : geom2;
    return {m.geom_condim[geom], geom, -1, 1};
  }
  const double solmix1 = m.geom_solmix[geom1], solmix2 = m.geom_solmix[geom2];
  double mix = 1;
  if (solmix1 >= mjMINVAL && solmix2 >= mjMINVAL) {
    mix = solmix1 / (solmix1 + solmix2);
  } else if (solmix1 < mjMINVAL) {
    mix = solmix2 < mjMINVAL ? 0.5 : 0;
  }
  return {std::max(m.geom_condim[geom1], m.geom_condim[geom2]), geom1, geom2, mix};
}

double CombineFriction(const ContactSource& source, const double* geom_friction) {
  const double friction = geom_friction[ptrdiff_t{3} * source.geom1];
  if (source.geom2 < 0) return friction;
  return std::max(friction, geom_friction[ptrdiff_t{3} * source.geom2]);
}

void CombineSolver(const ContactSource& source, const double* geom_solref,
                   const double* geom_solimp, double* solref, double* solimp) {
  const double *ref1 = geom_solref + ptrdiff_t{mjNREF} * source.geom1,
               *imp1 = geom_solimp + ptrdiff_t{mjNIMP} * source.geom1;
  if (source.geom2 < 0) {
    std::copy_n(ref1, mjNREF, solref);
    std::copy_n(imp1, mjNIMP, solimp);
    return;
  }
  const double *ref2 = geom_solref + ptrdiff_t{mjNREF} * source.geom2,
               *imp2 = geom_solimp + ptrdiff_t{mjNIMP} * source.geom2;
  const double mix = source.mix;
  const bool standard = ref1[0] > 0 && ref2[0] > 0;
  for (int i = 0; i < mjNREF; ++i) {
    solref[i] = standard ? mix * ref1[i] + (1 - mix) * ref2[i] : std::min(ref1[i], ref2[i]);
  }
  for (int i = 0; i < mjNIMP; ++i) solimp[i] = mix * imp1[i] + (1 - mix) * imp2[i];
}

// solimp's sigmoid is a parabola, or flat
bool KnownImpedance(const double* solimp) {
  return solimp[4] == 2 || solimp[0] == solimp[1] || solimp[2] <= mjMINVAL;
}

bool KnownReference(const double* solref) { return (solref[0] > 0) == (solref[1] > 0); }

}  // namespace pyfastenv::lanes
