// One source, compiled for each vector unit: see CMakeLists.txt and nn/vector_math.h.
#include "learn/train_kernels.h"

#include "nn/vector_math.h"

namespace pyfastenv {

namespace {

constexpr int kTileRows = kLanes == 16 ? 8 : 4;
constexpr int kTileVecs = kLanes == 4 ? 2 : (kLanes == 8 ? 2 : 1);
constexpr int kTileColumns = kTileVecs * kLanes;
static_assert(kRowMultiple % kTileRows == 0 && kColumnMultiple % kTileColumns == 0);

// sums[m][v] += over k of A(m, k) * b[k][columns of v]; A(m, k) = a[m * step_m + k * step_k]
PYFASTENV_INLINE void Tile(const float* a, ptrdiff_t step_m, ptrdiff_t step_k, const float* b,
                           ptrdiff_t step_b, int depth, Vec (&sums)[kTileRows][kTileVecs]) {
  for (int k = 0; k < depth; ++k) {
    Vec right[kTileVecs];
    for (int v = 0; v < kTileVecs; ++v) right[v] = LoadVec(b + v * kLanes);
    for (int m = 0; m < kTileRows; ++m) {
      const float left = a[m * step_m];
      for (int v = 0; v < kTileVecs; ++v) sums[m][v] += left * right[v];
    }
    a += step_k;
    b += step_b;
  }
}

template <Activation kActivation>
void ForwardWith(const float* x, const float* w, const float* b, int rows, int in, int out,
                 float* y, float* slope) {
  for (int row = 0; row < rows; row += kTileRows) {
    for (int column = 0; column < out; column += kTileColumns) {
      Vec sums[kTileRows][kTileVecs];
      for (auto& line : sums) {
        for (int v = 0; v < kTileVecs; ++v) line[v] = LoadVec(b + column + v * kLanes);
      }
      Tile(x + static_cast<ptrdiff_t>(row) * in, in, 1, w + column, out, in, sums);
      for (int m = 0; m < kTileRows; ++m) {
        for (int v = 0; v < kTileVecs; ++v) {
          const ptrdiff_t at = static_cast<ptrdiff_t>(row + m) * out + column + v * kLanes;
          const Vec value = Activate(kActivation, sums[m][v]);
          StoreVec(y + at, value);
          if (kActivation != Activation::kIdentity) {
            StoreVec(slope + at, Slope(kActivation, sums[m][v], value));
          }
        }
      }
    }
  }
}

void Forward(const float* x, const float* w, const float* b, int rows, int in, int out,
             Activation activation, float* y, float* slope) {
  switch (activation) {
    case Activation::kIdentity:
      return ForwardWith<Activation::kIdentity>(x, w, b, rows, in, out, y, slope);
    case Activation::kTanh:
      return ForwardWith<Activation::kTanh>(x, w, b, rows, in, out, y, slope);
    case Activation::kRelu:
      return ForwardWith<Activation::kRelu>(x, w, b, rows, in, out, y, slope);
    case Activation::kElu:
      return ForwardWith<Activation::kElu>(x, w, b, rows, in, out, y, slope);
    case Activation::kSilu:
      return ForwardWith<Activation::kSilu>(x, w, b, rows, in, out, y, slope);
  }
}

void Backward(const float* dy, const float* wt, const float* slope, int rows, int in, int out,
              float* dx) {
  for (int row = 0; row < rows; row += kTileRows) {
    for (int column = 0; column < in; column += kTileColumns) {
      Vec sums[kTileRows][kTileVecs] = {};
      Tile(dy + static_cast<ptrdiff_t>(row) * out, out, 1, wt + column, in, out, sums);
      for (int m = 0; m < kTileRows; ++m) {
        for (int v = 0; v < kTileVecs; ++v) {
          const ptrdiff_t at = static_cast<ptrdiff_t>(row + m) * in + column + v * kLanes;
          StoreVec(dx + at, sums[m][v] * LoadVec(slope + at));
        }
      }
    }
  }
}

void Accumulate(const float* x, const float* dy, int rows, int in, int out, float* dw, float* db) {
  for (int row = 0; row < in; row += kTileRows) {
    for (int column = 0; column < out; column += kTileColumns) {
      Vec sums[kTileRows][kTileVecs];
      for (int m = 0; m < kTileRows; ++m) {
        for (int v = 0; v < kTileVecs; ++v) {
          sums[m][v] = LoadVec(dw + static_cast<ptrdiff_t>(row + m) * out + column + v * kLanes);
        }
      }
      Tile(x + row, 1, in, dy + column, out, rows, sums);
      for (int m = 0; m < kTileRows; ++m) {
        for (int v = 0; v < kTileVecs; ++v) {
          StoreVec(dw + static_cast<ptrdiff_t>(row + m) * out + column + v * kLanes, sums[m][v]);
        }
      }
    }
  }
  for (int column = 0; column < out; column += kLanes) {
    Vec sum = LoadVec(db + column);
    for (int row = 0; row < rows; ++row) {
      sum += LoadVec(dy + static_cast<ptrdiff_t>(row) * out + column);
    }
    StoreVec(db + column, sum);
  }
}

void Adam(const AdamStep& step, const float* grad, size_t size, float* parameters, float* mean,
          float* square) {
  for (size_t i = 0; i < size; ++i) {
    const float g = grad[i] * step.grad_scale;
    const float m = mean[i] + (1.0F - step.beta1) * (g - mean[i]);
    const float s = step.beta2 * square[i] + (1.0F - step.beta2) * g * g;
    mean[i] = m;
    square[i] = s;
    parameters[i] -= step.lr * m / (__builtin_sqrtf(s) * step.root_correction + step.eps);
  }
}

}  // namespace

extern const TrainKernels PYFASTENV_NAME(kTrain);
const TrainKernels PYFASTENV_NAME(kTrain) = {Forward, Backward, Accumulate, Adam};

}  // namespace pyfastenv
