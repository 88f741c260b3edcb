// Products of bfloat16 matrices and vectors of such numbers. Only for files that are compiled once
// per matrix unit (see CMakeLists.txt): everything is inlined, nothing has a name outside the file,
// and nothing of the standard library's templates may be used, or the linker could give other files
// code that their processor lacks.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__GNUC__) && !defined(__clang__)  // GCC 12 warns about its own intrinsics
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "learn/bf16_kernels.h"
#include "nn/vector_math.h"

namespace pyfastenv {

namespace {

constexpr int kHalf = 16;  // rows of a tile, and columns of a packed one

PYFASTENV_INLINE __m256i Round(__m512 x) { return (__m256i)_mm512_cvtneps_pbh(x); }

PYFASTENV_INLINE __mmask16 Mask(int count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFF : (count <= 0 ? 0 : (1 << count) - 1));
}

#ifdef __AMX_BF16__
// Calls use(row, column, sums (32, 32)) for each block of the rows from `begin` to `end`
template <class Use>
PYFASTENV_INLINE void ProductOfRows(const uint16_t* a, const uint16_t* b, int begin, int end,
                                    int depth, int columns, Use use) {
  alignas(64) float sums[kTile * kTile];
  for (int column = 0; column < columns; column += kTile) {
    const uint16_t* panel = b + static_cast<ptrdiff_t>(column) * depth;
    for (int row = begin; row < end; row += kTile) {
      const uint16_t* upper = a + static_cast<ptrdiff_t>(row) * depth;
      const uint16_t* lower = upper + static_cast<ptrdiff_t>(kHalf) * depth;
      const size_t stride = static_cast<size_t>(depth) * sizeof(uint16_t);
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
      for (int k = 0; k < depth; k += kTile) {
        const uint16_t* tiles = panel + static_cast<ptrdiff_t>(k) * kTile;
        _tile_loadd(4, upper + k, stride);
        _tile_loadd(6, tiles, 64);
        _tile_loadd(7, tiles + 512, 64);
        _tile_loadd(5, lower + k, stride);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
      _tile_stored(0, sums, kTile * sizeof(float));
      _tile_stored(1, sums + kHalf, kTile * sizeof(float));
      _tile_stored(2, sums + kHalf * kTile, kTile * sizeof(float));
      _tile_stored(3, sums + kHalf * kTile + kHalf, kTile * sizeof(float));
      use(row, column, sums);
    }
  }
}
#else
// Two neighbours of a row, in every place of a register
PYFASTENV_INLINE __m512bh Broadcast(const uint16_t* pair) {
  int bits;
  __builtin_memcpy(&bits, pair, sizeof(bits));
  return (__m512bh)_mm512_set1_epi32(bits);
}

// The same by dot products of pairs: the sums of eight rows x 32 columns stay in registers
template <class Use>
PYFASTENV_INLINE void ProductOfRows(const uint16_t* a, const uint16_t* b, int begin, int end,
                                    int depth, int columns, Use use) {
  constexpr int kRows = 8;
  alignas(64) float sums[kTile * kTile];
  for (int column = 0; column < columns; column += kTile) {
    const uint16_t* panel = b + static_cast<ptrdiff_t>(column) * depth;
    for (int row = begin; row < end; row += kTile) {
      for (int part = 0; part < kTile; part += kRows) {
        const uint16_t* lines = a + static_cast<ptrdiff_t>(row + part) * depth;
        __m512 low[kRows];
        __m512 high[kRows];
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) low[i] = high[i] = _mm512_setzero_ps();
        for (int k = 0; k < depth; k += 2) {
          // in each 32 rows of the panel: 16 pairs of its left half, then those of its right one
          const uint16_t* tiles =
              panel + static_cast<ptrdiff_t>(k - k % kTile) * kTile + k % kTile * kHalf;
          const __m512bh left = (__m512bh)_mm512_loadu_si512(tiles);
          const __m512bh right = (__m512bh)_mm512_loadu_si512(tiles + 512);
#pragma GCC unroll 8
          for (int i = 0; i < kRows; ++i) {
            const __m512bh pair = Broadcast(lines + static_cast<ptrdiff_t>(i) * depth + k);
            low[i] = _mm512_dpbf16_ps(low[i], pair, left);
            high[i] = _mm512_dpbf16_ps(high[i], pair, right);
          }
        }
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
          _mm512_store_ps(sums + (part + i) * kTile, low[i]);
          _mm512_store_ps(sums + (part + i) * kTile + kHalf, high[i]);
        }
      }
      use(row, column, sums);
    }
  }
}
#endif

// Calls use(row, column, sums (32, 32)) for each block of a (rows, depth) @ b. So many rows at a
// time that they stay in the second-level cache while all of b goes by.
template <class Use>
PYFASTENV_INLINE void Product(const uint16_t* a, const uint16_t* b, int rows, int depth,
                              int columns, Use use) {
  constexpr int kNumbers = 128 * 1024;
  const int fitting = kNumbers / depth / kTile * kTile;
  const int step = fitting > kTile ? fitting : kTile;
  for (int row = 0; row < rows; row += step) {
    ProductOfRows(a, b, row, row + step < rows ? row + step : rows, depth, columns, use);
  }
}

PYFASTENV_INLINE __m512 Widen(__m256i bits) {
  return (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16);
}

// 32 neighbours in a row, as two vectors
struct Pair {
  __m512 low, high;
};

PYFASTENV_INLINE Pair Load(const float* x) {
  return {_mm512_loadu_ps(x), _mm512_loadu_ps(x + kHalf)};
}

PYFASTENV_INLINE Pair Load(const uint16_t* x) {
  const auto* halves = reinterpret_cast<const __m256i*>(x);
  return {Widen(_mm256_loadu_si256(halves)), Widen(_mm256_loadu_si256(halves + 1))};
}

PYFASTENV_INLINE void Store(uint16_t* to, const Pair& x) {
  _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(x.high, x.low));
}

PYFASTENV_INLINE void Store(float* to, const Pair& x) {
  _mm512_storeu_ps(to, x.low);
  _mm512_storeu_ps(to + kHalf, x.high);
}

PYFASTENV_INLINE Pair Add(const Pair& x, const Pair& y) {
  return {_mm512_add_ps(x.low, y.low), _mm512_add_ps(x.high, y.high)};
}

PYFASTENV_INLINE Pair MultiplyAdd(const Pair& x, const Pair& y, const Pair& z) {
  return {_mm512_fmadd_ps(x.low, y.low, z.low), _mm512_fmadd_ps(x.high, y.high, z.high)};
}

PYFASTENV_INLINE Pair Zero() { return {_mm512_setzero_ps(), _mm512_setzero_ps()}; }

PYFASTENV_INLINE Pair Times(const Pair& x, const Pair& y) {
  return {_mm512_mul_ps(x.low, y.low), _mm512_mul_ps(x.high, y.high)};
}

// max(0, NaN) would be 0; the second operand passes through
PYFASTENV_INLINE Pair Relu(const Pair& x) {
  const __m512 zero = _mm512_setzero_ps();
  return {_mm512_max_ps(zero, x.low), _mm512_max_ps(zero, x.high)};
}

PYFASTENV_INLINE ptrdiff_t At(int row, int columns, int column) {
  return static_cast<ptrdiff_t>(row) * columns + column;
}

}  // namespace

}  // namespace pyfastenv
