#include "lanes/difference.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace pyfastenv::lanes {

namespace {

struct Component {
  int bit;
  const char* name;
};
// those that a step changes, in the order of a row
constexpr Component kComponents[] = {{mjSTATE_TIME, "time"},
                                     {mjSTATE_QPOS, "qpos"},
                                     {mjSTATE_QVEL, "qvel"},
                                     {mjSTATE_ACT, "act"},
                                     {mjSTATE_WARMSTART, "qacc_warmstart"}};

// mjModel::nu in older MuJoCos, where every actuator has one control.
template <class Model>
int64_t CountActuators(const Model& m) {
  if constexpr (requires { m.nactuator; }) {
    return m.nactuator;
  } else {
    return m.nu;
  }
}

// The last element whose first number is not behind `index`.
int OwnerOf(const int* first, int64_t count, int index) {
  int owner = -1;
  for (int i = 0; i < count; ++i) {
    if (first[i] >= 0 && first[i] <= index) owner = i;
  }
  return owner;
}

std::string Named(const mjModel& m, const char* kind, const int* name_addresses, int element) {
  const char* name = m.names + name_addresses[element];
  std::string text(kind);
  if (*name == '\0') return text.append(" ").append(std::to_string(element));
  return text.append(" '").append(name).append("'");
}

// Of whom the i-th number of a component is.
std::string OwnerOf(const mjModel& m, int bit, int i) {
  if (bit == mjSTATE_QPOS) {
    return Named(m, "joint", m.name_jntadr, OwnerOf(m.jnt_qposadr, m.njnt, i));
  }
  if (bit == mjSTATE_ACT) {
    return Named(m, "actuator", m.name_actuatoradr,
                 OwnerOf(m.actuator_actadr, CountActuators(m), i));
  }
  return Named(m, "joint", m.name_jntadr, m.dof_jntid[i]);
}

// To the bit, and readable.
std::string Text(double value) {
  char text[80];
  std::snprintf(text, sizeof(text), "%a (%.17g)", value, value);
  return text;
}

const char* IntegratorOf(const mjModel& m) {
  switch (m.opt.integrator) {
    case mjINT_EULER:
      return "Euler";
    case mjINT_RK4:
      return "RK4";
    case mjINT_IMPLICITFAST:
      return "implicitfast";
    default:
      return "implicit";
  }
}

}  // namespace

std::optional<Difference> FindDifference(const double* lanes, const double* mujoco, int size) {
  if (std::memcmp(lanes, mujoco, static_cast<size_t>(size) * sizeof(double)) == 0) return {};
  for (int i = 0; i < size; ++i) {
    if (std::memcmp(lanes + i, mujoco + i, sizeof(double)) != 0) return {{i, lanes[i], mujoco[i]}};
  }
  return {};
}

std::optional<Difference> FindDifference(const LaneStepper& lanes, int lane, Field field,
                                         const mjData& mujoco) {
  const auto size = static_cast<size_t>(lanes.Size(field));
  std::vector<double> ours(size);
  lanes.Read(field, lane, ours.data());
  // generic, as LaneStepper::Read
  const auto array_in = [&](const auto& d) -> const double* {
    switch (field) {
#define PYFASTENV_LANES_FIELD(name, entries, numbers)  \
  case Field::name:                                    \
    if constexpr (requires { d.name; }) return d.name; \
    break;
      PYFASTENV_LANES_FIELDS(PYFASTENV_LANES_FIELD)
#undef PYFASTENV_LANES_FIELD
    }
    return nullptr;
  };
  const double* theirs = array_in(mujoco);
  if (theirs == nullptr) return {};
  return FindDifference(ours.data(), theirs, static_cast<int>(size));
}

std::string NameOfNumber(const mjModel& m, int index) {
  for (const Component& component : kComponents) {
    const auto begin =
        static_cast<int>(mj_stateSize(&m, mjSTATE_INTEGRATION & (component.bit - 1)));
    const int i = index - begin;
    if (i < 0 || i >= mj_stateSize(&m, component.bit)) continue;
    if (component.bit == mjSTATE_TIME) return component.name;
    return std::string(component.name) + "[" + std::to_string(i) + "] of " +
           OwnerOf(m, component.bit, i);
  }
  return "number " + std::to_string(index) + " of the state";
}

std::string NameOfSensordata(const mjModel& m, int index) {
  const int sensor = OwnerOf(m.sensor_adr, m.nsensor, index);
  return "sensordata[" + std::to_string(index) + "] of " +
         Named(m, "sensor", m.name_sensoradr, sensor);
}

std::string Describe(const mjModel& m, int width, const std::string& step,
                     const Difference& difference, const std::string& name) {
  return "lanes and mj_step differ on this machine, at " + step + " in " +
         (name.empty() ? NameOfNumber(m, difference.index) : name) + ": " + Text(difference.lanes) +
         " in lanes, " + Text(difference.mujoco) + " by mj_step (model '" + m.names + "', " +
         IntegratorOf(m) + ", " + std::to_string(width) + (width == 1 ? " lane" : " lanes") +
         ", pyfastenv " PYFASTENV_VERSION ", MuJoCo " + mj_versionString() +
         "); please report it, with the model, where pyfastenv comes from";
}

}  // namespace pyfastenv::lanes
