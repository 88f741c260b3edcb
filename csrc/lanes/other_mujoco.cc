// In place of the stages and all that knows newer structs, where MuJoCo is not the one that lanes
// were written for: no plan for any model, and so no LaneStepper that the rest would be called for.
// The trial of a plan would not do here. It finds what differs always, and 3.11 and 3.17 differ
// from lanes' order of operations so seldom that it passes. On other processors MuJoCo's own
// compiler has fused multiplications and additions where it saw fit.
#include "lanes/bounding_volumes.h"
#include "lanes/constraint_solver.h"
#include "lanes/features.h"
#include "lanes/kernels.h"
#include "lanes/narrow_phase.h"
#include "lanes/number_access.h"
#include "lanes/plan.h"
#include "lanes/self_check.h"
#include "lanes/sensors.h"
#include "mujoco/version.h"

namespace pyfastenv::lanes {

namespace {

constexpr const char* kOther =
    PYFASTENV_MUJOCO < 4000000 ? "a MuJoCo before 4.0" : "a MuJoCo that is not for Linux on x86-64";

constexpr Kernels kNoKernels = [] {
  Kernels none{};
  none.width = 1;
  return none;
}();

}  // namespace

const Kernels& BestKernels() { return kNoKernels; }

const Kernels* KernelsOfWidth(int width) { return width == 1 ? &kNoKernels : nullptr; }

PlanResult Plan::MakeUnchecked(const mjModel& /*model*/, const Kernels& /*kernels*/,
                               const std::vector<std::string>& /*fields*/, const mjModel* /*whole*/,
                               Sensing /*sensing*/) {
  return {nullptr, kOther};
}

PlanResult Plan::Make(const mjModel& model, const Kernels& kernels,
                      const std::vector<std::string>& fields, const mjModel* whole,
                      Sensing sensing) {
  return MakeUnchecked(model, kernels, fields, whole, sensing);
}

bool CollisionsAreMujocos() { return true; }

std::string SelfCheck(const mjModel& /*model*/,
                      std::span<const std::shared_ptr<const Plan>> /*plans*/) {
  return {};
}

const mjtNum* Get(const mjModel& /*model*/, Number /*number*/) { return nullptr; }

void Set(mjModel& /*header*/, Number /*number*/, const double* /*values*/) {}

bool HasSensors(const mjModel& /*model*/, Sensors /*which*/) { return false; }

bool LacksBodyForces(const mjModel& /*model*/) { return false; }

bool SensesTendons(const mjModel& /*model*/, Sensors /*which*/) { return false; }

std::string UnsupportedSensor(const mjModel& /*model*/, Sensors /*which*/) { return kOther; }

std::string UnsupportedSensordata(const mjModel& /*model*/,
                                  const std::vector<std::string>& /*fields*/) {
  return kOther;
}

bool WriteSensordata(const LaneStepper& /*lanes*/, int /*lane*/, const mjModel& /*model*/,
                     mjData& /*data*/, double* /*out*/) {
  return false;
}

void ComputeSensors(const LaneStepper& /*lanes*/, int /*lane*/, const mjModel& /*model*/,
                    mjData& /*data*/, Sensors /*which*/) {}

std::vector<Box> FixedShapes(const mjModel& /*m*/) { return {}; }

BoundingVolumes::BoundingVolumes(const mjModel& /*m*/, const std::vector<Box>& /*fixed*/) {}

Sight BoundingVolumes::Of(const mjModel& /*m*/, const GeomPair& /*pair*/, double /*reach*/) const {
  return {};
}

Separation::Separation(const mjModel& model, const Tables& tables)
    : model_(model), tables_(tables) {}

Rays::Rays(const mjModel& m, const Tables& /*tables*/) : m_(m) {}

NarrowPhase::NarrowPhase(std::shared_ptr<const mjModel> model, const Tables& tables)
    : model_(std::move(model)),
      header_(*model_),
      tables_(tables),
      separation_(*model_, tables_),
      rays_(*model_, tables_) {}

void NarrowPhase::SetModels(const mjModel* const* /*models*/, int /*count*/) {}

int NarrowPhase::Collide(void* /*self*/, int /*lane*/, int /*pair*/, const double* /*pos1*/,
                         const double* /*mat1*/, const double* /*pos2*/, const double* /*mat2*/,
                         ContactPoint* /*points*/) {
  return -1;  // as after an error of MuJoCo's: the environment is left to mj_step
}

Positions NarrowPhase::PositionsOf(void* /*self*/) { return {}; }

ConstraintSolver::ConstraintSolver(std::shared_ptr<const mjModel> model, const LaneStepper& lanes)
    : model_(std::move(model)), lanes_(lanes) {}

ConstraintCall ConstraintSolver::call() { return {}; }

bool ConstraintSolver::Solve(void* /*self*/, int /*lane*/, SolvedConstraints* /*solved*/) {
  return false;
}

int NarrowPhase::List(void* /*self*/, int /*lane*/, const ListedContact** /*contacts*/) {
  return -1;
}

double NarrowPhase::Cast(void* /*self*/, int /*lane*/, const RayTarget& /*target*/,
                         const GeomPlace& /*place*/, const double* /*from*/,
                         const double* /*along*/) {
  return -1.0;
}

}  // namespace pyfastenv::lanes
