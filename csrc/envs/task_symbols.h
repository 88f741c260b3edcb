// What compiled task functions link against, and where the structs that they read keep what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pyfastenv {

/// A function by the name under which compiled code calls it.
struct TaskSymbol {
  std::string name;
  const void* address;
};

/// The pool's services, the engine's functions that may be called inside a task, sums and products
/// in NumPy's order, and the two functions of numba's run time that arrays need: with those, code
/// from the cache runs without numba.
std::vector<TaskSymbol> TaskSymbols();

/// Offsets of TaskFrame's members by name [bytes].
std::vector<std::pair<std::string, size_t>> FrameOffsets();

/// The bits of TaskFrame::fresh by name.
std::vector<std::pair<std::string, int64_t>> FreshBits();

/// An array or number in one of MuJoCo's structs.
struct StructField {
  std::string name;
  size_t offset;      // of the member [bytes]
  const char* dtype;  // "float64", "float32", "int32", "uint8", "bool"
  int size = 0;       // mjContact: 0 for a number, else of an array within the struct
};

/// Pointers to arrays in mjData and mjModel; both also have a few numbers ("time", "ncon", "nefc").
std::vector<StructField> DataFields();
std::vector<StructField> DataNumbers();
std::vector<StructField> ModelFields();
/// The fields of mjOption that set_model_field may change: offsets in mjModel.
std::vector<StructField> OptionFields();
std::vector<StructField> ContactFields();
size_t ContactBytes();

}  // namespace pyfastenv
