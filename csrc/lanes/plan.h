// A model compiled for lanes: what physics with one environment per SIMD lane needs to know of it.
//
// Plan::Make either gives a plan with which LaneStepper steps bit for bit as mj_step does, or says
// in a sentence what the model has that lanes do not do. It checks itself: some hundred states are
// stepped both ways, and a plan whose results differ in one bit (another C library)
// is refused.
//
// A plan is immutable and shared by all workers. It keeps copies; the model may go away.
#pragma once

#include <mujoco/mujoco.h>

#include <memory>
#include <string>
#include <vector>

#include "lanes/derivation.h"
#include "lanes/features.h"
#include "lanes/kernels.h"
#include "lanes/other_sensors.h"
#include "lanes/program/programs.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes {

class BoundingVolumes;
struct PlanResult;

/// Whether a plan computes sensordata (LaneStepper::ReadSensors), of a model without sensors that
/// lanes cannot return (UnsupportedSensordata).
enum class Sensing : bool { kNo, kYes };

class Plan {
 public:
  /// `kernels`: the instruction set to run on. `fields`: those of mjModel ("body_mass",
  /// "opt.gravity") of which every environment has its own numbers. `whole`: the model as MuJoCo
  /// made it, which can be copied, where `model` is a header that leaves something out; null:
  /// `model` is.
  static PlanResult Make(const mjModel& model, const Kernels& kernels = BestKernels(),
                         const std::vector<std::string>& fields = {},
                         const mjModel* whole = nullptr, Sensing sensing = Sensing::kNo);
  /// The same without the trial: to find where bits differ.
  static PlanResult MakeUnchecked(const mjModel& model, const Kernels& kernels = BestKernels(),
                                  const std::vector<std::string>& fields = {},
                                  const mjModel* whole = nullptr, Sensing sensing = Sensing::kNo);

  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const Tables& tables() const { return tables_; }
  const Kernels& kernels() const { return kernels_; }
  /// For what MuJoCo's collisions and rays are asked about; null if they never are.
  const std::shared_ptr<const mjModel>& kept_model() const { return kept_model_; }
  /// Environments that step together.
  int width() const { return kernels_.width; }
  /// The model fields that each environment has its own numbers of, in the order asked for.
  const std::vector<Number>& fields() const { return fields_; }
  const Derivation& derivation() const { return derivation_; }
  /// Sensors that a plan with sensors leaves to MuJoCo's functions.
  const OtherSensors& other_sensors() const { return other_sensors_; }

 private:
  Plan(const mjModel& model, const Kernels& kernels, const std::vector<std::string>& fields,
       const mjModel& whole, Sensing sensing);

  void SetNumbers(const mjModel& m);
  void SetSizes(const mjModel& m);
  void SetMatrix(const mjModel& m);
  void AddBodies(const mjModel& m);
  void AddJoints(const mjModel& m);
  void AddActuators(const mjModel& m);
  void AddTendons(const mjModel& m);
  void AddTendonTerms(const mjModel& m, int tendon);
  void AddTendonPieces(const mjModel& m, int tendon);
  void AddEqualities(const mjModel& m);
  void AddFrictionLosses(const mjModel& m);
  void AddLimits(const mjModel& m);
  void AddPairs(const mjModel& m, const mjModel& whole);
  void AddContactPair(const mjModel& m, const GeomPair& geoms, const BoundingVolumes& volumes);
  void AddSensors(const mjModel& m, const mjModel& whole);
  void KeepModel(const mjModel& whole);
  void SetConstrainedTrees(const mjModel& m);
  void DeriveNumbers();
  void SetRowLayout(const mjModel& m);

  const Kernels& kernels_;
  std::vector<Number> fields_;
  Derivation derivation_;
  std::vector<double> model_numbers_, derived_numbers_;
  std::vector<Body> bodies_;
  std::vector<FixedFrame> geoms_, sites_;
  std::vector<GeomBounds> bounds_;
  std::vector<Joint> joints_;
  std::vector<Dof> dofs_;
  std::vector<FreeBody> free_bodies_;
  std::vector<Actuator> actuators_;
  std::vector<Tendon> tendons_;
  std::vector<TendonTerm> tendon_terms_;
  std::vector<TendonPiece> tendon_pieces_;
  std::vector<unsigned char> moves_;
  std::vector<ForceLimit> force_limits_;
  std::vector<Equality> equalities_;
  std::vector<FrictionLoss> friction_losses_;
  std::vector<Limit> limits_;
  std::vector<Pair> pairs_;
  std::vector<Surface> surfaces_;
  std::vector<Sensor> sensors_;
  std::vector<RayTarget> ray_targets_;
  std::unique_ptr<bool[]> still_;
  std::vector<unsigned char> counted_;
  OtherSensors other_sensors_;
  std::vector<int> dof_tree_;
  // rows of matrices: numbers of entries, where they begin, columns
  struct OwnedRows {
    std::vector<int> rownnz, rowadr, colind;
    SparseRows view() const { return {rownnz.data(), rowadr.data(), colind.data()}; }
  };
  OwnedRows D_, ten_J_, moment_;
  std::vector<int> D_diag_, mapD2M_;
  std::vector<int> M_rownnz_, M_rowadr_, M_colind_;
  std::shared_ptr<const mjModel> kept_model_;
  Programs programs_;
  Tables tables_{};  // points into the vectors and programs
};

/// Exactly one of the two is set.
struct PlanResult {
  std::shared_ptr<const Plan> plan;
  std::string refusal;  // "lanes do not do tendons with springs (tendon 'left')"
};

}  // namespace pyfastenv::lanes
