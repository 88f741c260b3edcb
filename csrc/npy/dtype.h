// The element types that cross the boundary between callers' arrays and the core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pyfastenv {

enum class DType : uint8_t { kFloat32, kFloat64, kInt64 };

inline size_t ItemSize(DType dtype) { return dtype == DType::kFloat32 ? 4 : 8; }

/// Writes `n` doubles to `out` as elements of `dtype`.
inline void StoreAs(DType dtype, const double* values, int n, void* out) {
  switch (dtype) {
    case DType::kFloat64:
      std::memcpy(out, values, sizeof(double) * static_cast<size_t>(n));
      return;
    case DType::kFloat32:
      for (int i = 0; i < n; ++i) static_cast<float*>(out)[i] = static_cast<float>(values[i]);
      return;
    case DType::kInt64:
      for (int i = 0; i < n; ++i) static_cast<int64_t*>(out)[i] = static_cast<int64_t>(values[i]);
      return;
  }
}

}  // namespace pyfastenv
