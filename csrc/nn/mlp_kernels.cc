// One source, compiled for each vector unit: see CMakeLists.txt. Nothing from the standard library
// may be instantiated here: the linker could keep the copy that only newer processors run.
//
// Not for AVX-512: it made the layers faster and the physics between them slower (HalfCheetah
// rollouts 0.94 of the physics limit instead of 0.99), as the processor lowers its clock for it.
#include "nn/mlp_kernels.h"

#include "nn/vector_math.h"

namespace pyfastenv {

namespace {

// Outputs of kWidth vectors at once for kInputs inputs, which share the weights, in kChains
// independent sums per output: enough additions in flight to hide their latency.
template <int kWidth, int kChains, int kInputs>
PYFASTENV_INLINE void Columns(const DenseLayer& layer, int column, const float* const* x,
                              Activation activation, float* const* y) {
  static_assert(DenseLayer::kInMultiple % kChains == 0);
  Vec sums[kInputs][kChains][kWidth];
  for (int n = 0; n < kInputs; ++n) {
    for (int v = 0; v < kWidth; ++v) {
      sums[n][0][v] = LoadVec(layer.biases + column + v * kLanes);
      for (int c = 1; c < kChains; ++c) sums[n][c][v] = Vec{};
    }
  }
  const float* row = layer.weights + column;
  for (int i = 0; i < layer.in; i += kChains) {
    for (int c = 0; c < kChains; ++c, row += layer.out) {
      for (int v = 0; v < kWidth; ++v) {
        const Vec weights = LoadVec(row + v * kLanes);
        for (int n = 0; n < kInputs; ++n) sums[n][c][v] += x[n][i + c] * weights;
      }
    }
  }
  for (int n = 0; n < kInputs; ++n) {
    for (int v = 0; v < kWidth; ++v) {
      for (int c = 1; c < kChains; ++c) sums[n][0][v] += sums[n][c][v];
      StoreVec(y[n] + column + v * kLanes, Activate(activation, sums[n][0][v]));
    }
  }
}

// An output's sum is cut into chains by its column alone: its bits do not depend on `count`.
template <Activation kActivation>
void DenseWith(const DenseLayer& layer, int count, const float* const* x, float* const* y) {
  constexpr int kTogether = 3;  // as many sums as 16 registers hold
  int column = 0;
  for (; column + 4 * kLanes <= layer.out; column += 4 * kLanes) {
    int n = 0;
    for (; n + kTogether <= count; n += kTogether) {
      Columns<2, 2, kTogether>(layer, column, x + n, kActivation, y + n);
      Columns<2, 2, kTogether>(layer, column + 2 * kLanes, x + n, kActivation, y + n);
    }
    for (; n < count; ++n) Columns<4, 2, 1>(layer, column, x + n, kActivation, y + n);
  }
  for (; column < layer.out; column += kLanes) {
    for (int n = 0; n < count; ++n) Columns<1, 8, 1>(layer, column, x + n, kActivation, y + n);
  }
}

}  // namespace

void PYFASTENV_NAME(Dense)(const DenseLayer& layer, int count, const float* const* x,
                           Activation activation, float* const* y) {
  switch (activation) {
    case Activation::kIdentity:
      return DenseWith<Activation::kIdentity>(layer, count, x, y);
    case Activation::kTanh:
      return DenseWith<Activation::kTanh>(layer, count, x, y);
    case Activation::kRelu:
      return DenseWith<Activation::kRelu>(layer, count, x, y);
    case Activation::kElu:
      return DenseWith<Activation::kElu>(layer, count, x, y);
    case Activation::kSilu:
      return DenseWith<Activation::kSilu>(layer, count, x, y);
  }
}

}  // namespace pyfastenv
