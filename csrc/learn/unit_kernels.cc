// Compiled twice, for AMX and for AVX512-BF16: see learn/bf16_product.h.
#include "learn/unit_kernels.h"

#include "learn/bf16_product.h"

namespace pyfastenv {

namespace {

// x where norm > 0, else 0
PYFASTENV_INLINE Pair Where(const Pair& norm, const Pair& x) {
  const __m512 zero = _mm512_setzero_ps();
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(norm.low, zero, _CMP_GT_OQ), x.low),
          _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(norm.high, zero, _CMP_GT_OQ), x.high)};
}

PYFASTENV_INLINE void AddTo(double* sums, __m512 x) {
  const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
  const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
  _mm512_storeu_pd(sums, _mm512_add_pd(_mm512_loadu_pd(sums), low));
  _mm512_storeu_pd(sums + 8, _mm512_add_pd(_mm512_loadu_pd(sums + 8), high));
}

PYFASTENV_INLINE void AddTo(double* sums, const Pair& x) {
  AddTo(sums, x.low);
  AddTo(sums + kHalf, x.high);
}

// Calls use(column, first row, end) for strips of a matrix: sums of few rows are exact enough in
// float32
template <class Use>
PYFASTENV_INLINE void ForStrips(int rows, int columns, Use use) {
  for (int column = 0; column < columns; column += kTile) {
    for (int row = 0; row < rows; row += kTile) {
      use(column, row, row + kTile < rows ? row + kTile : rows);
    }
  }
}

void Forward(const uint16_t* x, const uint16_t* w, int rows, int in, int out, uint16_t* y,
             const ColumnSums& sums) {
  Product(x, w, rows, in, out, [&](int row, int column, const float* block) {
    Pair plain = Zero();
    Pair squares = Zero();
    for (int i = 0; i < kTile; ++i) {
      const Pair line = Load(block + i * kTile);
      Store(y + At(row + i, out, column), line);
      plain = Add(plain, line);
      squares = MultiplyAdd(line, line, squares);
    }
    if (sums.plain == nullptr) return;
    AddTo(sums.plain + column, plain);
    AddTo(sums.weighted + column, squares);
  });
}

void Activate(const uint16_t* y, const float* scale, const float* shift, const uint16_t* add,
              int rows, int columns, uint16_t* result) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; column += kTile) {
      const ptrdiff_t at = At(row, columns, column);
      Pair x = Relu(MultiplyAdd(Load(y + at), Load(scale + column), Load(shift + column)));
      if (add != nullptr) x = Add(x, Load(add + at));
      Store(result + at, x);
    }
  }
}

// dx = from(row) where y * scale + shift > 0, else 0, in 32 columns of some rows
template <class From>
PYFASTENV_INLINE void MaskRows(int begin, int end, int columns, int column, const uint16_t* y,
                               const float* scale, const float* shift, uint16_t* dx,
                               const ColumnSums& sums, From from) {
  const Pair times = Load(scale + column);
  const Pair plus = Load(shift + column);
  Pair plain = Zero();
  Pair weighted = Zero();
  for (int row = begin; row < end; ++row) {
    const ptrdiff_t at = At(row, columns, column);
    const Pair before = Load(y + at);
    const Pair line = Where(MultiplyAdd(before, times, plus), from(row));
    Store(dx + at, line);
    plain = Add(plain, line);
    weighted = MultiplyAdd(line, before, weighted);
  }
  AddTo(sums.plain + column, plain);
  AddTo(sums.weighted + column, weighted);
}

void Backward(const uint16_t* dy, const uint16_t* wt, const uint16_t* y, const float* scale,
              const float* shift, int rows, int in, int out, uint16_t* dx, const ColumnSums& sums) {
  Product(dy, wt, rows, out, in, [&](int row, int column, const float* block) {
    MaskRows(row, row + kTile, in, column, y, scale, shift, dx, sums,
             [&](int i) { return Load(block + (i - row) * kTile); });
  });
}

void Masked(const uint16_t* from, const uint16_t* y, const float* scale, const float* shift,
            int rows, int columns, uint16_t* dx, const ColumnSums& sums) {
  ForStrips(rows, columns, [&](int column, int begin, int end) {
    MaskRows(begin, end, columns, column, y, scale, shift, dx, sums,
             [&](int row) { return Load(from + At(row, columns, column)); });
  });
}

void ThroughNorm(const uint16_t* y, const float* a, const float* b, const float* c, int rows,
                 int columns, uint16_t* dx) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; column += kTile) {
      const ptrdiff_t at = At(row, columns, column);
      const Pair rest = MultiplyAdd(Load(y + at), Load(b + column), Load(c + column));
      Store(dx + at, MultiplyAdd(Load(dx + at), Load(a + column), rest));
    }
  }
}

