// Three numbers, or three vectors of numbers. Internal linkage throughout: the same source is
// compiled for several instruction sets.
#pragma once

#define PYFASTENV_RENDER_INLINE static inline __attribute__((always_inline))

namespace pyfastenv::render {

template <class T>
struct Vec3 {
  T x, y, z;
  bool operator==(const Vec3&) const = default;
};
using Float3 = Vec3<float>;

/// A position and three axes: of a geom, a light or an eye.
struct Pose {
  Float3 position, x, y, z;
  bool operator==(const Pose&) const = default;
};

template <class A, class B>
PYFASTENV_RENDER_INLINE auto operator+(const Vec3<A>& a, const Vec3<B>& b) {
  return Vec3<decltype(a.x + b.x)>{a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class A, class B>
PYFASTENV_RENDER_INLINE auto operator-(const Vec3<A>& a, const Vec3<B>& b) {
  return Vec3<decltype(a.x - b.x)>{a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class A, class S>
PYFASTENV_RENDER_INLINE auto operator*(const Vec3<A>& a, const S& s) {
  return Vec3<decltype(a.x * s)>{a.x * s, a.y * s, a.z * s};
}
/// Component by component.
template <class A, class B>
PYFASTENV_RENDER_INLINE auto Times(const Vec3<A>& a, const Vec3<B>& b) {
  return Vec3<decltype(a.x * b.x)>{a.x * b.x, a.y * b.y, a.z * b.z};
}
template <class A, class B>
PYFASTENV_RENDER_INLINE auto Dot(const Vec3<A>& a, const Vec3<B>& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class A, class B>
PYFASTENV_RENDER_INLINE auto Cross(const Vec3<A>& a, const Vec3<B>& b) {
  return Vec3<decltype(a.x * b.x)>{a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z,
                                   a.x * b.y - a.y * b.x};
}
PYFASTENV_RENDER_INLINE float Length(Float3 a) { return __builtin_sqrtf(Dot(a, a)); }
/// Of length 1; zero stays zero.
PYFASTENV_RENDER_INLINE Float3 Unit(Float3 a) {
  const float length = Length(a);
  return length > 0 ? a * (1 / length) : a;
}
/// A direction in the pose's own axes, and back.
template <class T>
PYFASTENV_RENDER_INLINE Vec3<T> In(const Pose& p, const Vec3<T>& v) {
  return {Dot(v, p.x), Dot(v, p.y), Dot(v, p.z)};
}
template <class T>
PYFASTENV_RENDER_INLINE Vec3<T> Out(const Pose& p, const Vec3<T>& v) {
  return p.x * v.x + p.y * v.y + p.z * v.z;
}

}  // namespace pyfastenv::render
