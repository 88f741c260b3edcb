#include "render/texture.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace pyfastenv::render {

namespace {

std::array<uint8_t, 256> ToLinear(bool is_srgb) {
  std::array<uint8_t, 256> table{};
  for (int i = 0; i < 256; ++i) {
    const double c = i / 255.0;
    const double linear = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
    table[i] = static_cast<uint8_t>(is_srgb ? std::lround(255 * linear) : i);
  }
  return table;
}

/// Older versions of MuJoCo do not say.
template <class Model>
bool IsSrgb(const Model& m, int texture) {
  constexpr int kSrgb = 2;  // mjCOLORSPACE_SRGB
  if constexpr (requires { m.tex_colorspace; }) return m.tex_colorspace[texture] == kSrgb;
  return false;
}

/// A texel of the level below: the finer one sampled once, bilinearly, at the texel's middle, as
/// Mesa makes them. (An average over all that it covers would be smoother than MuJoCo's pictures.)
uint32_t Coarser(const uint32_t* face, const TextureLevel& fine, int x, int y, int w, int h) {
  const float u =
      (static_cast<float>(x) + 0.5F) * static_cast<float>(fine.width) / static_cast<float>(w) -
      0.5F;
  const float v =
      (static_cast<float>(y) + 0.5F) * static_cast<float>(fine.height) / static_cast<float>(h) -
      0.5F;
  const int x0 = static_cast<int>(u), y0 = static_cast<int>(v);
  const int x1 = std::min(x0 + 1, fine.width - 1), y1 = std::min(y0 + 1, fine.height - 1);
  const float fx = u - static_cast<float>(x0), fy = v - static_cast<float>(y0);
  uint32_t out = 0;
  for (unsigned shift = 0; shift < 24; shift += 8) {
    const auto at = [&](int i, int j) {
      return static_cast<float>(face[static_cast<ptrdiff_t>(j) * fine.row() + i] >> shift & 255U);
    };
    const float top = at(x0, y0) * (1 - fx) + at(x1, y0) * fx;
    const float low = at(x0, y1) * (1 - fx) + at(x1, y1) * fx;
    out |= static_cast<uint32_t>(top * (1 - fy) + low * fy + 0.5F) << shift;
  }
  return out;
}

/// Ends a row of w texels with the one that is right of its last.
void EndRow(std::vector<uint32_t>& texels, int w, bool is_cube) {
  texels.push_back(is_cube ? texels.back() : texels[texels.size() - static_cast<size_t>(w)]);
}

/// Adds what kernels may read beyond the last row: eight rows of four texels.
void EndLevel(std::vector<uint32_t>& texels, int w) {
  texels.resize(texels.size() + 8 * static_cast<size_t>(w + 1) + 4);
}

std::vector<uint32_t> Coarser(const TextureLevel& fine, bool is_cube, int w, int h) {
  const int faces = is_cube ? 6 : 1;
  std::vector<uint32_t> out;
  out.reserve(static_cast<size_t>(faces) * (w + 1) * h);
  for (int f = 0; f < faces; ++f) {
    const uint32_t* face = fine.texels + static_cast<ptrdiff_t>(f) * fine.row() * fine.height;
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) out.push_back(Coarser(face, fine, x, y, w, h));
      EndRow(out, w, is_cube);
    }
  }
  EndLevel(out, w);
  return out;
}

}  // namespace

TextureLevels::TextureLevels(const mjModel& m, int texture) {
  const int channels = m.tex_nchannel[texture];
  if (channels != 3 && channels != 4) return;
  const bool is_cube = m.tex_type[texture] != mjTEXTURE_2D;
  const int w = m.tex_width[texture], faces = is_cube ? 6 : 1;
  const int h = is_cube ? w : m.tex_height[texture];
  const bool has_faces = is_cube && m.tex_height[texture] > w;  // else one picture for all six
  const auto linear = ToLinear(!is_cube && IsSrgb(m, texture));
  std::vector<uint32_t>& first = texels_.emplace_back();
  for (int f = 0; f < faces; ++f) {
    const mjtByte* p = m.tex_data + m.tex_adr[texture];
    if (has_faces) p += static_cast<ptrdiff_t>(f) * w * h * channels;
    for (int i = 1; i <= w * h; ++i, p += channels) {
      first.push_back(linear[p[0]] | uint32_t{linear[p[1]]} << 8U | uint32_t{linear[p[2]]} << 16U);
      if (i % w == 0) EndRow(first, w, is_cube);
    }
  }
  EndLevel(first, w);
  levels_.push_back({w, h, first.data()});
  while (levels_.back().width > 1 || levels_.back().height > 1) {
    const TextureLevel fine = levels_.back();
    const int cw = std::max(1, fine.width / 2), ch = std::max(1, fine.height / 2);
    texels_.push_back(Coarser(fine, is_cube, cw, ch));
    levels_.push_back({cw, ch, texels_.back().data()});
  }
  view_ = {levels_.data(), static_cast<int>(levels_.size()), is_cube};
}

}  // namespace pyfastenv::render
