// What a vector environment's calls return to Python: arrays that the core writes, and infos.
//
// With the GIL, one thread at a time.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "bindings/numpy_interop.h"
#include "core/buffers.h"
#include "core/env_runner.h"
#include "core/env_spec.h"
#include "core/obs_layout.h"

namespace pyfastenv {

/// The arrays of one call's results, owned by Python, written by the core.
struct Results {
  py::object obs, rewards, terminations, truncations;
  std::vector<py::object> columns;
  std::vector<uint8_t> kinds;
  DType action_dtype = DType::kFloat32;
  OutputViews views;
};

/// The shapes and dtypes that all results of a vector environment have in common.
struct ResultShape {
  const EnvSpec& spec;
  int num_envs = 1;
  ObsLayout obs;
  bool copy = true;   // fresh arrays for every call; else views of a ring
  bool infos = true;  // whether infos are wanted
};

class ResultMaker {
 public:
  using Finals = std::vector<std::unique_ptr<FinalStep>>;
  using Buffers = std::array<py::object, 4>;  // obs, rewards, terminations, truncations

  explicit ResultMaker(const ResultShape& shape);

  /// Arrays for `count` results. With copy=False they are the next of a ring of kRingSize.
  Results Allocate(int count, DType action_dtype);
  /// An array for `count` observations: (count, obs_size) of their dtype, or, with pictures,
  /// (count, bytes) uint8 as the pool keeps them.
  NewArray MakeObs(int count) const;

  /// (obs, rewards, terminations, truncations, infos). `ids`: of recv, else null.
  py::tuple Pack(const Results& results, const Finals& finals, const std::vector<int32_t>* ids);
  py::dict Infos(const Results& results, const Finals& finals, const std::vector<int32_t>* ids);

  /// The caller's arrays for all environments: the next calls' results go into them in turn. An
  /// empty list: into arrays of our own again.
  void UseBuffers(const std::vector<Buffers>& sets);

 private:
  static constexpr size_t kRingSize = 4;

  struct ColumnNames {
    py::object name;
    py::object mask;
  };

  // of one observation
  int64_t ObsWidth() const;
  ArrayType ObsType() const;
  Results& RingSlot();
  Results NewResults(int count) const;
  void AddInfoColumns(Results& results, DType action_dtype) const;
  void AddColumns(py::dict& infos, const std::vector<py::object>& columns,
                  const std::vector<uint8_t>& kinds) const;
  void AddFinals(py::dict& infos, const Results& results, const Finals& finals) const;

  const ResultShape shape_;
  std::vector<ColumnNames> column_names_;  // interned once: building infos costs no string work
  std::vector<Results> ring_;
  size_t ring_next_ = 0;
  std::vector<Results> given_;
  size_t given_next_ = 0;
};

}  // namespace pyfastenv
