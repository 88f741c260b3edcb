#include "lanes/program/programs.h"

#ifdef PYFASTENV_LANE_PROGRAMS

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
  if (kernels.width == 1 || Forbidden()) return;
  std::vector<size_t> offsets(static_cast<size_t>(ProgramArray::kCount));
  kernels.program_offsets(tables, offsets.data());
  const CompiledCode smooth = Compile(RecordSmoothDynamics(tables), kernels.width, offsets);
  const CompiledCode damping = Compile(RecordDamping(tables), kernels.width, offsets);
  smooth_ = Code(smooth.bytes);
  damping_ = Code(damping.bytes);
  if (smooth_.entry() == nullptr || damping_.entry() == nullptr) return;
  tables.smooth_program = reinterpret_cast<Program>(smooth_.entry());
  tables.damping_program = reinterpret_cast<Program>(damping_.entry());
  tables.num_spills = std::max(smooth.num_spills, damping.num_spills);
}

}  // namespace pyfastenv::lanes

#else

namespace pyfastenv::lanes {
void Programs::Make(Tables&, const Kernels&) {}
}  // namespace pyfastenv::lanes

#endif
