// One source, compiled for each vector unit: see CMakeLists.txt and nn/vector_math.h.
#include "learn/train_kernels.h"

#include <cstring>
#include <utility>

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

// Calls element(sum, place in a matrix that is `width` wide, column) for all of a tile.
template <int kVecs, class F>
PYFASTENV_INLINE void ForSums(TileSums<kVecs>& sums, int row, int column, int width, F element) {
#pragma GCC unroll 8
  for (int m = 0; m < kTileRows; ++m) {
#pragma GCC unroll 2
    for (int v = 0; v < kVecs; ++v) {
      const int mine = column + v * kLanes;
      element(sums[m][v], static_cast<ptrdiff_t>(row + m) * width + mine, mine);
    }
  }
}

// The lines of a wide matrix lie so far apart that those of a tile's columns push each other out of
// the first-level cache. Of one of more than kCopiedSize numbers, for kCopiedRows rows or more,
// they are copied side by side: so many at a time as fill half of that cache.
constexpr int kCopiedSize = 8192;
constexpr int kCopiedRows = 32;
template <int kVecs>
constexpr int kPanelDepth = 4096 / (kVecs * kLanes);

// A(m, k) = data[m * step_m + k * step_k]
struct Left {
  const float* data;
  ptrdiff_t step_m, step_k;
};

// end(begin + a @ b, place in y) for the columns of a tile.
template <int kVecs, class Begin, class End>
PYFASTENV_INLINE void Tiles(const Left& a, const float* b, ptrdiff_t step_b, int rows, int depth,
                            int width, int column, Begin begin, End end) {
  for (int row = 0; row < rows; row += kTileRows) {
    TileSums<kVecs> sums;
    ForSums<kVecs>(sums, row, column, width,
                   [&](Vec& sum, ptrdiff_t at, int mine) { sum = begin(at, mine); });
    Tile<kVecs>(a.data + row * a.step_m, a.step_m, a.step_k, b, step_b, depth, sums);
    ForSums<kVecs>(sums, row, column, width,
                   [&](Vec sum, ptrdiff_t at, int /*mine*/) { end(sum, at); });
  }
}

// The same, of copies where that pays; sums wait in y for the next lines.
template <int kVecs, class Begin, class End>
PYFASTENV_INLINE void Columns(Left a, const float* b, int rows, int depth, int width, int column,
                              float* y, Begin begin, End end) {
  b += column;
  if (rows < kCopiedRows || depth * width <= kCopiedSize) {
    return Tiles<kVecs>(a, b, width, rows, depth, width, column, begin, end);
  }
  constexpr int kColumns = kVecs * kLanes;
  alignas(64) float panel[kPanelDepth<kVecs> * kColumns];
  for (int k = 0, lines; k < depth; k += lines) {
    lines = depth - k < kPanelDepth<kVecs> ? depth - k : kPanelDepth<kVecs>;
    for (int i = 0; i < lines; ++i, b += width) {
      for (int v = 0; v < kVecs; ++v) {
        StoreVec(panel + i * kColumns + v * kLanes, LoadVec(b + v * kLanes));
      }
    }
    Tiles<kVecs>(
        a, panel, kColumns, rows, lines, width, column,
        [&](ptrdiff_t at, int mine) { return k == 0 ? begin(at, mine) : LoadVec(y + at); },
        [&](Vec sum, ptrdiff_t at) {
          if (k + lines == depth) {
            end(sum, at);
          } else {
            StoreVec(y + at, sum);
          }
        });
    a.data += lines * a.step_k;
  }
}

// Calls end(sum, place in y) for y (rows, width) = begin(place, column) + a (rows, depth) @ b.
template <class Begin, class End>
PYFASTENV_INLINE void Product(const Left& a, const float* b, int rows, int depth, int width,
                              float* y, Begin begin, End end) {
  int column = 0;
  for (; column + kTileVecs * kLanes <= width; column += kTileVecs * kLanes) {
    Columns<kTileVecs>(a, b, rows, depth, width, column, y, begin, end);
  }
  for (; column < width; column += kLanes) {
    Columns<1>(a, b, rows, depth, width, column, y, begin, end);
  }
}

