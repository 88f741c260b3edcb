// What lanes must provide for the functions of a task, from the names of what these read.
#pragma once

#include <string>

#include "envs/function_env.h"
#include "envs/mujoco/lane_reads.h"

namespace pyfastenv {

struct TaskReads {
  LaneReads reads;
  std::string refusal;  // why lanes cannot provide them; empty if they may
};

/// For TaskDescription::reads. If the task is up_to_date, lanes refresh what it reads, or mj_step1
/// does, and lanes need only provide what that does not compute anew.
TaskReads FindTaskReads(const TaskDescription& task);

}  // namespace pyfastenv
