// One source, compiled for each vector unit: see CMakeLists.txt and nn/vector_math.h.
#include "learn/train_kernels.h"

#include "nn/vector_math.h"

namespace pyfastenv {

namespace {

// A tile's sums stay in registers: two vectors of columns, so that each number of the left matrix
// is loaded for two products, and one where that is all there is. An output's sum has the same
// order in every tile.
constexpr int kTileRows = kLanes == 16 ? 8 : 4;
constexpr int kTileVecs = 2;
static_assert(kRowMultiple % kTileRows == 0 && kColumnMultiple % kLanes == 0);

template <int kVecs>
using TileSums = Vec[kTileRows][kVecs];

// sums[m][v] += over k of A(m, k) * b[k][columns of v]; A(m, k) = a[m * step_m + k * step_k]
template <int kVecs>
PYFASTENV_INLINE void Tile(const float* a, ptrdiff_t step_m, ptrdiff_t step_k, const float* b,
                           ptrdiff_t step_b, int depth, TileSums<kVecs>& sums) {
  for (int k = 0; k < depth; ++k) {
    Vec right[kVecs];
    for (int v = 0; v < kVecs; ++v) right[v] = LoadVec(b + v * kLanes);
    for (int m = 0; m < kTileRows; ++m) {
      const float left = a[m * step_m];
      for (int v = 0; v < kVecs; ++v) sums[m][v] += left * right[v];
    }
    a += step_k;
    b += step_b;
  }
}

// Calls tile(Columns<kVecs>, first row, first column) for tiles that cover a matrix.
template <int kVecs>
struct Columns {};

template <class F>
PYFASTENV_INLINE void ForTiles(int rows, int columns, F tile) {
  for (int row = 0; row < rows; row += kTileRows) {
    int column = 0;
    for (; column + kTileVecs * kLanes <= columns; column += kTileVecs * kLanes) {
      tile(Columns<kTileVecs>(), row, column);
    }
    for (; column < columns; column += kLanes) tile(Columns<1>(), row, column);
  }
}

// Calls element(sum, place in a matrix that is `width` wide) for all of a tile.
template <int kVecs, class F>
PYFASTENV_INLINE void ForSums(TileSums<kVecs>& sums, int row, int column, int width, F element) {
  for (int m = 0; m < kTileRows; ++m) {
    for (int v = 0; v < kVecs; ++v) {
      element(sums[m][v], static_cast<ptrdiff_t>(row + m) * width + column + v * kLanes);
    }
  }
}

template <Activation kActivation>
void ForwardWith(const float* x, const float* w, const float* b, int rows, int in, int out,
                 float* y, float* slope) {
  ForTiles(rows, out, [&]<int kVecs>(Columns<kVecs>, int row, int column) {
    TileSums<kVecs> sums;
    for (auto& line : sums) {
      for (int v = 0; v < kVecs; ++v) line[v] = LoadVec(b + column + v * kLanes);
    }
    Tile<kVecs>(x + static_cast<ptrdiff_t>(row) * in, in, 1, w + column, out, in, sums);
    ForSums<kVecs>(sums, row, column, out, [&](Vec sum, ptrdiff_t at) {
      const Vec value = Activate(kActivation, sum);
      StoreVec(y + at, value);
      if (kActivation != Activation::kIdentity) {
        StoreVec(slope + at, Slope(kActivation, sum, value));
      }
    });
  });
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
  ForTiles(rows, in, [&]<int kVecs>(Columns<kVecs>, int row, int column) {
    TileSums<kVecs> sums = {};
    Tile<kVecs>(dy + static_cast<ptrdiff_t>(row) * out, out, 1, wt + column, in, out, sums);
    ForSums<kVecs>(sums, row, column, in,
                   [&](Vec sum, ptrdiff_t at) { StoreVec(dx + at, sum * LoadVec(slope + at)); });
  });
}

void Accumulate(const float* x, const float* dy, int rows, int in, int out, bool first, float* dw,
                float* db) {
  ForTiles(in, out, [&]<int kVecs>(Columns<kVecs>, int row, int column) {
    TileSums<kVecs> sums = {};
    if (!first) {
      ForSums<kVecs>(sums, row, column, out,
                     [&](Vec& sum, ptrdiff_t at) { sum = LoadVec(dw + at); });
    }
    Tile<kVecs>(x + row, 1, in, dy + column, out, rows, sums);
    ForSums<kVecs>(sums, row, column, out, [&](Vec sum, ptrdiff_t at) { StoreVec(dw + at, sum); });
  });
  for (int column = 0; column < out; column += kLanes) {
    Vec sum = first ? Vec{} : LoadVec(db + column);
    for (int row = 0; row < rows; ++row) {
      sum += LoadVec(dy + static_cast<ptrdiff_t>(row) * out + column);
    }
    StoreVec(db + column, sum);
  }
}

double Reduce(const float* const* parts, int count, size_t size, float* total) {
  Vec squares = {};
  for (size_t i = 0; i < size; i += kLanes) {
    Vec sum = LoadVec(parts[0] + i);
    for (int k = 1; k < count; ++k) sum += LoadVec(parts[k] + i);
    StoreVec(total + i, sum);
    squares += sum * sum;
  }
  double sum = 0.0;
  for (int lane = 0; lane < kLanes; ++lane) sum += static_cast<double>(squares[lane]);
  return sum;
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
const TrainKernels PYFASTENV_NAME(kTrain) = {Forward, Backward, Accumulate, Reduce, Adam};

}  // namespace pyfastenv