template <Activation kActivation>
void ForwardWith(const float* x, const float* w, const float* b, int rows, const LayerShape& shape,
                 float* y, float* slope) {
  const int width = shape.padded_out;
  Product(
      {x, shape.padded_in, 1}, w, rows, shape.in, width, y,
      [&](ptrdiff_t /*at*/, int column) { return LoadVec(b + column); },
      [&](Vec sum, ptrdiff_t at) {
        const Vec value = Activate(kActivation, sum, Reciprocal);
        StoreVec(y + at, value);
        if (kActivation != Activation::kIdentity) {
          StoreVec(slope + at, Slope(kActivation, sum, value));
        }
      });
}

void Forward(const float* x, const float* w, const float* b, int rows, const LayerShape& shape,
             Activation activation, float* y, float* slope) {
  WithConstant(activation, [&](auto constant) {
    ForwardWith<decltype(constant)::value>(x, w, b, rows, shape, y, slope);
  });
}

void Backward(const float* dy, const float* wt, const float* slope, int rows,
              const LayerShape& shape, float* dx) {
  Product(
      {dy, shape.padded_out, 1}, wt, rows, shape.out, shape.padded_in, dx,
      [](ptrdiff_t /*at*/, int /*column*/) { return Vec{}; },
      [&](Vec sum, ptrdiff_t at) {
        StoreVec(dx + at, slope == nullptr ? sum : sum * LoadVec(slope + at));
      });
}

// sums[v] of each line of `y`, two lines at a time: a chain of additions waits for each
template <int kVecs>
PYFASTENV_INLINE void AddLines(const float* y, int rows, int width, bool first, float* sums) {
  Vec even[kVecs] = {};
  Vec odd[kVecs] = {};
  for (int row = 0; row < rows; row += 2, y += 2 * static_cast<ptrdiff_t>(width)) {
    for (int v = 0; v < kVecs; ++v) {
      even[v] += LoadVec(y + v * kLanes);
      odd[v] += LoadVec(y + width + v * kLanes);
    }
  }
  for (int v = 0; v < kVecs; ++v) {
    const Vec sum = even[v] + odd[v];
    StoreVec(sums + v * kLanes, first ? sum : LoadVec(sums + v * kLanes) + sum);
  }
}

void Accumulate(const float* x, const float* dy, int rows, const LayerShape& shape, bool first,
                float* dw, float* db) {
  const int width = shape.padded_out;
  Product(
      {x, 1, shape.padded_in}, dy, shape.in, rows, width, dw,
      [&](ptrdiff_t at, int /*column*/) { return first ? Vec{} : LoadVec(dw + at); },
      [&](Vec sum, ptrdiff_t at) { StoreVec(dw + at, sum); });
  if (db == nullptr) return;
  int column = 0;
  for (; column + 4 * kLanes <= width; column += 4 * kLanes) {
    AddLines<4>(dy + column, rows, width, first, db + column);
  }
  for (; column < width; column += kLanes) {
    AddLines<1>(dy + column, rows, width, first, db + column);
  }
}

void Normalise(const float* norm, int rows, const LayerShape& shape, Activation activation,
               float* z, float* inverse, float* y, float* slope) {
  const int width = shape.padded_out;
  WithConstant(activation, [&](auto constant) {
    constexpr Activation kActivation = decltype(constant)::value;
    for (int row = 0; row < rows; ++row, z += width, y += width, slope += width) {
      inverse[row] = Standardise<Vec>(z, shape.out, width);
      for (int i = 0; i < width; i += kLanes) {
        const Vec x = LoadVec(z + i) * LoadVec(norm + i) + LoadVec(norm + width + i);
        const Vec value = Activate(kActivation, x, Reciprocal);
        StoreVec(y + i, value);
        StoreVec(slope + i, Slope(kActivation, x, value));
      }
    }
  });
}

