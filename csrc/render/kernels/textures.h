// Textures as OpenGL samples them: bilinear in two of the smaller copies and linear between them.
// Which two is one number for a block of pixels.
#pragma once

#include "render/kernels/wide.h"

namespace pyfastenv::render::PYFASTENV_VARIANT {

/// The logarithm to base 2 of a positive number, to within 0.001; everywhere the same bits.
WIDE float Log2(float x) {
  uint32_t bits = 0;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const auto exponent = static_cast<float>(static_cast<int>(bits >> 23) - 127);
  bits = (bits & 0x7fffffU) | 0x3f800000U;
  float m = 0;
  __builtin_memcpy(&m, &bits, sizeof m);
  m -= 1;  // ln(1 + m) / ln(2)
  return exponent + m * (1.4387257F + m * (-0.6778140F + m * (0.3233511F - m * 0.0842643F)));
}

WIDE Wide3 Unpack(WideInt texels) {
  return {ToFloat(texels & 255), ToFloat((texels >> 8) & 255), ToFloat((texels >> 16) & 255)};
}

WIDE Wide3 Mix(const Wide3& a, const Wide3& b, Wide share) { return Fma(b - a, share, a); }

/// Four texels around each place: from (x, y), right of it, below it and both.
struct Taps {
  WideInt here, right, below, both;
};

/// `y1`: the row below. `face`: where each place's face begins.
WIDE Taps LoadTaps(const TextureLevel& l, WideInt face, WideInt x, WideInt y, WideInt y1) {
  Taps t;
#if defined(__AVX512F__)
  // texels of a block are mostly near one another: then a window of 4 x 8 has them all
  const int left = Least(x), top = Least(y), first = face[0];
  const WideInt dx = x - left, dy = y - top;
  const Mask is_near = (WideInt(3) > dx) & (WideInt(7) > dy);
  if (Bits(is_near & (y1 == y + 1) & (face == WideInt(first))) == kAllBits) {
    const uint32_t* p = l.texels + first + static_cast<ptrdiff_t>(top) * l.row() + left;
    const Window w = LoadWindow(p, l.row());
    const WideInt at = dy * 4 + dx;
    return {w[at], w[at + 1], w[at + 4], w[at + 5]};
  }
#endif
  LoadPairs(l.texels, y * l.row() + face + x, t.here, t.right);
  LoadPairs(l.texels, y1 * l.row() + face + x, t.below, t.both);
  return t;
}

/// A level at (x, y), in texels; `face`: where a cube's faces begin.
WIDE Wide3 Bilinear(const TextureLevel& l, WideInt face, Wide x, Wide y, bool repeats) {
  if (!repeats) x = Max(x, 0.0F);  // left of the first texel there is the first
  const Wide left = Floor(x), top = Floor(y);
  WideInt x0 = Truncate(left), y0 = Truncate(top), y1 = y0 + 1;
  const auto wrap = [&](WideInt& i, int size) {
    i = Pick(WideInt(0) > i, WideInt(repeats ? size - 1 : 0), i);
    i = Pick(i > WideInt(size - 1), WideInt(repeats ? 0 : size - 1), i);
  };
  wrap(x0, l.width), wrap(y0, l.height), wrap(y1, l.height);
  const Taps t = LoadTaps(l, face, x0, y0, y1);
  if (Bits((t.here == t.right) & (t.here == t.below) & (t.here == t.both)) == kAllBits) {
    return Unpack(t.here);  // a field of a checker
  }
  const Wide fx = x - left;
  return Mix(Mix(Unpack(t.here), Unpack(t.right), fx), Mix(Unpack(t.below), Unpack(t.both), fx),
             y - top);
}

/// `lod`: the logarithm to base 2 of texels per pixel. Returns colours between 0 and 1.
template <class F>
WIDE Wide3 Levels(const Texture& t, float lod, const F& sample) {
  const auto last = static_cast<float>(t.num_levels - 1);
  lod = lod < 0 ? 0 : lod > last ? last : lod;
  const int k = static_cast<int>(lod);
  const float share = lod - static_cast<float>(k);
  Wide3 c = sample(t.levels[k]);
  if (share > 1.0F / 64) c = Mix(c, sample(t.levels[k + 1]), share);
  return c * (1.0F / 255);
}

inline Wide3 SampleFlat(const Texture& t, Wide u, Wide v, float lod) {
  u = u - Floor(u), v = v - Floor(v);
  return Levels(t, lod, [&](const TextureLevel& l) {
    return Bilinear(l, 0, Fma(u, static_cast<float>(l.width), -0.5F),
                    Fma(v, static_cast<float>(l.height), -0.5F), true);
  });
}

inline Wide3 SampleCube(const Texture& t, const Wide3& d, float lod) {
  const Wide ax = Abs(d.x), ay = Abs(d.y), az = Abs(d.z);
  const Mask is_x = (ax >= ay) & (ax >= az), is_y = (ay >= az) & ~is_x;
  Wide s = Pick(is_x, Pick(d.x > 0.0F, -d.z, d.z), Pick(is_y | (d.z > 0.0F), d.x, -d.x));
  Wide u = Pick(is_y, Pick(d.y > 0.0F, d.z, -d.z), -d.y);
  const Wide k = 0.5F / Pick(is_x, ax, Pick(is_y, ay, az));
  s = Fma(s, k, 0.5F), u = Fma(u, k, 0.5F);
  const Mask back = Pick(is_x, d.x, Pick(is_y, d.y, d.z)) <= 0.0F;
  const WideInt face = Pick(is_x, WideInt(0), Pick(is_y, WideInt(2), WideInt(4))) +
                       Pick(back, WideInt(1), WideInt(0));
  return Levels(t, lod, [&](const TextureLevel& l) {
    return Bilinear(l, face * (l.row() * l.height), Fma(s, static_cast<float>(l.width), -0.5F),
                    Fma(u, static_cast<float>(l.height), -0.5F), false);
  });
}

}  // namespace pyfastenv::render::PYFASTENV_VARIANT
