// Compiled twice, for AMX and for AVX512-BF16: see learn/bf16_product.h.
#include "learn/bf16_kernels.h"

#include "learn/bf16_product.h"

namespace pyfastenv {

namespace {

#ifdef __AMX_BF16__
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t column_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// in memory: GCC 12 takes the intrinsic to read eight bytes only, and drops what fills the rest
const volatile TileConfig kConfig;

void Begin() { _tile_loadconfig(const_cast<const TileConfig*>(&kConfig)); }

void End() { _tile_release(); }
#else
void Begin() {}

void End() {}
#endif

// tiles in a packed factor of `rows` rows: the two of a block stand together
PYFASTENV_INLINE uint16_t* Block(uint16_t* packed, int rows, int row_block, int column_block) {
  return packed + (static_cast<ptrdiff_t>(column_block) * (rows / kTile) + row_block) * 1024;
}

PYFASTENV_INLINE __m512i Pairs(__m256i first, __m256i second) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(first),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
}

PYFASTENV_INLINE int Padded32(int size) { return (size + kTile - 1) / kTile * kTile; }

PYFASTENV_INLINE void Transpose16(__m512i (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// w's rows, so many copies of them (one or two), one under the other
PYFASTENV_INLINE void PackCopies(const float* w, int rows, int copies, int columns, int padded_rows,
                                 uint16_t* packed) {
  const auto line = [&](int row, int column, __mmask16 mask) {
    if (row >= copies * rows) return _mm512_setzero_ps();
    const ptrdiff_t source = row < rows ? row : row - rows;
    return _mm512_maskz_loadu_ps(mask, w + source * columns + column);
  };
  const int padded_columns = Padded32(columns);
  for (int block = 0; block < padded_columns / kTile; ++block) {
    for (int row = 0; row < Padded32(copies * rows); row += 2) {
      uint16_t* tiles = Block(packed, padded_rows, row / kTile, block);
      for (int half = 0; half < 2; ++half) {
        const int column = block * kTile + half * kHalf;
        const __mmask16 mask = Mask(columns - column);
        _mm512_storeu_si512(
            tiles + half * 512 + (row % kTile) * kHalf,
            Pairs(Round(line(row, column, mask)), Round(line(row + 1, column, mask))));
      }
    }
  }
}

void Pack(const float* w, int rows, int columns, int padded_rows, uint16_t* packed) {
  PackCopies(w, rows, 1, columns, padded_rows, packed);
}

void PackTwice(const float* w, int rows, int columns, int padded_rows, uint16_t* packed) {
  PackCopies(w, rows, 2, columns, padded_rows, packed);
}

void PackTransposed(const float* w, int rows, int columns, uint16_t* packed) {
  // the factor is (columns, rows): pairs of its rows are neighbours in a row of w
  const int padded_rows = Padded32(rows);
  const int padded_columns = Padded32(columns);
  for (int row = 0; row < padded_rows; row += kHalf) {
    for (int column = 0; column < padded_columns; column += kTile) {
      __m512i lines[16];
      for (int i = 0; i < kHalf; ++i) {
        if (row + i >= rows) {
          lines[i] = _mm512_setzero_si512();
          continue;
        }
        const float* at = w + static_cast<ptrdiff_t>(row + i) * columns + column;
        const __m512 low = _mm512_maskz_loadu_ps(Mask(columns - column), at);
        const __m512 high = _mm512_maskz_loadu_ps(Mask(columns - column - kHalf), at + kHalf);
        lines[i] = (__m512i)_mm512_cvtne2ps_pbh(high, low);
      }
      Transpose16(lines);
      uint16_t* tile =
          Block(packed, padded_columns, column / kTile, row / kTile) + (row % kTile) / kHalf * 512;
      for (int i = 0; i < kHalf; ++i) _mm512_storeu_si512(tile + i * kTile, lines[i]);
    }
  }
}

PYFASTENV_INLINE __m512i SamplePairs(const uint16_t* x, int columns) {
  return Pairs(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)),
               _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + columns)));
}

void PackSamples(const uint16_t* x, int rows, int columns, uint16_t* packed) {
  for (int block = 0; block < columns / kTile; ++block) {
    for (int row = 0; row < rows; row += 2) {
      uint16_t* tiles = Block(packed, rows, row / kTile, block);
      for (int half = 0; half < 2; ++half) {
        const uint16_t* at =
            x + static_cast<ptrdiff_t>(row) * columns + block * kTile + half * kHalf;
        _mm512_storeu_si512(tiles + half * 512 + (row % kTile) * kHalf, SamplePairs(at, columns));
      }
    }
  }
}

void Transpose(const uint16_t* x, int rows, int columns, uint16_t* transposed) {
  for (int row = 0; row < rows; row += kTile) {
    for (int column = 0; column < columns; column += kHalf) {
      __m512i lines[16];
      for (int i = 0; i < kHalf; ++i) {
        lines[i] = SamplePairs(x + static_cast<ptrdiff_t>(row + 2 * i) * columns + column, columns);
      }
      Transpose16(lines);
      for (int i = 0; i < kHalf; ++i) {
        _mm512_storeu_si512(transposed + static_cast<ptrdiff_t>(column + i) * rows + row, lines[i]);
      }
    }
  }
}

