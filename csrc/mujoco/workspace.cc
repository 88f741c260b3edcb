#include "mujoco/workspace.h"

#include <mujoco/mjxmacro.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

#include "mujoco/model_features.h"
#include "mujoco/owned.h"
#include "mujoco/version.h"

namespace pyfastenv {

namespace {

constexpr size_t kPoisonedArena = 1 << 16;  // at least [bytes]

// Whether any two geoms can be in contact, by MuJoCo's contact affinities.
bool MayTouch(const mjModel& m) {
  if (m.npair > 0 || m.nflex > 0) return true;
  for (int i = 0; i < m.ngeom; ++i) {
    for (int j = 0; j < i; ++j) {
      if ((m.geom_contype[i] & m.geom_conaffinity[j]) != 0 ||
          (m.geom_contype[j] & m.geom_conaffinity[i]) != 0) {
        return true;
      }
    }
  }
  return false;
}

mjModel Header(const mjModel& shared, ModelParts parts) {
  mjModel model = shared;
  if (parts == ModelParts::kAll) return model;
  if (model.nsensor == 0 && model.nplugin == 0) {
    model.ncam = 0;
    model.nlight = 0;
  }
  if (!MayTouch(model)) model.opt.disableflags |= mjDSBL_CONTACT;
  return model;
}

// Whether mj_resetData reads the field: a mocap body starts at its body_pos, a history where its
// sensor's interval says.
bool ShapesReset(const ModelField& field) {
  return field.name == "body_pos" || field.name == "body_quat" || field.name == "qpos0" ||
         field.name == "sensor_interval";
}

}  // namespace

Workspace::Workspace(SharedModel model, ModelParts parts)
    : shared_(std::move(model)),
      plain_model_(Header(*shared_, parts)),
      model_(plain_model_),
      state_size_(mj_stateSize(&model_, mjSTATE_INTEGRATION)),
      initial_state_(static_cast<size_t>(state_size_)) {
  MakeData();
  CheckSupported(model_, *data_);
  Save(initial_state_.data());
}

Workspace::~Workspace() { mj_deleteData(data_); }

void Workspace::MakeData() {
  DataPointer data = pyfastenv::MakeData(model_);
  mj_deleteData(data_);
  data_ = data.release();
  broken_ = false;
}

void Workspace::Load(const double* state) {
  if (broken_) MakeData();
  // of whatever was loaded before, and given up half-way
  std::memset(data_->warning, 0, sizeof(data_->warning));
  mj_setState(&model_, data_, state, mjSTATE_INTEGRATION);
}

void Workspace::Save(double* state) const {
  mj_getState(&model_, data_, state, mjSTATE_INTEGRATION);
}

// mjSTATE_INTEGRATION begins with time, positions, velocities and activations.
void Workspace::LoadMotion(const double* state) {
  if (broken_) MakeData();
  std::memset(data_->warning, 0, sizeof(data_->warning));
  data_->time = *state++;
  std::copy_n(state, model_.nq, data_->qpos);
  std::copy_n(state += model_.nq, model_.nv, data_->qvel);
  std::copy_n(state += model_.nv, model_.na, data_->act);
}

void Workspace::SaveMotion(double* state) const {
  *state++ = data_->time;
  state = std::copy_n(data_->qpos, model_.nq, state);
  state = std::copy_n(data_->qvel, model_.nv, state);
  std::copy_n(data_->act, model_.na, state);
}

// Arrays that the engine never writes for this model are the same for all environments.
bool Workspace::IsConstant(std::string_view name) const {
  const int disabled = shared_->opt.disableflags;
  if (name == "act_dot") return (disabled & mjDSBL_ACTUATION) != 0;
  if (name == "sensordata") return (disabled & mjDSBL_SENSOR) != 0;
  return false;
}

void Workspace::Poison() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr int kNowhere = -77'777;  // of arrays of places, which every evaluation writes anew
  const auto is_place = [](std::string_view name) {
    return name.starts_with("moment_") || name.starts_with("ten_wrap") || name == "wrap_obj";
  };
  // MuJoCo's own table of mjData's arrays; sizes are members of the model
#define PYFASTENV_FILL(type, field, rows, columns)                                       \
  {                                                                                      \
    const size_t size = static_cast<size_t>(model_.rows) * static_cast<size_t>(columns); \
    if constexpr (std::is_same_v<type, mjtNum>) {                                        \
      if (!IsConstant(#field)) std::fill_n(data_->field, size, kNan);                    \
    } else if constexpr (std::is_same_v<type, int>) {                                    \
      if (is_place(#field)) std::fill_n(data_->field, size, kNowhere);                   \
    }                                                                                    \
  }
#define X PYFASTENV_FILL
#undef XNV
#define XNV X
#undef MJ_M
#define MJ_M(n) model_.n
  MJDATA_POINTERS
#undef MJ_M
#define MJ_M(n) n
#undef X
#undef XNV
#define XNV X
#undef PYFASTENV_FILL
  // contacts, rows of constraints, islands: all ones are NaN, and -1
  const size_t used = std::max({static_cast<size_t>(data_->maxuse_arena),
                                static_cast<size_t>(data_->parena), size_t{kPoisonedArena}});
  std::memset(data_->arena, 0xFF, std::min<size_t>(data_->narena, used));
  data_->ncon = data_->nefc = data_->ne = data_->nf = data_->nl = -1;
  std::fill_n(data_->energy, 2, kNan);
#if PYFASTENV_MUJOCO >= 4000000
  // as if what sensors are computed from were there
  data_->flg_energypos = data_->flg_energyvel = data_->flg_subtreevel = data_->flg_rnepost = 1;
#endif
}

void Workspace::LoadRest(const double* state) {
  std::vector<double> whole(state, state + state_size_);
  SaveMotion(whole.data());
  mj_setState(&model_, data_, whole.data(), mjSTATE_INTEGRATION);
}

void Workspace::ResetData() {
  Run([&] { mj_resetData(&model_, data_); });
}

void Workspace::Restart() {
  if (restart_differs_) {
    ResetData();
    return;
  }
  mj_setState(&model_, data_, initial_state_.data(), mjSTATE_INTEGRATION);
  mju_zero(data_->act_dot, model_.na);  // left as it is where actuators are left out
  mju_zero(data_->cacc, 6 * model_.nbody);
  mju_zero(data_->cfrc_int, 6 * model_.nbody);
  mju_zero(data_->cfrc_ext, 6 * model_.nbody);
}

void Workspace::Forward() {
  CheckNoCallbacks();
  Run([&] { mj_forward(&model_, data_); });
}

void Workspace::SetPassive(bool passive) {
  int& flags = model_.opt.disableflags;
  flags &= ~mjDSBL_ACTUATION;
  flags |= passive ? mjDSBL_ACTUATION : shared_->opt.disableflags & mjDSBL_ACTUATION;
}

void Workspace::Step(int num_steps, bool external_forces) {
  CheckNoCallbacks();
  Run([&] {
    for (int i = 0; i < num_steps; ++i) mj_step(&model_, data_);
    if (external_forces) mj_rnePostConstraint(&model_, data_);
  });
}

bool Workspace::Diverged() const {
  const mjWarningStat* warning = data_->warning;
  if (warning[mjWARN_BADQPOS].number + warning[mjWARN_BADQVEL].number +
          warning[mjWARN_BADQACC].number >
      0) {
    return true;
  }
  const auto bad = [](double x) { return !(std::abs(x) <= mjMAXVAL); };
  return std::any_of(data_->qpos, data_->qpos + model_.nq, bad) ||
         std::any_of(data_->qvel, data_->qvel + model_.nv, bad);
}

std::vector<double> Workspace::FieldDefaults(const ModelField& field) const {
  // option() needs a mutable model, and only takes an address in it
  auto* whole = const_cast<mjModel*>(shared_.get());
  const mjtNum* values = field.array != nullptr ? whole->*field.array : field.option(whole);
  return {values, values + field.size()};
}

void Workspace::AdoptFields() noexcept {
  for (const auto& field : expanded_) {
    // the rows that they point into are about to be replaced
    if (field.array != nullptr) model_.*field.array = (*shared_).*field.array;
  }
  expanded_.swap(prepared_);
  restart_differs_ =
      model_.nplugin > 0 || std::any_of(expanded_.begin(), expanded_.end(), ShapesReset);
}

void Workspace::SwapFields(const double* values) {
  for (const auto& field : expanded_) {
    if (field.array != nullptr) {
      model_.*field.array = const_cast<mjtNum*>(values);
    } else {
      std::copy_n(values, field.size(), field.option(&model_));
    }
    values += field.size();
  }
}

}  // namespace pyfastenv
