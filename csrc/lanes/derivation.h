// How the numbers that stages read are made from mjModel's: by the plan for the model's own, before
// every step for environments that have theirs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

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
  void AddPair(const ContactSource& source, int geom1, int geom2);
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
  /// Whether environments' own numbers of a field, at this index, must be the model's: where geoms
  /// are that may touch something, since MuJoCo's bounding volumes stay where they are.
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

  bool TouchingGeomsStay(const Tables& t, const Numbers& n) const;
  int IndexOf(const Tables& t, SoftnessSource source);
  static Solver SolverOf(const Numbers& n, const SoftnessSource& source);
  Softness MakeSoftness(const Solver& solver) const;
  void FluidBox(const Tables& t, const Numbers& n, int body, double* torque, double* force,
                double* quadratic_torque, double* quadratic_force) const;

  bool gravity_ = true, reference_safety_ = true;
  double timestep_ = 0;
  std::vector<ContactSource> pairs_;
  std::vector<int> touching_geoms_;  // each once
  std::vector<SoftnessSource> softness_;
};

}  // namespace pyfastenv::lanes