void RoundAll(const float* x, int size, uint16_t* y) {
  for (int i = 0; i < size; i += kHalf) {
    const __mmask16 mask = Mask(size - i);
    _mm256_mask_storeu_epi16(y + i, mask, Round(_mm512_maskz_loadu_ps(mask, x + i)));
  }
}

void Split(const float* x, int size, uint16_t* high, uint16_t* low) {
  for (int i = 0; i < size; i += kHalf) {
    const __mmask16 mask = Mask(size - i);
    const __m512 whole = _mm512_maskz_loadu_ps(mask, x + i);
    const __m256i rounded = Round(whole);
    _mm256_mask_storeu_epi16(high + i, mask, rounded);
    _mm256_mask_storeu_epi16(low + i, mask, Round(_mm512_sub_ps(whole, Widen(rounded))));
  }
}

void ForwardRelu(const uint16_t* x, const uint16_t* w, const float* bias, int rows, int in, int out,
                 uint16_t* y) {
  Product(x, w, rows, in, out, [&](int row, int column, const float* sums) {
    const Pair add = Load(bias + column);
    for (int i = 0; i < kTile; ++i) {
      Store(y + At(row + i, out, column), Relu(Add(Load(sums + i * kTile), add)));
    }
  });
}

void ForwardLast(const uint16_t* x, const uint16_t* w, const float* bias, int rows, int in, int out,
                 float* y) {
  Product(x, w, rows, in, out, [&](int row, int column, const float* sums) {
    const Pair add = bias == nullptr ? Zero() : Load(bias + column);
    for (int i = 0; i < kTile; ++i) {
      Store(y + At(row + i, out, column), Add(Load(sums + i * kTile), add));
    }
  });
}

void ForwardSlope(Activation activation, const uint16_t* x, const uint16_t* w, const float* bias,
                  int rows, int in, int out, uint16_t* y, uint16_t* slope) {
  WithConstant(activation, [&](auto constant) {
    constexpr Activation kActivation = decltype(constant)::value;
    Product(x, w, rows, in, out, [&](int row, int column, const float* sums) {
      const Pair add = Load(bias + column);
      for (int i = 0; i < kTile; ++i) {
        const Pair sum = Add(Load(sums + i * kTile), add);
        const Vec low = (Vec)sum.low, high = (Vec)sum.high;
        const Vec y_low = Activate(kActivation, low, Reciprocal);
        const Vec y_high = Activate(kActivation, high, Reciprocal);
        const ptrdiff_t at = At(row + i, out, column);
        Store(y + at, Pair{(__m512)y_low, (__m512)y_high});
        Store(slope + at, Pair{(__m512)Slope(kActivation, low, y_low),
                               (__m512)Slope(kActivation, high, y_high)});
      }
    });
  });
}

void BackwardSlope(const uint16_t* dy, const uint16_t* wt, const uint16_t* slope, int rows, int in,
                   int out, uint16_t* dx) {
  Product(dy, wt, rows, out, in, [&](int row, int column, const float* sums) {
    for (int i = 0; i < kTile; ++i) {
      const ptrdiff_t at = At(row + i, in, column);
      Store(dx + at, Times(Load(sums + i * kTile), Load(slope + at)));
    }
  });
}

void BackwardRelu(const uint16_t* dy, const uint16_t* wt, const uint16_t* h, int rows, int in,
                  int out, uint16_t* dx) {
  Product(dy, wt, rows, out, in, [&](int row, int column, const float* sums) {
    for (int i = 0; i < kTile; ++i) {
      const ptrdiff_t at = static_cast<ptrdiff_t>(row + i) * in + column;
      const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(_mm512_load_ps(sums + i * kTile + kHalf),
                                                        _mm512_load_ps(sums + i * kTile));
      const __mmask32 positive =
          _mm512_cmpgt_epi16_mask(_mm512_loadu_si512(h + at), _mm512_setzero_si512());
      _mm512_storeu_si512(dx + at, _mm512_maskz_mov_epi16(positive, both));
    }
  });
}

void ColumnSums(const uint16_t* dy, int rows, int out, float* db) {
  for (int column = 0; column < out; column += kHalf) {
    __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (int row = 0; row < rows; ++row) {
      const uint16_t* at = dy + static_cast<ptrdiff_t>(row) * out + column;
      sums[row % 2] = _mm512_add_ps(
          sums[row % 2], Widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))));
    }
    _mm512_storeu_ps(db + column, _mm512_add_ps(sums[0], sums[1]));
  }
}

}  // namespace

#ifdef __AMX_BF16__
constexpr const char* kUnit = "AMX";
#else
constexpr const char* kUnit = "AVX512-BF16";
#endif

extern const Bf16Kernels PYFASTENV_NAME(kBf16);
const Bf16Kernels PYFASTENV_NAME(kBf16) = {.unit = kUnit,
                                           .begin = Begin,
                                           .end = End,
                                           .pack = Pack,
                                           .pack_twice = PackTwice,
                                           .pack_transposed = PackTransposed,
                                           .pack_samples = PackSamples,
                                           .transpose = Transpose,
                                           .round = RoundAll,
                                           .split = Split,
                                           .forward_relu = ForwardRelu,
                                           .forward_slope = ForwardSlope,
                                           .forward_last = ForwardLast,
                                           .backward_relu = BackwardRelu,
                                           .backward_slope = BackwardSlope,
                                           .column_sums = ColumnSums};

}  // namespace pyfastenv
