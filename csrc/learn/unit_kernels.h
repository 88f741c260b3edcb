// What UnitNetworks does on the processor's matrix unit beside Bf16Kernels: layers with batch
// normalisation and a ReLU after them, and root-mean-square norms.
//
// Matrices are those of learn/bf16_kernels.h, row-major bfloat16 padded to kTile in both sizes;
// vectors of columns are padded alike. Normalising and shifting is one multiplication and one
// addition: norm(y) = y * scale + shift.
#pragma once

#include <cstdint>

#include "learn/bf16_kernels.h"

namespace pyfastenv {

/// Sums over the rows, of each column.
struct ColumnSums {
  double* plain = nullptr;
  double* weighted = nullptr;  // by what the function says
};

struct UnitKernels {
  /// y (rows, out) = x (rows, in) @ w. Adds y to the sums, and its squares; null: not wanted.
  void (*forward)(const uint16_t* x, const uint16_t* w, int rows, int in, int out, uint16_t* y,
                  const ColumnSums& sums);
  /// result = relu(y * scale + shift), with `add` (null: nothing) added.
  void (*activate)(const uint16_t* y, const float* scale, const float* shift, const uint16_t* add,
                   int rows, int columns, uint16_t* result);
  /// dx (rows, in) = dy (rows, out) @ wt where y (rows, in) * scale + shift > 0, else 0: the
  /// gradient before the ReLU. Adds dx to the sums, and dx * y.
  void (*backward)(const uint16_t* dy, const uint16_t* wt, const uint16_t* y, const float* scale,
                   const float* shift, int rows, int in, int out, uint16_t* dx,
                   const ColumnSums& sums);
  /// The same of a gradient that is there already.
  void (*mask)(const uint16_t* from, const uint16_t* y, const float* scale, const float* shift,
               int rows, int columns, uint16_t* dx, const ColumnSums& sums);
  /// dx = a * dx + b * y + c: through the normalisation.
  void (*through_norm)(const uint16_t* y, const float* a, const float* b, const float* c, int rows,
                       int columns, uint16_t* dx);
  /// dx (rows, in) = dy @ wt + add (rows, in)
  void (*backward_add)(const uint16_t* dy, const uint16_t* wt, const uint16_t* add, int rows,
                       int in, int out, uint16_t* dx);
  /// y = x * weight / rms(x), and 1 / rms(x) (rows); `size` columns count.
  void (*rms_norm)(const uint16_t* x, const float* weight, int rows, int columns, int size,
                   float eps, uint16_t* y, float* inverse);
  /// dx through the norm above, of dy (rows, columns) float32; by_weight (columns) is written.
  void (*rms_backward)(const float* dy, const uint16_t* x, const float* weight,
                       const float* inverse, int rows, int columns, int size, uint16_t* dx,
                       float* by_weight);
  /// Float32 rows of `size` numbers, normalised or as they are (null), rounded and padded.
  void (*round)(const float* x, const float* scale, const float* shift, int rows, int size,
                int columns, uint16_t* y);
  /// Sums of float32 rows of `size` numbers, `stride` apart; weighted: by y, `y_stride` apart.
  void (*sum)(const float* x, int stride, const float* y, int y_stride, int rows, int size,
              const ColumnSums& sums);
};

/// Those of BestBf16Kernels(), or null.
const UnitKernels* BestUnitKernels();

}  // namespace pyfastenv
