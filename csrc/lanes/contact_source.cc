#include "lanes/contact_source.h"

#include <algorithm>
#include <cstddef>

namespace pyfastenv::lanes {

namespace {

ContactSource OfExplicitPair(const mjModel& m, int k) {
  ContactSource r{};
  r.condim = m.pair_dim[k];
  r.margin = m.pair_margin[k];
  r.gap = m.pair_gap[k];
  r.geom1 = r.geom2 = -1;
  r.explicit_pair = k;
  std::copy_n(m.pair_friction + ptrdiff_t{kFrictions} * k, kFrictions, r.friction);
  std::copy_n(m.pair_solref + ptrdiff_t{mjNREF} * k, mjNREF, r.solref);
  std::copy_n(m.pair_solimp + ptrdiff_t{mjNIMP} * k, mjNIMP, r.solimp);
  return r;
}

// The first geom's share.
double Mix(double solmix1, double solmix2) {
  if (solmix1 >= mjMINVAL && solmix2 >= mjMINVAL) return solmix1 / (solmix1 + solmix2);
  if (solmix1 >= mjMINVAL) return 1;
  return solmix2 < mjMINVAL ? 0.5 : 0;
}

}  // namespace

ContactSource SourceOfContact(const mjModel& m, const GeomPair& pair) {
  if (pair.explicit_pair >= 0) return OfExplicitPair(m, pair.explicit_pair);
  const int geom1 = pair.geom1, geom2 = pair.geom2;
  ContactSource r{};
  r.margin = m.geom_margin[geom1] + m.geom_margin[geom2];
  r.gap = m.geom_gap[geom1] + m.geom_gap[geom2];
  r.explicit_pair = -1;
  if (m.geom_priority[geom1] != m.geom_priority[geom2]) {
    r.geom1 = m.geom_priority[geom1] > m.geom_priority[geom2] ? geom1 : geom2;
    r.geom2 = -1;
    r.condim = m.geom_condim[r.geom1];
    r.mix = 1;
    return r;
  }
  r.geom1 = geom1;
  r.geom2 = geom2;
  r.condim = std::max(m.geom_condim[geom1], m.geom_condim[geom2]);
  r.mix = Mix(m.geom_solmix[geom1], m.geom_solmix[geom2]);
  return r;
}

void CombineFriction(const ContactSource& source, const double* geom_friction, double* friction) {
  // MuJoCo keeps friction above mjMINMU when it makes a contact
  const auto kept = [](double x) { return std::max(mjMINMU, x); };
  if (source.explicit_pair >= 0) {
    for (int i = 0; i < kFrictions; ++i) friction[i] = kept(source.friction[i]);
    return;
  }
  const double* friction1 = geom_friction + ptrdiff_t{3} * source.geom1;
  const double* friction2 =
      source.geom2 < 0 ? friction1 : geom_friction + ptrdiff_t{3} * source.geom2;
  const auto larger = [&](int kind) { return kept(std::max(friction1[kind], friction2[kind])); };
  friction[0] = friction[1] = larger(0);  // sliding
  friction[2] = larger(1);                // spinning
  friction[3] = friction[4] = larger(2);  // rolling
}

void CombineSolver(const ContactSource& source, const double* geom_solref,
                   const double* geom_solimp, double* solref, double* solimp) {
  if (source.explicit_pair >= 0) {
    std::copy_n(source.solref, mjNREF, solref);
    std::copy_n(source.solimp, mjNIMP, solimp);
    return;
  }
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

bool KnownReference(const double* solref) { return (solref[0] > 0) == (solref[1] > 0); }

}  // namespace pyfastenv::lanes
