#include "envs/task_symbols.h"

#include <math.h>  // ::pow
#include <mujoco/mjxmacro.h>
#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>

#include "envs/function_env.h"
#include "envs/task_draws.h"
#include "envs/task_frame.h"
#include "mujoco/version.h"
#include "npy/math.h"

namespace pyfastenv {

namespace {

// ---- the pool's services; int32_t: 0, or the function must return with an error ----

int32_t Simulate(TaskFrame* frame, int64_t num_steps) {
  return frame->env->Simulate(*frame, num_steps);
}

int32_t Forward(TaskFrame* frame) { return frame->env->Forward(*frame); }

int32_t Step1(TaskFrame* frame) {
  return frame->env->AdvanceBy(*frame, FunctionEnv::Advance::kStep1, 1);
}

int32_t Step2(TaskFrame* frame) {
  return frame->env->AdvanceBy(*frame, FunctionEnv::Advance::kStep2, 1);
}

int32_t StepBy(TaskFrame* frame, int64_t num_steps) {
  return frame->env->AdvanceBy(*frame, FunctionEnv::Advance::kStep, num_steps);
}

int32_t LoadState(TaskFrame* frame) { return frame->env->LoadState(*frame); }

int32_t Run(TaskFrame* frame, void (*function)(void*), void* given) {
  return frame->env->RunEngine([=] { function(given); });
}

int32_t ContactForce(TaskFrame* frame, int64_t id, mjtNum* result) {
  return frame->env->RunEngine(
      [=] { mj_contactForce(frame->model, frame->data, static_cast<int>(id), result); });
}

int32_t ObjectVelocity(TaskFrame* frame, int64_t type, int64_t id, mjtNum* result, int64_t local) {
  return frame->env->RunEngine([=] {
    // whose places neither lanes nor models without sensors know
    if (type == mjOBJ_CAMERA) mju_error("mj_objectVelocity: expected no camera; ask for its body");
    mj_objectVelocity(frame->model, frame->data, static_cast<int>(type), static_cast<int>(id),
                      result, static_cast<int>(local));
  });
}

int32_t Ray(TaskFrame* frame, const mjtNum* point, const mjtNum* direction, const mjtByte* groups,
            int64_t with_static, int64_t excluded_body, int* geom, mjtNum* normal,
            double* distance) {
  return frame->env->RunEngine([=] {
#if PYFASTENV_MUJOCO >= 3005000
    *distance = mj_ray(frame->model, frame->data, point, direction, groups, with_static != 0,
                       static_cast<int>(excluded_body), geom, normal);
#else  // plain Python, which runs first, has refused a normal
    (void)normal;
    *distance = mj_ray(frame->model, frame->data, point, direction, groups, with_static != 0,
                       static_cast<int>(excluded_body), geom);
#endif
  });
}

int32_t GeomDistance(TaskFrame* frame, int64_t first, int64_t second, double most, mjtNum* fromto,
                     double* distance) {
  return frame->env->RunEngine([=] {
    *distance = mj_geomDistance(frame->model, frame->data, static_cast<int>(first),
                                static_cast<int>(second), most, fromto);
  });
}

int32_t JacSite(TaskFrame* frame, mjtNum* jacp, mjtNum* jacr, int64_t site) {
  return frame->env->RunEngine(
      [=] { mj_jacSite(frame->model, frame->data, jacp, jacr, static_cast<int>(site)); });
}

void Uniform(TaskFrame* frame, double low, double high, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = frame->random->Uniform(low, high);
}

void StandardNormal(TaskFrame* frame, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = frame->random->StandardNormal();
}

void NextDouble(TaskFrame* frame, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = frame->random->NextDouble();
}

int64_t Integers(TaskFrame* frame, int64_t low, int64_t high) {
  return frame->random->Integers(low, high);
}

// ---- NumPy's numbers ----

template <class T>
T Sum(const T* values, int64_t stride, int64_t n) {
  // NumPy begins with 0, which makes 0 of -0
  return 0 + npy::PairwiseSum<T>([=](ptrdiff_t i) { return values[i * stride]; }, 0, n);
}

double Dot(const double* a, const double* b, int64_t n) {
  return npy::Math().dot(a, b, static_cast<int>(n));
}

double Pow(double x, double y) { return ::pow(x, y); }

// ---- numba's run time: how it allocates the arrays of a function ----

struct MemInfo {
  size_t references;
  void (*destroy)(void*, size_t, void*);
  void* destroy_info;
  void* data;
  size_t size;
  void* allocator;
};

MemInfo* Allocate(size_t size, uint32_t alignment) {
  void* block = std::malloc(sizeof(MemInfo) + size + alignment);
  if (block == nullptr) return nullptr;
  const auto end = reinterpret_cast<uintptr_t>(block) + sizeof(MemInfo) + alignment - 1;
  return new (block)
      MemInfo{1, nullptr, nullptr, reinterpret_cast<void*>(end - end % alignment), size, nullptr};
}

MemInfo* AllocateUnaligned(size_t size) { return Allocate(size, alignof(std::max_align_t)); }

void Free(MemInfo* info) { std::free(info); }

// What numba's reshape asks: 1 and the strides [bytes], if an array in C's order of elements can be
// seen in another shape of as many elements where it lies; else 0.
int ReshapeInPlace(int64_t num_axes, const int64_t* shape, const int64_t* strides,
                   int64_t new_num_axes, const int64_t* new_shape, int64_t* new_strides,
                   int64_t item_size, int fortran_order) {
  if (fortran_order != 0) return 0;
  int64_t axis = num_axes;  // the old axes from here on are used up
  int64_t left = 1;         // elements of those just taken that no new axis has yet
  int64_t stride = item_size;
  for (int64_t i = new_num_axes - 1; i >= 0; --i) {
    if (left == 1 && new_shape[i] > 1) {
      // the next old axes that lie one behind the other like one
      while (axis > 0 &&
             (left == 1 || shape[axis - 1] == 1 || strides[axis - 1] == stride * left)) {
        --axis;
        if (shape[axis] == 1) continue;
        if (left == 1) stride = strides[axis];
        left *= shape[axis];
      }
    }
    new_strides[i] = stride;
    if (new_shape[i] == 0 || left % new_shape[i] != 0) return 0;
    left /= new_shape[i];
    stride *= new_shape[i];
  }
  return 1;
}

template <class F>
TaskSymbol Symbol(const char* name, F* function) {
  return {name, reinterpret_cast<const void*>(function)};
}

template <class T>
const char* TypeName() {
  if constexpr (std::is_same_v<T, double>) return "float64";
  if constexpr (std::is_same_v<T, float>) return "float32";
  if constexpr (std::is_same_v<T, int>) return "int32";
  if constexpr (std::is_same_v<T, int64_t>) return "int64";
  if constexpr (std::is_same_v<T, mjtByte>) return "uint8";
  if constexpr (std::is_same_v<T, bool>) return "bool";
  return "";  // structs, characters: nothing that a task reads
}

}  // namespace

std::vector<TaskSymbol> TaskSymbols() {
#define PYFASTENV_ENGINE(name) Symbol(#name, &name)
  return {
      Symbol("pyfastenv_simulate", &Simulate),
      Symbol("pyfastenv_load_state", &LoadState),
      Symbol("pyfastenv_run", &Run),
      Symbol("pyfastenv_uniform", &Uniform),
      Symbol("pyfastenv_standard_normal", &StandardNormal),
      Symbol("pyfastenv_random", &NextDouble),
      Symbol("pyfastenv_integers", &Integers),
      Symbol("pyfastenv_draw_shape", &DrawShape),
      Symbol("pyfastenv_draw_uniform", &DrawUniform),
      Symbol("pyfastenv_draw_normal", &DrawNormal),
      Symbol("pyfastenv_draw_integers", &DrawIntegers),
      Symbol("pyfastenv_sum_float64", &Sum<double>),
      Symbol("pyfastenv_sum_float32", &Sum<float>),
      Symbol("pyfastenv_dot", &Dot),
      Symbol("pyfastenv_pow", &Pow),
      Symbol("pyfastenv_mj_forward", &Forward),
      Symbol("pyfastenv_mj_step1", &Step1),
      Symbol("pyfastenv_mj_step2", &Step2),
      Symbol("pyfastenv_mj_step", &StepBy),
      Symbol("pyfastenv_mj_contactForce", &ContactForce),
      Symbol("pyfastenv_mj_objectVelocity", &ObjectVelocity),
      Symbol("pyfastenv_mj_ray", &Ray),
      Symbol("pyfastenv_mj_geomDistance", &GeomDistance),
      Symbol("pyfastenv_mj_jacSite", &JacSite),
      Symbol("NRT_MemInfo_alloc_aligned", &Allocate),
      Symbol("NRT_MemInfo_alloc", &AllocateUnaligned),
      Symbol("NRT_MemInfo_call_dtor", &Free),
      Symbol("NRT_Allocate", &std::malloc),
      Symbol("NRT_Free", &std::free),
      Symbol("numba_attempt_nocopy_reshape", &ReshapeInPlace),
      PYFASTENV_ENGINE(mju_rotVecQuat),
      PYFASTENV_ENGINE(mju_negQuat),
      PYFASTENV_ENGINE(mju_mulQuat),
      PYFASTENV_ENGINE(mju_mulQuatAxis),
      PYFASTENV_ENGINE(mju_axisAngle2Quat),
      PYFASTENV_ENGINE(mju_quat2Vel),
      PYFASTENV_ENGINE(mju_subQuat),
      PYFASTENV_ENGINE(mju_quat2Mat),
      PYFASTENV_ENGINE(mju_mat2Quat),
      PYFASTENV_ENGINE(mju_derivQuat),
      PYFASTENV_ENGINE(mju_eig3),
      PYFASTENV_ENGINE(mju_quatIntegrate),
      PYFASTENV_ENGINE(mju_quatZ2Vec),
      PYFASTENV_ENGINE(mju_normalize3),
      PYFASTENV_ENGINE(mju_normalize4),
  };
#undef PYFASTENV_ENGINE
}

std::vector<std::pair<std::string, size_t>> FrameOffsets() {
#define PYFASTENV_MEMBER(name)       \
  {                                  \
    #name, offsetof(TaskFrame, name) \
  }
  return {
      PYFASTENV_MEMBER(model),   PYFASTENV_MEMBER(data),       PYFASTENV_MEMBER(action),
      PYFASTENV_MEMBER(obs),     PYFASTENV_MEMBER(info),       PYFASTENV_MEMBER(memory),
      PYFASTENV_MEMBER(command), PYFASTENV_MEMBER(params),     PYFASTENV_MEMBER(random),
      PYFASTENV_MEMBER(reward),  PYFASTENV_MEMBER(terminated), PYFASTENV_MEMBER(fresh),
  };
#undef PYFASTENV_MEMBER
}

std::vector<std::pair<std::string, int64_t>> FreshBits() {
  return {{"places", kFreshPlaces},
          {"accelerations", kFreshAccelerations},
          {"row_forces", kFreshRowForces},
          {"body_forces", kFreshBodyForces},
          {"whole", kFreshWhole}};
}

// MuJoCo's own tables name each array with its size, which Python reads off a real mjData
#undef MJ_M
#define MJ_M(n) n
#undef XNV
#define XNV X

std::vector<StructField> DataFields() {
  std::vector<StructField> fields;
#define X(type, name, rows, columns) \
  fields.push_back({#name, offsetof(mjData, name), TypeName<type>()});
  MJDATA_POINTERS
#undef X
  fields.push_back({"contact", offsetof(mjData, contact), "contact"});
  return fields;
}

std::vector<StructField> DataNumbers() {
  return {{"time", offsetof(mjData, time), "float64"},
          {"ncon", offsetof(mjData, ncon), "int32"},
          {"nefc", offsetof(mjData, nefc), "int32"}};
}

std::vector<StructField> ModelFields() {
  std::vector<StructField> fields;
#define X(type, name, rows, columns) \
  fields.push_back({#name, offsetof(mjModel, name), TypeName<type>()});
  MJMODEL_POINTERS
#undef X
  return fields;
}

std::vector<StructField> OptionFields() {
  return {{"gravity", offsetof(mjModel, opt.gravity), "float64", 3},
          {"wind", offsetof(mjModel, opt.wind), "float64", 3},
          {"density", offsetof(mjModel, opt.density), "float64"},
          {"viscosity", offsetof(mjModel, opt.viscosity), "float64"}};
}

std::vector<StructField> ContactFields() {
#define PYFASTENV_FIELD(name, dtype, size)        \
  {                                               \
    #name, offsetof(mjContact, name), dtype, size \
  }
  return {
      PYFASTENV_FIELD(dist, "float64", 0),      PYFASTENV_FIELD(pos, "float64", 3),
      PYFASTENV_FIELD(frame, "float64", 9),     PYFASTENV_FIELD(includemargin, "float64", 0),
      PYFASTENV_FIELD(friction, "float64", 5),  PYFASTENV_FIELD(dim, "int32", 0),
      PYFASTENV_FIELD(geom1, "int32", 0),       PYFASTENV_FIELD(geom2, "int32", 0),
      PYFASTENV_FIELD(geom, "int32", 2),        PYFASTENV_FIELD(exclude, "int32", 0),
      PYFASTENV_FIELD(efc_address, "int32", 0),
  };
#undef PYFASTENV_FIELD
}

size_t ContactBytes() { return sizeof(mjContact); }

}  // namespace pyfastenv
