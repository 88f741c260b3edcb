// One source, compiled for each vector unit: see CMakeLists.txt. Nothing from the standard library
// may be instantiated here: the linker could keep the copy that only newer processors run.
//
// Not for AVX-512: it made the layers faster and the physics between them slower (HalfCheetah
// rollouts 0.94 of the physics limit instead of 0.99), as the processor lowers its clock for it.
#include "nn/mlp_kernels.h"

#include "nn/vector_math.h"

namespace pyfastenv {

namespace {

// Outputs of kWidth vectors at once, in kChains independent sums per output: enough additions in
// flight to hide their latency.
template <int kWidth, int kChains>
PYFASTENV_INLINE void Columns(const DenseLayer& layer, int column, const float* x,
                              Activation activation, float* y) {
  static_assert(DenseLayer::kInMultiple % kChains == 0);
  Vec sums[kChains][kWidth];
  for (int v = 0; v < kWidth; ++v) {
    sums[0][v] = LoadVec(layer.biases + column + v * kLanes);
    for (int c = 1; c < kChains; ++c) sums[c][v] = Vec{};
  }
  const float* row = layer.weights + column;
  for (int i = 0; i < layer.in; i += kChains) {
    for (int c = 0; c < kChains; ++c, row += layer.out) {
      for (int v = 0; v < kWidth; ++v) {
        sums[c][v] += x[i + c] * LoadVec(row + v * kLanes);
      }
    }
  }
  for (int v = 0; v < kWidth; ++v) {
    for (int c = 1; c < kChains; ++c) sums[0][v] += sums[c][v];
    StoreVec(y + column + v * kLanes, Activate(activation, sums[0][v]));
  }
}

template <Activation kActivation>
void DenseWith(const DenseLayer& layer, const float* x, float* y) {
  int column = 0;
  for (; column + 4 * kLanes <= layer.out; column += 4 * kLanes) {
    Columns<4, 2>(layer, column, x, kActivation, y);
  }
  for (; column < layer.out; column += kLanes) Columns<1, 8>(layer, column, x, kActivation, y);
}

}  // namespace

void PYFASTENV_NAME(Dense)(const DenseLayer& layer, const float* x, Activation activation,
                           float* y) {
  switch (activation) {
    case Activation::kIdentity:
      return DenseWith<Activation::kIdentity>(layer, x, y);
    case Activation::kTanh:
      return DenseWith<Activation::kTanh>(layer, x, y);
    case Activation::kRelu:
      return DenseWith<Activation::kRelu>(layer, x, y);
    case Activation::kElu:
      return DenseWith<Activation::kElu>(layer, x, y);
    case Activation::kSilu:
      return DenseWith<Activation::kSilu>(layer, x, y);
  }
}

}  // namespace pyfastenv
