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
  const auto value_of = [](const char* argument, const char* name) -> const char* {
    const size_t length = std::strlen(name);
    return std::strncmp(argument, name, length) == 0 ? argument + length : nullptr;
  };
  pyfastenv::lanes::Settings& settings = pyfastenv::lanes::settings();
  for (int i = 1; i < argc; ++i) {
    if (const char* n = value_of(argv[i], "--substeps=")) settings.substeps = std::atoll(n);
    if (const char* models = value_of(argv[i], "--models=")) settings.models = models;
  }
  return RUN_ALL_TESTS();
}
