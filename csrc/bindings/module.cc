// The module pyfastenv._core.
#include <mujoco/mujoco.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>

#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/interpreter_end.h"
#include "bindings/numpy_interop.h"
#include "core/errors.h"
#include "envs/physics_limit.h"
#include "envs/registry.h"
#include "lanes/kernels.h"
#include "learn/bf16_kernels.h"
#include "mujoco/opengl.h"
#include "mujoco/version.h"

namespace pyfastenv {

void BindPhysicsBatch(py::module_& m);
void BindPhysicsRollout(py::module_& m);
void BindPolicy(py::module_& m);
void BindPpoUpdate(py::module_& m);
void BindRenderer(py::module_& m);
void BindStatistics(py::module_& m);
void BindSacUpdate(py::module_& m);
void BindFloatModes(py::module_& m);
void BindEnsembleUpdate(py::module_& m);
void BindUnitNetworks(py::module_& m);
void BindBinLosses(py::module_& m);
void BindVectorEnv(py::module_& m);
void BindTask(py::module_& m);

namespace {

std::string VersionText(int version) {
  return std::to_string(version / 1000000) + "." + std::to_string(version / 1000 % 1000) + "." +
         std::to_string(version % 1000);
}

void CheckMujocoVersion() {
  if (mj_version() == mjVERSION_HEADER) return;
  const std::string built = VersionText(PYFASTENV_MUJOCO);
  throw py::import_error("pyfastenv was built against MuJoCo " + built + " but MuJoCo " +
                         VersionText(PYFASTENV_MUJOCO_NUMBER(mj_version())) +
                         " is loaded: install mujoco==" + built +
                         ", or rebuild pyfastenv beside the MuJoCo you want");
}

py::list RegistryList() {
  py::list entries;
  for (const auto& entry : Registry()) {
    const py::object threshold = std::isnan(entry.reward_threshold)
                                     ? py::none()
                                     : py::object(py::float_(entry.reward_threshold));
    entries.append(py::make_tuple(entry.id, entry.max_episode_steps, threshold));
  }
  return entries;
}

double PhysicsLimit(const std::string& env_id, const std::string& assets_dir, py::handle actions,
                    int num_threads, uint32_t seed) {
  const InputArray input = ReadFloats(
      actions, "actions", [] { return std::string("(num_steps, num_envs, action_size) float32"); });
  if (input.shape.size() != 3 || input.dtype != DType::kFloat32) {
    throw BadValue("actions: expected (num_steps, num_envs, action_size) float32");
  }
  PhysicsLimitOptions options;
  options.env_id = env_id;
  options.assets_dir = assets_dir;
  options.num_steps = static_cast<int>(input.shape[0]);
  options.num_envs = static_cast<int>(input.shape[1]);
  options.num_threads = std::min(num_threads, options.num_envs);
  options.actions = Floats(input);
  options.seed = seed;
  const GilRelease release;
  return MeasurePhysicsLimit(options);
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  m.doc() = "The compiled core of pyfastenv; use the pyfastenv package.";
  CheckMujocoVersion();
  InitGil();
  InitInterpreterEnd();
  InitNumpy();
  RegisterErrors();
  BindPhysicsBatch(m);
  BindPhysicsRollout(m);
  BindPolicy(m);
  BindPpoUpdate(m);
  BindRenderer(m);
  BindStatistics(m);
  BindSacUpdate(m);
  BindEnsembleUpdate(m);
  BindUnitNetworks(m);
  BindBinLosses(m);
  BindFloatModes(m);
  BindVectorEnv(m);
  BindTask(m);
  m.attr("MUJOCO_VERSION") = VersionText(PYFASTENV_MUJOCO);
  m.def("registry", &RegistryList,
        "All environments: (id, max_episode_steps, reward_threshold or None).");
  m.def(
      "lane_width", [] { return lanes::BestKernels().width; },
      "How many environments' physics this processor runs at once, one per SIMD lane.");
  m.def(
      "bfloat16_unit", [] { return BestBf16Kernels() ? BestBf16Kernels()->unit : ""; },
      "What multiplies bfloat16 numbers here: AMX, AVX512-BF16, or nothing.");
  m.def(
      "load_opengl", [] { WithoutGil(LoadOpenGl); },
      "Has MuJoCo look up OpenGL's functions, once per process, in the context that is current in "
      "this thread. Never returns if an earlier attempt, which was not made by this, broke off in "
      "the middle.");
  m.def("physics_limit", &PhysicsLimit, py::kw_only(), py::arg("env_id"), py::arg("assets_dir"),
        py::arg("actions"), py::arg("num_threads"), py::arg("seed") = 0,
        "Environment calls per second of a bare mj_step loop over state rows (no barrier, "
        "observation, "
        "reward or Python) with these actions and the resets they lead to.");
}

}  // namespace pyfastenv
