#include "mujoco/opengl.h"

#include <mujoco/mujoco.h>

#ifdef __linux__
#include <dlfcn.h>
#include <link.h>
#endif

#include <cstring>
#include <string>

#include "mujoco/error_trap.h"

namespace pyfastenv {

namespace {

// Elsewhere MuJoCo's initialiser raises no error.
#ifdef __linux__

using GetProcAddress = void* (*)(const char* name);

struct Platform {
  const char* library;  // how its file's name begins
  const char* symbol;
};
// in the order in which MuJoCo asks the process for symbols
constexpr Platform kPlatforms[] = {{"libEGL.so", "eglGetProcAddress"},
                                   {"libOSMesa.so", "OSMesaGetProcAddress"},
                                   {"libGLX.so", "glXGetProcAddressARB"},
                                   {"libGL.so", "glXGetProcAddressARB"}};

struct Found {
  std::string path;
  const char* symbol = nullptr;
};

int FindLibrary(dl_phdr_info* info, size_t, void* data) {
  const char* slash = std::strrchr(info->dlpi_name, '/');
  const char* name = slash == nullptr ? info->dlpi_name : slash + 1;
  for (const Platform& platform : kPlatforms) {
    if (std::strncmp(name, platform.library, std::strlen(platform.library)) == 0) {
      *static_cast<Found*>(data) = {info->dlpi_name, platform.symbol};
      return 1;
    }
  }
  return 0;
}

// The function that MuJoCo will take: a symbol of the process, or of the first library of OpenGL
// in it. Null: its initialiser would raise an error.
GetProcAddress FindGetProcAddress() {
  void* process = dlopen(nullptr, RTLD_NOW);
  for (const Platform& platform : kPlatforms) {
    if (void* symbol = dlsym(process, platform.symbol)) {
      return reinterpret_cast<GetProcAddress>(symbol);
    }
  }
  Found found;
  if (dl_iterate_phdr(&FindLibrary, &found) == 0) return nullptr;
  void* library = dlopen(found.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr
                            : reinterpret_cast<GetProcAddress>(dlsym(library, found.symbol));
}

// What MuJoCo's initialiser asks first; it keeps a refusal for the whole life of the process.
bool HasContext() {
  constexpr unsigned kGlVersion = 0x1F02;
  const GetProcAddress get = FindGetProcAddress();
  if (get == nullptr) return false;
  const auto get_string = reinterpret_cast<const unsigned char* (*)(unsigned)>(get("glGetString"));
  return get_string != nullptr && get_string(kGlVersion) != nullptr;
}

#else

bool HasContext() { return true; }

#endif

}  // namespace

void LoadOpenGl() {
  if (!HasContext()) {
    throw MujocoError(
        "there is no OpenGL context: MUJOCO_GL chooses who makes one, and without a display glfw "
        "cannot");
  }
  mjrContext context;
  mjr_defaultContext(&context);
  Trapped([&] {
    mjr_makeContext(nullptr, &context, mjFONTSCALE_100);
    mjr_freeContext(&context);
  });
}

}  // namespace pyfastenv
