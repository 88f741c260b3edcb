#include "lanes/program/programs.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "lanes/program/arrays.h"
#include "lanes/program/compiler.h"
#include "lanes/program/record.h"

namespace pyfastenv::lanes {

namespace {

bool Forbidden() {
  const char* value = std::getenv("PYFASTENV_LANE_PROGRAMS");
  return value != nullptr && std::string_view(value) == "0";
}

}  // namespace

void Programs::Make(Tables& tables, const Kernels& kernels) {
  if (kernels.width < 4 || tables.uses_site_velocities || Forbidden()) return;
  std::vector<size_t> offsets(static_cast<size_t>(ProgramArray::kCount));
  kernels.program_offsets(tables, offsets.data());
  int num_spills = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const auto stage = static_cast<RecordedStage>(i);
    if (stage == RecordedStage::kSensors && tables.sensors.num_data == 0) continue;
    if (stage == RecordedStage::kPlaces && !tables.has_spatial_tendons) continue;
    const Recording recording = Record(stage, tables);
    if (!recording.has_signs) return;
    const CompiledCode compiled = Compile(recording, kernels.width, offsets);
    code_[i] = Code(compiled.bytes);
    if (code_[i].entry() == nullptr) return;
    entries_[i] = reinterpret_cast<Program>(code_[i].entry());
    num_spills = std::max(num_spills, compiled.num_spills);
  }
  tables.programs = entries_.data();
  tables.num_spills = num_spills;
}

}  // namespace pyfastenv::lanes