void BackwardAdd(const uint16_t* dy, const uint16_t* wt, const uint16_t* add, int rows, int in,
                 int out, uint16_t* dx) {
  Product(dy, wt, rows, out, in, [&](int row, int column, const float* block) {
    for (int i = 0; i < kTile; ++i) {
      const ptrdiff_t at = At(row + i, in, column);
      Store(dx + at, Add(Load(block + i * kTile), Load(add + at)));
    }
  });
}

PYFASTENV_INLINE float Total(const Pair& x) {
  return _mm512_reduce_add_ps(_mm512_add_ps(x.low, x.high));
}

PYFASTENV_INLINE Pair Times(const Pair& x, float y) {
  const __m512 all = _mm512_set1_ps(y);
  return Times(x, Pair{all, all});
}

void RmsNorm(const uint16_t* x, const float* weight, int rows, int columns, int size, float eps,
             uint16_t* y, float* inverse) {
  for (int row = 0; row < rows; ++row) {
    const uint16_t* line = x + At(row, columns, 0);
    Pair squares = Zero();
    for (int column = 0; column < columns; column += kTile) {
      const Pair part = Load(line + column);
      squares = MultiplyAdd(part, part, squares);
    }
    const float mean = Total(squares) / static_cast<float>(size) + eps;
    inverse[row] = 1.0F / __builtin_sqrtf(mean);
    for (int column = 0; column < columns; column += kTile) {
      const Pair scaled = Times(Times(Load(line + column), inverse[row]), Load(weight + column));
      Store(y + At(row, columns, column), scaled);
    }
  }
}

void RmsBackward(const float* dy, const uint16_t* x, const float* weight, const float* inverse,
                 int rows, int columns, int size, uint16_t* dx, float* by_weight) {
  for (int column = 0; column < columns; ++column) by_weight[column] = 0.0F;
  for (int row = 0; row < rows; ++row) {
    const float* up = dy + At(row, columns, 0);
    const uint16_t* line = x + At(row, columns, 0);
    Pair along = Zero();
    for (int column = 0; column < columns; column += kTile) {
      const Pair product = Times(Load(up + column), Load(line + column));
      const Pair sum =
          MultiplyAdd(product, Pair{_mm512_set1_ps(inverse[row]), _mm512_set1_ps(inverse[row])},
                      Load(by_weight + column));
      Store(by_weight + column, sum);
      along = MultiplyAdd(product, Load(weight + column), along);
    }
    const float cube = inverse[row] * inverse[row] * inverse[row];
    const float back = -Total(along) * cube / static_cast<float>(size);
    for (int column = 0; column < columns; column += kTile) {
      const Pair direct = Times(Times(Load(up + column), Load(weight + column)), inverse[row]);
      const Pair rest = Times(Load(line + column), back);
      Store(dx + At(row, columns, column), Add(direct, rest));
    }
  }
}

void RoundRows(const float* x, const float* scale, const float* shift, int rows, int size,
               int columns, uint16_t* y) {
  for (int row = 0; row < rows; ++row) {
    const float* line = x + At(row, size, 0);
    for (int column = 0; column < columns; column += kHalf) {
      const __mmask16 mask = Mask(size - column);
      __m512 part = _mm512_maskz_loadu_ps(mask, line + column);
      if (scale != nullptr) {
        part = _mm512_fmadd_ps(part, _mm512_maskz_loadu_ps(mask, scale + column),
                               _mm512_maskz_loadu_ps(mask, shift + column));
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + At(row, columns, column)), Round(part));
    }
  }
}

void SumRows(const float* x, int stride, const float* y, int y_stride, int rows, int size,
             const ColumnSums& sums) {
  for (int column = 0; column < size; column += kHalf) {
    const __mmask16 mask = Mask(size - column);
    for (int begin = 0; begin < rows; begin += kTile) {
      const int end = begin + kTile < rows ? begin + kTile : rows;
      __m512 plain = _mm512_setzero_ps();
      __m512 weighted = _mm512_setzero_ps();
      for (int row = begin; row < end; ++row) {
        const __m512 part = _mm512_maskz_loadu_ps(mask, x + At(row, stride, column));
        const __m512 other = _mm512_maskz_loadu_ps(mask, y + At(row, y_stride, column));
        plain = _mm512_add_ps(plain, part);
        weighted = _mm512_fmadd_ps(part, other, weighted);
      }
      AddTo(sums.plain + column, plain);
      AddTo(sums.weighted + column, weighted);
    }
  }
}

}  // namespace

extern const UnitKernels PYFASTENV_NAME(kUnit);
const UnitKernels PYFASTENV_NAME(kUnit) = {.forward = Forward,
                                           .activate = Activate,
                                           .backward = Backward,
                                           .mask = Masked,
                                           .through_norm = ThroughNorm,
                                           .backward_add = BackwardAdd,
                                           .rms_norm = RmsNorm,
                                           .rms_backward = RmsBackward,
                                           .round = RoundRows,
                                           .sum = SumRows};

}  // namespace pyfastenv
