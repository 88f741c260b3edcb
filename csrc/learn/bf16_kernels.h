// Matrix products in bfloat16 with float32 sums, on the processor's matrix unit (Intel AMX) or by
// dot products of pairs (AVX512-BF16), and what updates do between them.
//
// Matrices of samples are row-major bfloat16 (its bits as uint16_t), all sizes padded with zeros to
// kTile. A right-hand factor is packed: for each 32 columns, for each 32 rows, two tiles of 16
// pairs of rows x 16 columns. Products want a Bf16Section on their thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "learn/denormals.h"
#include "nn/mlp_kernels.h"

namespace pyfastenv {

constexpr int kTile = 32;

struct Bf16Kernels {
  const char* unit;  // what computes the products

  void (*begin)();
  void (*end)();

  /// A right-hand factor (rows, columns) of float32 parameters, or its transpose; pack_twice has
  /// them a second time below: (2 rows, columns). They may be rows, a multiple of kTile, of a
  /// factor of padded_rows in all.
  void (*pack)(const float* w, int rows, int columns, int padded_rows, uint16_t* packed);
  void (*pack_twice)(const float* w, int rows, int columns, int padded_rows, uint16_t* packed);
  void (*pack_transposed)(const float* w, int rows, int columns, uint16_t* packed);
  /// … of samples (rows, columns), both padded.
  void (*pack_samples)(const uint16_t* x, int rows, int columns, uint16_t* packed);
  /// The transpose of samples as a left-hand factor: (columns, rows).
  void (*transpose)(const uint16_t* x, int rows, int columns, uint16_t* transposed);

  void (*round)(const float* x, int size, uint16_t* y);
  /// x (size) in two parts, which have 16 bits of it: high = round(x), low = round(x - high).
  void (*split)(const float* x, int size, uint16_t* high, uint16_t* low);

  /// y (rows, out) = relu(x (rows, in) @ w + bias), rounded to bfloat16.
  void (*forward_relu)(const uint16_t* x, const uint16_t* w, const float* bias, int rows, int in,
                       int out, uint16_t* y);
  /// y = activation(x @ w + bias), and its slope there.
  void (*forward_slope)(Activation activation, const uint16_t* x, const uint16_t* w,
                        const float* bias, int rows, int in, int out, uint16_t* y, uint16_t* slope);
  /// y = x @ w + bias in float32; no bias: null.
  void (*forward_last)(const uint16_t* x, const uint16_t* w, const float* bias, int rows, int in,
                       int out, float* y);
  /// dx (rows, in) = (dy (rows, out) @ wt) where h (rows, in) > 0, else 0.
  void (*backward_relu)(const uint16_t* dy, const uint16_t* wt, const uint16_t* h, int rows, int in,
                        int out, uint16_t* dx);
  /// dx = (dy @ wt) * slope (rows, in)
  void (*backward_slope)(const uint16_t* dy, const uint16_t* wt, const uint16_t* slope, int rows,
                         int in, int out, uint16_t* dx);
  /// db (out) = the sums of dy's columns.
  void (*column_sums)(const uint16_t* dy, int rows, int out, float* db);
};

/// A thread's part of a learning step: its products stand between begin() and end().
class Bf16Section {
 public:
  explicit Bf16Section(const Bf16Kernels& kernels) : kernels_(kernels) { kernels_.begin(); }
  ~Bf16Section() { kernels_.end(); }
  Bf16Section(const Bf16Section&) = delete;
  Bf16Section& operator=(const Bf16Section&) = delete;

 private:
  const Bf16Kernels& kernels_;
  FlushDenormals flush_;
};

/// AMX's where the processor and the system have it, else AVX512-BF16's, else null. The environment
/// variable PYFASTENV_BF16=avx512 leaves AMX out.
const Bf16Kernels* BestBf16Kernels();

}  // namespace pyfastenv
