#include "lanes/constraint_solver.h"

#include <algorithm>
#include <new>
#include <utility>

#include "lanes/contacts.h"
#include "lanes/lane_stepper.h"
#include "lanes/number_access.h"
#include "lanes/sensors.h"
#include "mujoco/error_trap.h"

namespace pyfastenv::lanes {

namespace {

// What rows are made of, those of contacts and ties as well, and of ties alone; what they are
// solved with.
constexpr Field kOfRows[] = {Field::qpos, Field::ten_length, Field::ten_J};
constexpr Field kOfMotion[] = {Field::subtree_com, Field::cdof};
constexpr Field kOfTies[] = {Field::xpos,      Field::xquat, Field::xmat,
                             Field::site_xpos, Field::cvel,  Field::cdof_dot};
constexpr Field kOfSolution[] = {Field::qvel,          Field::M,           Field::qLD,
                                 Field::qLDiagInv,     Field::qfrc_smooth, Field::qacc_smooth,
                                 Field::qacc_warmstart};

bool HasWarned(const mjData& d) {
  return std::any_of(d.warning, d.warning + mjNWARNING,
                     [](const mjWarningStat& warning) { return warning.number > 0; });
}

}  // namespace

ConstraintSolver::ConstraintSolver(std::shared_ptr<const mjModel> model, const LaneStepper& lanes)
    : model_(std::move(model)), header_(*model_), lanes_(lanes), data_(MakeData(*model_)) {}

ConstraintCall ConstraintSolver::call() { return {this, data_->eq_active, Solve}; }

bool ConstraintSolver::Solve(void* self, int lane, SolvedConstraints* solved) {
  auto& that = *static_cast<ConstraintSolver*>(self);
  mjData& d = *that.data_;
  const mjModel& m = that.header_;
  that.ReadForRows(lane);
  if (!that.Run([&] { mj_makeConstraint(&m, &d); })) return false;
  if (d.nefc > 0) {
    that.Read(kOfSolution, lane);
    const bool ran = that.Run([&] {
      mj_island(&m, &d);
      mj_projectConstraint(&m, &d);
      mj_referenceConstraint(&m, &d);
      mj_fwdConstraint(&m, &d);
    });
    if (!ran) return false;
  }
  that.ListRows();
  *solved = {d.qacc, d.qfrc_constraint, that.rows_.data(), d.nefc};
  return true;
}

void ConstraintSolver::Read(std::span<const Field> fields, int lane) {
  for (const Field field : fields) lanes_.Read(field, lane, *data_);
}

void ConstraintSolver::ReadForRows(int lane) {
  const Plan& plan = lanes_.plan();
  for (const Number field : plan.fields()) {
    Set(header_, field, Get(lanes_.numbers(lane), field));
  }
  ListContacts(lanes_, lane, header_, *data_);
  Read(kOfRows, lane);
  const bool ties = plan.tables().has_frame_equalities;
  if (ties || data_->ncon > 0) Read(kOfMotion, lane);
  if (!ties) return;
  Read(kOfTies, lane);
  TurnFrames(header_, *data_);
}

template <class F>
bool ConstraintSolver::Run(const F& call) {
  try {
    Trapped(call);
    if (!HasWarned(*data_)) return true;
  } catch (const MujocoError&) {
  }
  mj_resetData(model_.get(), data_.get());
  return false;
}

// Rows stand where lanes' own would: those of equalities and dry friction at their places, limits
// and contacts one after another.
void ConstraintSolver::ListRows() {
  const Tables& t = lanes_.plan().tables();
  const mjData& d = *data_;
  rows_.resize(static_cast<size_t>(d.nefc));
  int friction = 0, limit_row = FirstInequality(t);
  const auto limit_of = [&](bool of_tendon, int id) {
    return std::find_if(t.limit, t.limit + t.num_limits,
                        [&](const Limit& limit) {
                          return of_tendon == (limit.kind == LimitKind::kTendon) &&
                                 id == (of_tendon ? limit.tendon : limit.joint);
                        }) -
           t.limit;
  };
  for (int i = 0; i < d.nefc; ++i) {
    const int id = d.efc_id[i], type = d.efc_type[i];
    SolvedRow& row = rows_[static_cast<size_t>(i)];
    row = {0, d.efc_force[i], -1, 0, 0};
    if (type == mjCNSTR_EQUALITY) {
      const bool goes_on = i > 0 && d.efc_id[i - 1] == id;
      row.row = goes_on ? rows_[static_cast<size_t>(i) - 1].row + 1 : t.equality[id].first_row;
    } else if (type == mjCNSTR_FRICTION_DOF || type == mjCNSTR_FRICTION_TENDON) {
      const auto is_other = [&](const FrictionLoss& loss) {
        return id != (type == mjCNSTR_FRICTION_DOF ? loss.dof : loss.tendon);
      };
      while (is_other(t.friction_loss[friction])) ++friction;
      row.row = t.num_equality_rows + friction++;
    } else if (type == mjCNSTR_LIMIT_JOINT || type == mjCNSTR_LIMIT_TENDON) {
      row.row = limit_row++;
      row.limit = 2 * static_cast<int>(limit_of(type == mjCNSTR_LIMIT_TENDON, id));
      row.violation = d.efc_pos[i] - d.efc_margin[i];
      row.velocity = d.efc_vel[i];
    } else {
      row.row = FixedContactRow(t, id) + i - d.contact[id].efc_address;
    }
  }
}

}  // namespace pyfastenv::lanes
