// Other people's models: lane_tests --models=DIRECTORY --gtest_filter='ModelFiles*' prints, as a
// table, which files of the directory lanes step, and why not the others. Those that they step are
// compared with mj_step in closed loops, with the model's numbers and with what domain
// randomisation draws.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "closed_loop.h"
#include "settings.h"

namespace pyfastenv::lanes {
namespace {

std::vector<std::filesystem::path> ModelFiles() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(settings().models)) {
    if (entry.path().extension() == ".xml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void CompareRandomised(const mjModel& m) {
  ClosedLoop loop(m, 4, {"body_mass", "geom_friction", "dof_damping", "actuator_gainprm"});
  loop.Run(settings().substeps / 10);
  ExpectEqual(loop, 1);
}

// What lanes do with a model, in words.
std::string Describe(const mjModel& m) {
  const PlanResult result = Plan::Make(m);
  if (result.plan == nullptr) return result.refusal;
  ClosedLoop loop(m, 4);
  loop.Run(settings().substeps / 5);
  ExpectEqual(loop, 1);
  CompareRandomised(m);
  const Track& track = *loop.tracks()[0];
  char text[200];
  std::snprintf(text, sizeof(text),
                "run (%.1f rows per step; %.1f %% of wild steps left to mj_step)",
                static_cast<double>(loop.num_rows()) / static_cast<double>(track.environment_steps),
                100.0 * static_cast<double>(track.left_to_mujoco) /
                    static_cast<double>(track.environment_steps));
  return text;
}

TEST(ModelFiles, EqualMjStepBitForBit) {
  if (settings().models.empty()) GTEST_SKIP() << "no --models=DIRECTORY";
  for (const std::filesystem::path& file : ModelFiles()) {
    SCOPED_TRACE(file.string());
    char error[1000] = "";
    const ModelPtr m(mj_loadXML(file.c_str(), nullptr, error, sizeof(error)));
    const std::string what = m != nullptr ? Describe(*m) : std::string("no model: ") + error;
    std::printf("| %s | %s |\n", file.stem().c_str(), what.c_str());
  }
}

}  // namespace
}  // namespace pyfastenv::lanes
