#include "envs/task_reads.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

namespace pyfastenv {

namespace {

using lanes::Field;
using lanes::Sensors;

// By its name in mjData; none if lanes do not compute it.
std::optional<Field> FindField(const std::string& name) {
#define PYFASTENV_FIELD(field, entries, numbers) \
  if (name == #field) return Field::field;
  PYFASTENV_LANES_FIELDS(PYFASTENV_FIELD)
#undef PYFASTENV_FIELD
  return std::nullopt;
}

// What MuJoCo's functions read of mjData.
constexpr Field kObjectVelocity[] = {
    Field::xpos,      Field::xmat,      Field::xipos,     Field::ximat,       Field::geom_xpos,
    Field::geom_xmat, Field::site_xpos, Field::site_xmat, Field::subtree_com, Field::cvel};
constexpr Field kGeoms[] = {Field::geom_xpos, Field::geom_xmat};
constexpr Field kJacSite[] = {Field::site_xpos, Field::subtree_com, Field::cdof};

std::span<const Field> FieldsOfCall(std::string_view name) {
  if (name == "mj_objectVelocity") return kObjectVelocity;
  if (name == "mj_ray" || name == "mj_geomDistance") return kGeoms;
  if (name == "mj_jacSite") return kJacSite;
  return {};
}

// What mj_step1 computes, besides fields of lanes that do not depend on controls.
constexpr std::string_view kOfStep1[] = {
    "ncon",       "contact",  "mj_objectVelocity", "mj_ray",     "mj_geomDistance",
    "mj_jacSite", "cam_xpos", "cam_xmat",          "light_xpos", "light_xdir"};

bool IsOfStep1(const std::string& name, std::optional<Field> field) {
  if (field) return !lanes::DependsOnControl(*field);
  return std::find(std::begin(kOfStep1), std::end(kOfStep1), name) != std::end(kOfStep1);
}

// Whether lanes can do for this task what mj_step1 would do.
bool CanRefresh(const TaskDescription& task) {
  const mjModel& m = *task.model;
  return std::all_of(task.reads.begin(), task.reads.end(), [&](const std::string& name) {
    if (name == "sensordata") {
      return !lanes::HasSensors(m, Sensors::kOfAcceleration) &&
             lanes::UnsupportedSensor(m, Sensors::kOfMotion).empty();
    }
    const auto field = FindField(name);
    if (field) return lanes::IsRefreshed(*field) || lanes::DependsOnControl(*field);
    return !FieldsOfCall(name).empty();
  });
}

}  // namespace

TaskReads FindTaskReads(const TaskDescription& task) {
  TaskReads found;
  LaneReads& reads = found.reads;
  reads.refreshed = task.up_to_date && CanRefresh(task);
  const bool step1 = task.up_to_date && !reads.refreshed;
  for (const std::string& name : task.reads) {
    const auto field = FindField(name);
    if (name == "sensordata") {
      reads.sensors = reads.refreshed ? Sensors::kOfMotion
                      : step1         ? Sensors::kOfAcceleration
                                      : Sensors::kAll;
    } else if (step1 && (IsOfStep1(name, field) || name == "mj_contactForce")) {
      continue;  // mj_step1 leaves contacts without forces: whoever reads those calls mj_forward
    } else if (field) {
      reads.fields.push_back(*field);
    } else if (const auto fields = FieldsOfCall(name); !fields.empty()) {
      reads.fields.insert(reads.fields.end(), fields.begin(), fields.end());
    } else if (!step1 && (name == "ncon" || name == "contact" || name == "mj_contactForce")) {
      reads.contacts = true;
    } else {
      found.refusal = "lanes do not compute " + name + ", which the task reads";
    }
  }
  return found;
}

}  // namespace pyfastenv
