#include "lanes/derivation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "lanes/number_access.h"

namespace pyfastenv::lanes {

namespace {

constexpr uint64_t Bit(Number number) { return uint64_t{1} << static_cast<int>(number); }

static_assert(static_cast<int>(Number::kCount) <= 64);

bool Varies(const Tables& t, uint64_t which) { return (t.varied & which) != 0; }

constexpr uint64_t kSolver = Bit(Number::jnt_solref) | Bit(Number::jnt_solimp) |
                             Bit(Number::dof_solref) | Bit(Number::dof_solimp) |
                             Bit(Number::geom_solref) | Bit(Number::geom_solimp);
constexpr uint64_t kFluidSources = Bit(Number::body_mass) | Bit(Number::body_inertia) |
                                   Bit(Number::opt_density) | Bit(Number::opt_viscosity);

// What the limits of pairs are made of.
constexpr Number kGeometry[] = {
    Number::geom_size, Number::geom_margin, Number::geom_rbound, Number::geom_aabb,
    Number::bvh_aabb,  Number::body_margin, Number::geom_pos,    Number::geom_quat,
    Number::body_ipos, Number::body_iquat,
};
constexpr uint64_t kGeometrySources = [] {
  uint64_t bits = 0;
  for (const Number number : kGeometry) bits |= Bit(number);
  return bits;
}();

// Of a geom's shape, and how many numbers there are of each.
constexpr struct {
  Number number;
  int count;
} kShape[] = {{Number::geom_size, 3},
              {Number::geom_margin, 1},
              {Number::geom_rbound, 1},
              {Number::geom_aabb, 6},
              {Number::geom_quat, 4}};
constexpr uint64_t kVolumes = Bit(Number::geom_rbound) | Bit(Number::geom_aabb);
constexpr uint64_t kWholeShape =
    Bit(Number::geom_size) | Bit(Number::geom_margin) | Bit(Number::geom_quat) | kVolumes;

// MuJoCo's, with the C library's pow only where it asks it too.
double Power(double x, double power) {
  return power == 1 ? x : power == 2 ? x * x : std::pow(x, power);
}

bool InFluid(const Numbers& n, int body) {
  return (*n.opt_density > 0 || *n.opt_viscosity > 0) && n.body_mass[body] >= mjMINVAL;
}

}  // namespace

uint64_t WithDerived(uint64_t varied) {
  const auto follows = [&](uint64_t sources, std::initializer_list<Number> derived) {
    if ((varied & sources) == 0) return;
    for (const Number number : derived) varied |= Bit(number);
  };
  follows(Bit(Number::opt_gravity), {Number::world_acc});
  follows(Bit(Number::body_subtreemass), {Number::inverse_subtree_mass});
  follows(kFluidSources, {Number::viscous_torque, Number::viscous_force, Number::quadratic_torque,
                          Number::quadratic_force});
  follows(Bit(Number::geom_friction), {Number::pair_friction, Number::pair_inverse_weight});
  follows(Bit(Number::body_invweight0),
          {Number::pair_inverse_weight, Number::equality_inverse_weight});
  follows(Bit(Number::dof_invweight0), {Number::equality_inverse_weight});
  follows(kSolver, {Number::softness});
  follows(kGeometrySources, {Number::pair_limits});
  return varied;
}

Derivation::Derivation(const mjModel& m)
    : gravity_((m.opt.disableflags & mjDSBL_GRAVITY) == 0),
      reference_safety_((m.opt.disableflags & mjDSBL_REFSAFE) == 0),
      timestep_(m.opt.timestep),
      kept_(static_cast<size_t>(m.ngeom)) {}

void Derivation::KeepShape(int geom) { kept_[static_cast<size_t>(geom)] |= kWholeShape; }

void Derivation::KeepVolumes(int geom) { kept_[static_cast<size_t>(geom)] |= kVolumes; }

bool Derivation::IsKept(Number field, ptrdiff_t geom) const {
  return (kept_[static_cast<size_t>(geom)] & Bit(field)) != 0;
}

void Derivation::SetVolumes(std::shared_ptr<const mjModel> model) {
  volumes_ = std::move(model);
  fixed_shapes_ = FixedShapes(*volumes_);
}

// ---- softness -----------------------------------------------------------------------------------

int Derivation::AddSoftness(const Tables& t, const ContactSource& contact) {
  return IndexOf(t, {SoftnessSource::kContact, 0, contact, {}, {}});
}

int Derivation::AddJointSoftness(const Tables& t, int joint) {
  return IndexOf(t, {SoftnessSource::kJoint, joint, {}, {}, {}});
}

int Derivation::AddDofSoftness(const Tables& t, int dof) {
  return IndexOf(t, {SoftnessSource::kDof, dof, {}, {}, {}});
}

int Derivation::AddFixedSoftness(const Tables& t, const double* solref, const double* solimp) {
  SoftnessSource source{SoftnessSource::kFixed, 0, {}, {}, {}};
  std::copy_n(solref, kReferences, source.fixed.ref);
  std::copy_n(solimp, kImpedances, source.fixed.imp);
  return IndexOf(t, source);
}

int Derivation::IndexOf(const Tables& t, SoftnessSource source) {
  source.of_model = MakeSoftness(SolverOf(t.numbers, source));
  const auto same = [&](const SoftnessSource& other) {
    if (!Varies(t, kSolver)) {
      return std::memcmp(&source.of_model, &other.of_model, sizeof(Softness)) == 0;
    }
    return source.kind == other.kind && source.index == other.index &&
           std::memcmp(&source.fixed, &other.fixed, sizeof(Solver)) == 0 &&
           source.contact.geom1 == other.contact.geom1 &&
           source.contact.geom2 == other.contact.geom2 &&
           source.contact.explicit_pair == other.contact.explicit_pair;
  };
  const auto found = std::find_if(softness_.begin(), softness_.end(), same);
  const auto index = found - softness_.begin();
  if (found == softness_.end()) softness_.push_back(source);
  return static_cast<int>(index);
}

Derivation::Solver Derivation::SolverOf(const Numbers& n, const SoftnessSource& source) {
  Solver r{};
  if (source.kind == SoftnessSource::kContact) {
    CombineSolver(source.contact, n.geom_solref, n.geom_solimp, r.ref, r.imp);
    return r;
  }
  if (source.kind == SoftnessSource::kFixed) return source.fixed;
  const bool joint = source.kind == SoftnessSource::kJoint;
  const ptrdiff_t index = source.index;
  std::copy_n((joint ? n.jnt_solref : n.dof_solref) + kReferences * index, kReferences, r.ref);
  std::copy_n((joint ? n.jnt_solimp : n.dof_solimp) + kImpedances * index, kImpedances, r.imp);
  return r;
}

// mj_makeImpedance's constants of one solref and solimp.
Softness Derivation::MakeSoftness(const Solver& solver) const {
  double ref[2] = {solver.ref[0], solver.ref[1]};
  if (reference_safety_ && ref[0] > 0) ref[0] = std::max(ref[0], 2 * timestep_);
  const auto impedance = [](double x) { return std::min(mjMAXIMP, std::max(mjMINIMP, x)); };
  Softness s{};
  s.d0 = impedance(solver.imp[0]);
  s.dwidth = impedance(solver.imp[1]);
  s.width = std::max(0.0, solver.imp[2]);
  s.midpoint = impedance(solver.imp[3]);
  s.power = std::max(1.0, solver.imp[4]);
  s.rise = 1 / Power(s.midpoint, s.power - 1);
  s.fall = 1 / Power(1 - s.midpoint, s.power - 1);
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

// ---- the others ---------------------------------------------------------------------------------

// mj_inertiaBoxFluidModel's constants.
void Derivation::FluidBox(const Tables& t, const Numbers& n, int body, double* torque,
                          double* force, double* quadratic_torque, double* quadratic_force) const {
  if (!t.body[body].in_fluid) return;
  const double density = *n.opt_density, viscosity = *n.opt_viscosity;
  const double* inertia = n.body_inertia + 3 * static_cast<ptrdiff_t>(body);
  double box[3];
  for (int i = 0; i < 3; ++i) {
    const int j = i == 0 ? 1 : 0, k = i == 2 ? 1 : 2;
    box[i] = std::sqrt(std::max(mjMINVAL, inertia[j] + inertia[k] - inertia[i]) /
                       n.body_mass[body] * 6.0);
  }
  if (viscosity > 0) {
    const double diameter = (box[0] + box[1] + box[2]) / 3.0;
    *torque = -mjPI * diameter * diameter * diameter * viscosity;
    *force = -3.0 * mjPI * diameter * viscosity;
  }
  if (density > 0) {
    for (int i = 0; i < 3; ++i) {
      const double j = box[i == 0 ? 1 : 0], k = box[i == 2 ? 1 : 2];
      quadratic_force[i] = 0.5 * density * j * k;
      quadratic_torque[i] = density * box[i] * (j * j * j * j + k * k * k * k);
    }
  }
}

namespace {

// mj_diagApprox's of the rows of an equality: moving, turning.
void EqualityWeight(const Tables& t, const Numbers& n, const Equality& e, double* weight) {
  if (e.kind == EqualityKind::kTendon) {
    weight[0] = e.tendon_inverse_weight;
    return;
  }
  if (e.kind == EqualityKind::kJoint) {
    weight[0] = n.dof_invweight0[t.joint[e.object1].dof];
    if (e.object2 >= 0) weight[0] += n.dof_invweight0[t.joint[e.object2].dof];
    return;
  }
  for (int i = 0; i < 2; ++i) {
    weight[i] = n.body_invweight0[ptrdiff_t{2} * e.body1 + i] +
                n.body_invweight0[ptrdiff_t{2} * e.body2 + i];
  }
}

}  // namespace

size_t Derivation::Size(const Tables& t) {
  int size = 0;
#define PYFASTENV_LANES_NUMBER(name, count) size += count;
  PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
  return static_cast<size_t>(size);
}

void Derivation::Run(const Tables& t, uint64_t which, Numbers& n, double* out) const {
  double* to[static_cast<size_t>(Number::kCount)] = {};
#define PYFASTENV_LANES_NUMBER(name, count)   \
  if ((which & Bit(Number::name)) != 0) {     \
    to[static_cast<int>(Number::name)] = out; \
    n.name = out;                             \
    std::fill_n(out, count, 0.0);             \
  }                                           \
  out += count;
  PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
  const auto place = [&](Number number) { return to[static_cast<int>(number)]; };
  if (double* acc = place(Number::world_acc)) {
    for (int i = 0; i < 3; ++i) acc[i] = (gravity_ ? n.opt_gravity[i] : 0) * -1;
  }
  if (double* inverse = place(Number::inverse_subtree_mass)) {
    for (int b = 0; b < t.nbody; ++b) {
      if (!t.body[b].massless) inverse[b] = 1.0 / n.body_subtreemass[b];
    }
  }
  if (double* torque = place(Number::viscous_torque)) {
    double *force = place(Number::viscous_force), *torque2 = place(Number::quadratic_torque),
           *force2 = place(Number::quadratic_force);
    for (ptrdiff_t b = 0; b < t.nbody; ++b) {
      FluidBox(t, n, static_cast<int>(b), torque + b, force + b, torque2 + 3 * b, force2 + 3 * b);
    }
  }
  double *friction = place(Number::pair_friction), *weight = place(Number::pair_inverse_weight);
  for (size_t k = 0; weight != nullptr && k < pairs_.size(); ++k) {
    double combined[kFrictions];
    CombineFriction(pairs_[k], n.geom_friction, combined);
    const double sliding = combined[0];
    const double translation = n.body_invweight0[ptrdiff_t{2} * t.pair[k].body1] +
                               n.body_invweight0[ptrdiff_t{2} * t.pair[k].body2];
    if (friction != nullptr) std::copy_n(combined, kFrictions, friction + kFrictions * k);
    const bool pyramid = pairs_[k].condim > 1 && !t.elliptic;
    weight[k] = pyramid ? translation + sliding * sliding * translation : translation;
  }
  if (double* limits = place(Number::pair_limits)) LimitPairs(t, n, limits);
  if (double* weight_of_equality = place(Number::equality_inverse_weight)) {
    for (int e = 0; e < t.num_equalities; ++e, weight_of_equality += 2) {
      EqualityWeight(t, n, t.equality[e], weight_of_equality);
    }
  }
  if (double* soft = place(Number::softness)) {
    for (const SoftnessSource& source : softness_) {
      const Softness made = MakeSoftness(SolverOf(n, source));
      std::memcpy(soft, &made, sizeof(made));
      soft += Softness::kNumbers;
    }
  }
}

void Derivation::LimitPairs(const Tables& t, const Numbers& n, double* limits) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::optional<mjModel> own;
  std::optional<BoundingVolumes> volumes;
  if (volumes_ != nullptr) {
    own = *volumes_;
    for (const Number number : kGeometry) Set(*own, number, Get(n, number));
    volumes.emplace(*own, fixed_shapes_);
  }
  for (int k = 0; k < t.num_pairs; ++k) {
    const Pair& pair = t.pair[k];
    const ContactSource& source = pairs_[static_cast<size_t>(k)];
    const auto set = [&](PairLimit which, double x) {
      limits[static_cast<int>(which) * t.num_pairs + k] = x;
    };
    const double margin = source.explicit_pair >= 0
                              ? source.margin
                              : n.geom_margin[pair.geom1] + n.geom_margin[pair.geom2];
    const double reach = margin + source.gap;
    const double radius1 = n.geom_rbound[pair.geom1], radius2 = n.geom_rbound[pair.geom2];
    const bool bounded = radius2 > 0 && (pair.plane || radius1 > 0);
    set(PairLimit::kMargin, margin);
    set(PairLimit::kReach, reach);
    set(PairLimit::kBound, !bounded     ? kInfinity
                           : pair.plane ? reach + radius2
                                        : radius1 + radius2 + reach);
    const GeomPair geoms{pair.geom1, pair.geom2, source.explicit_pair};
    const Sight sight =
        pair.all_seen ? Sight{kInfinity, 0, 0, false} : volumes->Of(*own, geoms, reach);
    set(PairLimit::kSeen, sight.distance);
    set(PairLimit::kOverlap, sight.overlap);
  }
}

bool Derivation::MustBeTheModels(Number field, int index) const {
  for (const auto& [number, count] : kShape) {
    if (number == field) return IsKept(field, index / count);
  }
  return false;
}

// And capsules are no spheres, which MuJoCo's functions collide.
bool Derivation::ShapesAreKept(const Tables& t, const Numbers& n) const {
  for (const auto& [number, count] : kShape) {
    if (!t.Varies(number)) continue;
    const double *own = Get(n, number), *of_model = Get(t.numbers, number);
    for (ptrdiff_t g = 0; g < t.ngeom; ++g) {
      const bool same = std::equal(own + count * g, own + count * (g + 1), of_model + count * g);
      if (!same && IsKept(number, g)) return false;
    }
  }
  if (!t.Varies(Number::geom_size)) return true;
  const auto is_segment = [&](ptrdiff_t geom) { return n.geom_size[3 * geom + 1] > 1e-6; };
  return std::all_of(t.pair, t.pair + t.num_pairs, [&](const Pair& pair) {
    const bool first = pair.kind == PairKind::kCapsuleCapsule;
    const bool second =
        first || pair.kind == PairKind::kPlaneCapsule || pair.kind == PairKind::kSphereCapsule;
    return (!first || is_segment(pair.geom1)) && (!second || is_segment(pair.geom2));
  });
}

namespace {

// How many of the numbers are used as a range that clamps; others may be in any order.
bool IsRange(Number number) {
  return number == Number::jnt_actfrcrange || number == Number::actuator_ctrlrange ||
         number == Number::actuator_forcerange;
}

bool InvertedRange(const double* range, int count) {
  for (int i = 0; i < count; i += 2) {
    if (range[i] > range[i + 1]) return true;
  }
  return false;
}

bool ShortQuaternion(const double* quat, int count) {
  constexpr double kShortest = 1e-5;
  for (int i = 0; i < count; i += 4) {
    const double squared = quat[i] * quat[i] + quat[i + 1] * quat[i + 1] +
                           quat[i + 2] * quat[i + 2] + quat[i + 3] * quat[i + 3];
    if (!(squared >= kShortest * kShortest)) return true;
  }
  return false;
}

// Products of these are finite, as programs take for granted.
constexpr double kLargest = 1e100;

}  // namespace

std::string Derivation::UnusualNumber(const Tables& t, const Numbers& n, bool all) {
#define PYFASTENV_LANES_NUMBER(name, count, field)                                      \
  if (all || t.Varies(Number::name)) {                                                  \
    const int size = count;                                                             \
    for (int i = 0; i < size; ++i) {                                                    \
      if (!(std::abs(n.name[i]) <= kLargest)) return "numbers beyond 1e100 in " #field; \
    }                                                                                   \
    if (IsRange(Number::name) && InvertedRange(n.name, size)) {                         \
      return "inverted ranges in " #field;                                              \
    }                                                                                   \
    if ((Number::name == Number::body_quat || Number::name == Number::geom_quat) &&     \
        ShortQuaternion(n.name, size)) {                                                \
      return "quaternions of no length in " #field;                                     \
    }                                                                                   \
  }
  PYFASTENV_LANES_FIELD_NUMBERS(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
  return {};
}

bool Derivation::IsUsual(const Tables& t, const Numbers& n) const {
  if (!UnusualNumber(t, n, /*all=*/false).empty()) return false;
  if (!ShapesAreKept(t, n)) return false;
  for (int b = 0; b < t.nbody; ++b) {
    if ((n.body_subtreemass[b] < mjMINVAL) != t.body[b].massless) return false;
    if (InFluid(n, b) != t.body[b].in_fluid) return false;
  }
  // then, too, a fluid has forces on ellipsoids
  if (t.Varies(Number::opt_density) && *n.opt_density < 0) return false;
  if (t.Varies(Number::opt_viscosity) && *n.opt_viscosity < 0) return false;
  if (t.has_gravcomp && t.Varies(Number::opt_gravity) && mju_norm3(n.opt_gravity) == 0) {
    return false;
  }
  if (t.integrator == Integrator::kEuler && t.implicit_damping && t.Varies(Number::dof_damping) &&
      !std::any_of(n.dof_damping, n.dof_damping + t.nv, [](double x) { return x > 0; })) {
    return false;
  }
  if (t.Varies(Number::dof_frictionloss)) {
    int losses = 0;
    for (int i = 0; i < t.nv; ++i) losses += static_cast<int>(n.dof_frictionloss[i] != 0);
    for (int k = 0; k < t.num_friction_losses; ++k) {
      if (t.friction_loss[k].tendon >= 0) continue;
      losses -= static_cast<int>(n.dof_frictionloss[t.friction_loss[k].dof] != 0);
      if (n.dof_frictionloss[t.friction_loss[k].dof] <= 0) return false;
    }
    if (losses != 0) return false;
  }
  if (!Varies(t, kSolver)) return true;
  return std::all_of(softness_.begin(), softness_.end(), [&](const SoftnessSource& source) {
    return KnownReference(SolverOf(n, source).ref);
  });
}

}  // namespace pyfastenv::lanes
