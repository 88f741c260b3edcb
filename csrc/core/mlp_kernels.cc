// One source, compiled for each vector unit: see CMakeLists.txt. Nothing from the standard library
// may be instantiated here: the linker could keep the copy that only newer processors run.
#include "core/mlp_kernels.h"

namespace pyfastenv {

namespace {

// Not 16: AVX-512 made the layers faster and the physics between them slower (HalfCheetah rollouts
// 0.94 of the physics limit instead of 0.99), as the processor lowers its clock for it.
#if defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Vec __attribute__((vector_size(kLanes * sizeof(float)), may_alias));
typedef int IntVec __attribute__((vector_size(kLanes * sizeof(int))));

inline __attribute__((always_inline)) Vec Fill(float x) { return Vec{} + x; }

inline __attribute__((always_inline)) Vec Exp(Vec x) {
  // exp(x) = 2^n exp(r) with |r| <= ln(2) / 2, where the Taylor series to r^6 is good to 1.2e-7
  const Vec low = Fill(-87.0F);
  const Vec high = Fill(88.0F);
  x = x < low ? low : x;
  x = x > high ? high : x;
  const Vec round = Fill(12582912.0F);  // 1.5 * 2^23: adding it rounds to an integer
  const Vec n = (x * 1.44269504F + round) - round;
  const Vec r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  Vec p = Fill(1.0F / 720.0F);
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const IntVec power = (__builtin_convertvector(n, IntVec) + 127) << 23;
  return p * (Vec)power;  // its bits
}

inline __attribute__((always_inline)) Vec Apply(Activation activation, Vec x) {
  switch (activation) {
    case Activation::kTanh:
      return 1.0F - 2.0F / (Exp(x + x) + 1.0F);
    case Activation::kRelu:
      return x < 0.0F ? Vec{} : x;  // NaN passes through
    case Activation::kElu:
      return x > 0.0F ? x : Exp(x) - 1.0F;
    case Activation::kSilu:
      return x / (Exp(-x) + 1.0F);
    case Activation::kIdentity:
      break;
  }
  return x;
}

// Outputs of kWidth vectors at once, in kChains independent sums per output: enough additions in
// flight to hide their latency.
template <int kWidth, int kChains>
inline __attribute__((always_inline)) void Columns(const DenseLayer& layer, int column,
                                                   const float* x, Activation activation,
                                                   float* y) {
  static_assert(DenseLayer::kInMultiple % kChains == 0);
  Vec sums[kChains][kWidth];
  for (int v = 0; v < kWidth; ++v) {
    sums[0][v] = *reinterpret_cast<const Vec*>(layer.biases + column + v * kLanes);
    for (int c = 1; c < kChains; ++c) sums[c][v] = Vec{};
  }
  const float* row = layer.weights + column;
  for (int i = 0; i < layer.in; i += kChains) {
    for (int c = 0; c < kChains; ++c, row += layer.out) {
      for (int v = 0; v < kWidth; ++v) {
        sums[c][v] += x[i + c] * *reinterpret_cast<const Vec*>(row + v * kLanes);
      }
    }
  }
  for (int v = 0; v < kWidth; ++v) {
    for (int c = 1; c < kChains; ++c) sums[0][v] += sums[c][v];
    *reinterpret_cast<Vec*>(y + column + v * kLanes) = Apply(activation, sums[0][v]);
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

void PYFASTENV_DENSE(const DenseLayer& layer, const float* x, Activation activation, float* y) {
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
