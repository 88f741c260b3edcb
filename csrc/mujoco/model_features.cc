#include "mujoco/model_features.h"

#include <algorithm>
#include <string>

#include "core/errors.h"
#include "mujoco/version.h"

namespace pyfastenv {

namespace {

// of mjtEnableBit; none in a MuJoCo that does not have it
#if PYFASTENV_MUJOCO >= 3004000
constexpr int kSleep = mjENBL_SLEEP;
#else
constexpr int kSleep = 0;
#endif
#if PYFASTENV_MUJOCO >= 4000000
constexpr int kIpc = mjENBL_IPC;
#else
constexpr int kIpc = 0;
#endif

// Whether the sensor e_kinetic shows the energy of the step before.
bool ShowsEnergyBefore(const mjModel& model) {
  return (model.opt.enableflags & mjENBL_ENERGY) != 0 &&
         std::count(model.sensor_type, model.sensor_type + model.nsensor, mjSENS_E_KINETIC) > 0;
}

[[noreturn]] void Refuse(const std::string& message) { throw BadValue(message); }

// MuJoCo's own plugins whose memory outside the state is constant, or written anew in every step
// before it is read (tests/python/test_model_features.py).
bool KeepsNothing(const std::string& plugin) {
  constexpr const char* kStateless[] = {"mujoco.pid", "mujoco.sensor.touch_grid"};
  return std::find(std::begin(kStateless), std::end(kStateless), plugin) != std::end(kStateless) ||
         plugin.starts_with("mujoco.sdf.");
}

}  // namespace

bool SharesState(const mjModel& model) {
  return (model.opt.enableflags & (kSleep | kIpc)) != 0 || ShowsEnergyBefore(model);
}

void CheckSupported(const mjModel& model, const mjData& data) {
  if ((model.opt.enableflags & kSleep) != 0) {
    Refuse(
        "the model lets bodies sleep, and MuJoCo keeps which of them do outside the state that an "
        "environment is saved as; turn it off: <option><flag sleep=\"disable\"/></option>");
  }
  if ((model.opt.enableflags & kIpc) != 0) {
    Refuse(
        "the model uses the contact mode ipc, and MuJoCo keeps its multipliers outside the state "
        "that an environment is saved as; turn it off: <option><flag ipc=\"disable\"/></option>");
  }
  if (ShowsEnergyBefore(model)) {
    Refuse(
        "the model computes energies, and then MuJoCo's sensor e_kinetic shows that of the step "
        "before, which it keeps outside the state that an environment is saved as; turn them off, "
        "and the sensor shows its own: <option><flag energy=\"disable\"/></option>");
  }
  for (int i = 0; i < model.nplugin; ++i) {
    const std::string name = mjp_getPluginAtSlot(model.plugin[i])->name;
    if (data.plugin_data[i] == 0 || KeepsNothing(name)) continue;
    Refuse("the plugin '" + name +
           "' keeps data of its own (plugin_data), which would be shared by all environments of a "
           "worker; let it keep what it needs in its plugin state (nstate), or remove it");
  }
}

const char* ActiveCallback() {
  if (mjcb_passive != nullptr) return "mjcb_passive";
  if (mjcb_control != nullptr) return "mjcb_control";
  if (mjcb_contactfilter != nullptr) return "mjcb_contactfilter";
  if (mjcb_sensor != nullptr) return "mjcb_sensor";
  if (mjcb_act_dyn != nullptr) return "mjcb_act_dyn";
  if (mjcb_act_gain != nullptr) return "mjcb_act_gain";
  if (mjcb_act_bias != nullptr) return "mjcb_act_bias";
  return nullptr;
}

void CheckNoCallbacks() {
  const char* const name = ActiveCallback();
  if (name == nullptr) return;
  Refuse(std::string("MuJoCo's global callback ") + name +
         " is set; it would run in this pool's threads, on data that belongs to many "
         "environments in turn: unset it (mujoco.set_" +
         name + "(None))");
}

}  // namespace pyfastenv
