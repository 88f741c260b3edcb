// One source, compiled for each vector unit: see CMakeLists.txt. Nothing from the standard library
// may be instantiated here: the linker could keep the copy that only newer processors run.
#include "nn/mlp_kernels.h"

#include "nn/vector_math.h"

namespace pyfastenv {

namespace {

// Vectors for the columns that are left over.
#ifdef __AVX512F__
typedef float Narrow __attribute__((vector_size(8 * sizeof(float)), may_alias));
constexpr int kTogether = 4;  // inputs whose sums, and what they need, fit into 32 registers
#else
using Narrow = Vec;
constexpr int kTogether = 3;  // into 16
#endif

// Columns whose sums are cut into two chains; those left over have eight. An output's bits depend
// on its column and on whether multiplication and addition are fused, not on the vector's width or
// `count`.
constexpr int kBlock = 32;

// Outputs of kWidth vectors at once for kInputs inputs, which share the weights, in kChains
// independent sums per output: enough additions in flight to hide their latency.
template <class V, int kWidth, int kChains, int kInputs>
PYFASTENV_INLINE void Columns(const DenseLayer& layer, int column, const float* const* x,
                              Activation activation, float* const* y) {
  static_assert(DenseLayer::kInMultiple % kChains == 0);
  constexpr int kSize = sizeof(V) / sizeof(float);
  V sums[kInputs][kChains][kWidth];
  for (int n = 0; n < kInputs; ++n) {
    for (int v = 0; v < kWidth; ++v) {
      sums[n][0][v] = LoadLoose<V>(layer.biases + column + v * kSize);
      for (int c = 1; c < kChains; ++c) sums[n][c][v] = V{};
    }
  }
  const float* row = layer.weights + column;
  for (int i = 0; i < layer.in; i += kChains) {
    for (int c = 0; c < kChains; ++c, row += layer.out) {
      for (int v = 0; v < kWidth; ++v) {
        const V weights = LoadLoose<V>(row + v * kSize);
        for (int n = 0; n < kInputs; ++n) sums[n][c][v] += x[n][i + c] * weights;
      }
    }
  }
  for (int n = 0; n < kInputs; ++n) {
    for (int v = 0; v < kWidth; ++v) {
      for (int c = 1; c < kChains; ++c) sums[n][0][v] += sums[n][c][v];
      StoreLoose(y[n] + column + v * kSize, Activate(activation, sums[n][0][v], Divide()));
    }
  }
}

template <Activation kActivation>
void DenseWith(const DenseLayer& layer, int count, const float* const* x, float* const* y) {
  constexpr int kPair = 2 * kLanes;
  constexpr int kWidest = 4 * kLanes < kBlock ? 4 : kBlock / kLanes;
  int column = 0;
  for (; column + kBlock <= layer.out; column += kBlock) {
    int n = 0;
    for (; n + kTogether <= count; n += kTogether) {
      for (int i = 0; i < kBlock; i += kPair) {
        Columns<Vec, 2, 2, kTogether>(layer, column + i, x + n, kActivation, y + n);
      }
    }
    for (; n < count; ++n) {
      for (int i = 0; i < kBlock; i += kWidest * kLanes) {
        Columns<Vec, kWidest, 2, 1>(layer, column + i, x + n, kActivation, y + n);
      }
    }
  }
  constexpr int kRest = sizeof(Narrow) / sizeof(float);
  for (; column < layer.out; column += kRest) {
    for (int n = 0; n < count; ++n) {
      Columns<Narrow, 1, 8, 1>(layer, column, x + n, kActivation, y + n);
    }
  }
}

}  // namespace

void PYFASTENV_NAME(Dense)(const DenseLayer& layer, int count, const float* const* x,
                           Activation activation, float* const* y) {
  const bool normalises = layer.norm != nullptr;
  WithConstant(normalises ? Activation::kIdentity : activation,
               [&](auto constant) { DenseWith<decltype(constant)::value>(layer, count, x, y); });
  if (!normalises) return;
  constexpr int kSize = sizeof(Narrow) / sizeof(float);
  for (int n = 0; n < count; ++n) {
    Standardise<Narrow>(y[n], layer.norm_size, layer.out);
    for (int i = 0; i < layer.out; i += kSize) {
      const Narrow scaled = LoadLoose<Narrow>(y[n] + i) * LoadLoose<Narrow>(layer.norm + i) +
                            LoadLoose<Narrow>(layer.norm + layer.out + i);
      StoreLoose(y[n] + i, Activate(activation, scaled, Divide()));
    }
  }
}

}  // namespace pyfastenv
