#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "settings.h"

namespace pyfastenv::lanes {

Settings& settings() {
  static Settings settings;
  return settings;
}

}  // namespace pyfastenv::lanes

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    constexpr char kSubsteps[] = "--substeps=";
    if (std::strncmp(argv[i], kSubsteps, sizeof(kSubsteps) - 1) == 0) {
      pyfastenv::lanes::settings().substeps = std::atoll(argv[i] + sizeof(kSubsteps) - 1);
    }
  }
  return RUN_ALL_TESTS();
}