void BackwardNorm(const float* norm, int rows, const LayerShape& shape, const float* z,
                  const float* inverse, const float* slope, bool first, float* dy, float* dnorm) {
  const int width = shape.padded_out;
  for (int i = 0; first && i < 2 * width; ++i) dnorm[i] = 0.0F;
  for (int row = 0; row < rows; ++row, z += width, dy += width) {
    Vec sums = {};
    Vec products = {};
    for (int i = 0; i < width; i += kLanes) {
      Vec gradient = LoadVec(dy + i);
      if (slope != nullptr) gradient *= LoadVec(slope + static_cast<ptrdiff_t>(row) * width + i);
      const Vec product = gradient * LoadVec(z + i);
      StoreVec(dnorm + i, LoadVec(dnorm + i) + product);
      StoreVec(dnorm + width + i, LoadVec(dnorm + width + i) + gradient);
      const Vec scale = LoadVec(norm + i);
      StoreVec(dy + i, gradient * scale);
      sums += gradient * scale;
      products += product * scale;
    }
    const auto size = static_cast<float>(shape.out);
    const Vec mean = Fill(Sum(sums) / size);
    const Vec along = Fill(Sum(products) / size);
    for (int i = 0; i < width; i += kLanes) {
      StoreVec(dy + i, (LoadVec(dy + i) - mean - LoadVec(z + i) * along) * inverse[row]);
    }
    for (int i = shape.out; i < width; ++i) dy[i] = 0.0F;
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

// Swaps the blocks of kStep lanes that stand across the diagonal of two lines.
template <int kStep, int... kLane>
PYFASTENV_INLINE void SwapBlocks(Vec& first, Vec& second,
                                 std::integer_sequence<int, kLane...> /*lanes*/) {
  const Vec a = first;
  const Vec b = second;
  first = __builtin_shufflevector(a, b, ((kLane & kStep) == 0 ? kLane : kLane - kStep + kLanes)...);
  second =
      __builtin_shufflevector(a, b, ((kLane & kStep) == 0 ? kLane + kStep : kLane + kLanes)...);
}

template <int kStep>
PYFASTENV_INLINE void TransposeSquare(Vec (&lines)[kLanes]) {
  for (int i = 0; i < kLanes; ++i) {
    if ((i & kStep) != 0) continue;
    SwapBlocks<kStep>(lines[i], lines[i + kStep], std::make_integer_sequence<int, kLanes>());
  }
  if constexpr (2 * kStep < kLanes) TransposeSquare<2 * kStep>(lines);
}

void Transpose(const float* from, int rows, int columns, float* to, int to_stride) {
  for (int row = 0; row < rows; row += kLanes) {
    for (int column = 0; column < columns; column += kLanes) {
      Vec lines[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        lines[i] = LoadVec(from + static_cast<ptrdiff_t>(row + i) * columns + column);
      }
      TransposeSquare<1>(lines);
      for (int i = 0; i < kLanes; ++i) {
        StoreVec(to + static_cast<ptrdiff_t>(column + i) * to_stride + row, lines[i]);
      }
    }
  }
}

PYFASTENV_INLINE Vec AdamVec(const AdamStep& step, Vec grad, Vec parameter, Vec& mean,
                             Vec& square) {
  grad = grad * step.grad_scale + step.decay * parameter;
  mean += (1.0F - step.beta1) * (grad - mean);
  square = step.beta2 * square + (1.0F - step.beta2) * grad * grad;
  const Vec scale = SquareRoot(square) * step.root_correction + step.eps;
  return parameter - step.lr * mean * Reciprocal(scale);
}

void Adam(const AdamStep& adam, const float* grad, size_t size, float* parameters, float* mean,
          float* square) {
  const AdamStep step = adam;  // which no store can change
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Vec m = LoadLoose(mean + i);
    Vec s = LoadLoose(square + i);
    StoreLoose(parameters + i, AdamVec(step, LoadLoose(grad + i), LoadLoose(parameters + i), m, s));
    StoreLoose(mean + i, m);
    StoreLoose(square + i, s);
  }
  if (i == size) return;
  const size_t rest = (size - i) * sizeof(float);
  Vec g = {};
  Vec p = {};
  Vec m = {};
  Vec s = {};
  std::memcpy(&g, grad + i, rest);
  std::memcpy(&p, parameters + i, rest);
  std::memcpy(&m, mean + i, rest);
  std::memcpy(&s, square + i, rest);
  p = AdamVec(step, g, p, m, s);
  std::memcpy(parameters + i, &p, rest);
  std::memcpy(mean + i, &m, rest);
  std::memcpy(square + i, &s, rest);
}

}  // namespace

extern const TrainKernels PYFASTENV_NAME(kTrain);
const TrainKernels PYFASTENV_NAME(kTrain) = {.forward = Forward,
                                             .backward = Backward,
                                             .accumulate = Accumulate,
                                             .normalise = Normalise,
                                             .backward_norm = BackwardNorm,
                                             .reduce = Reduce,
                                             .transpose = Transpose,
                                             .adam = Adam};

}  // namespace pyfastenv
