// How the numbers that stages read are made from mjModel's: by the plan for the model's own, before
// every step for environments that have theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lanes/bounding_volumes.h"
#include "lanes/contact_source.h"
#include "lanes/numbers.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes {

/// The tables that must be derived anew if these vary, besides themselves.
uint64_t WithDerived(uint64_t varied);

class Derivation {
 public:
  Derivation() = default;
  explicit Derivation(const mjModel& m);

  /// A pair of geoms, in Tables' order.
  void AddPair(const ContactSource& source) { pairs_.push_back(source); }
  /// A geom whose sizes, volumes, margin and quaternion (which may be no unit's) must be the
  /// model's in every environment: MuJoCo's functions, which see the model, collide it or wrap
  /// tendons about it.
  void KeepShape(int geom);
  /// A plane, whose volumes must be the model's: those that the compiler makes have no end.
  void KeepVolumes(int geom);
  /// The model whose broad and middle phases may not see pairs; without it they see all.
  void SetVolumes(std::shared_ptr<const mjModel> model);
  const ContactSource& contact(int pair) const { return pairs_[static_cast<size_t>(pair)]; }
  /// The indices of the softness of a contact, of a joint's limit and of a dof's dry friction. One
  /// stands for many that are equal in every environment. `t` has the model's numbers.
  int AddSoftness(const Tables& t, const ContactSource& contact);
  int AddJointSoftness(const Tables& t, int joint);
  int AddDofSoftness(const Tables& t, int dof);
  /// Adds the softness of an equality, whose solref and solimp are the same in all environments.
  int AddFixedSoftness(const Tables& t, const double* solref, const double* solimp);
  int num_softness() const { return static_cast<int>(softness_.size()); }

  /// Doubles in all derived numbers.
  static size_t Size(const Tables& t);
  /// Makes those derived numbers that are in `which`, in `out`, and points `n` at them.
  void Run(const Tables& t, uint64_t which, Numbers& n, double* out) const;
  /// Whether a step with these numbers takes the same ways as one with the model's.
  bool IsUsual(const Tables& t, const Numbers& n) const;
  /// Which numbers no program can take (they leave out products with zero and what clamps to
  /// inverted ranges); empty if all are fine. Of fields that vary alone unless `all`.
  static std::string UnusualNumber(const Tables& t, const Numbers& n, bool all);
  /// Whether environments' own numbers of a field, at this index, must be the model's (KeepShape,
  /// KeepVolumes).
  bool MustBeTheModels(Number field, int index) const;

 private:
  struct Solver {  // solref and solimp
    double ref[kReferences], imp[kImpedances];
  };
  struct SoftnessSource {
    enum Kind { kContact, kJoint, kDof, kFixed } kind;
    int index;  // of a joint or dof
    ContactSource contact;
    Solver fixed;
    Softness of_model;
  };

  bool IsKept(Number field, ptrdiff_t geom) const;
  bool ShapesAreKept(const Tables& t, const Numbers& n) const;
  void LimitPairs(const Tables& t, const Numbers& n, double* limits) const;
  int IndexOf(const Tables& t, SoftnessSource source);
  static Solver SolverOf(const Numbers& n, const SoftnessSource& source);
  Softness MakeSoftness(const Solver& solver) const;
  void FluidBox(const Tables& t, const Numbers& n, int body, double* torque, double* force,
                double* quadratic_torque, double* quadratic_force) const;

  bool gravity_ = true, reference_safety_ = true;
  double timestep_ = 0;
  std::vector<ContactSource> pairs_;
  std::vector<uint64_t> kept_;  // (ngeom) bits of Number that must be the model's
  std::shared_ptr<const mjModel> volumes_;
  std::vector<Box> fixed_shapes_;
  std::vector<SoftnessSource> softness_;
};

}  // namespace pyfastenv::lanes
