// Where rays meet shapes that have a formula, in a shape's own axes.
#pragma once

#include "render/kernels/wide.h"

namespace pyfastenv::render::PYFASTENV_VARIANT {

/// Sixteen rays, origin + t direction.
struct Rays {
  Wide3 origin, direction;
};

/// The smaller t with a t^2 + 2 b t + c = 0; kFar where there is none.
WIDE Wide FirstRoot(Wide a, Wide b, Wide c) {
  const Wide discriminant = b * b - a * c;
  return Pick(discriminant > 0.0F, (-b - Sqrt(Max(discriminant, 0.0F))) / a, kFar);
}

WIDE Wide CastPlane(const Shape& s, const Rays& r) {
  const Wide t = -r.origin.z / r.direction.z;
  Mask hit = t > 0.0F;
  if (s.size.x > 0) hit &= Abs(Fma(r.direction.x, t, r.origin.x)) < s.size.x;
  if (s.size.y > 0) hit &= Abs(Fma(r.direction.y, t, r.origin.y)) < s.size.y;
  return Pick(hit, t, kFar);
}

WIDE Wide CastSphere(const Shape& s, const Rays& r) {
  return FirstRoot(Dot(r.direction, r.direction), Dot(r.origin, r.direction),
                   Dot(r.origin, r.origin) - s.size.x * s.size.x);
}

WIDE Wide CastEllipsoid(const Shape& s, const Rays& r) {
  const Float3 k{1 / s.size.x, 1 / s.size.y, 1 / s.size.z};
  const Wide3 o = Times(r.origin, k), d = Times(r.direction, k);
  return FirstRoot(Dot(d, d), Dot(o, d), Dot(o, o) - 1.0F);
}

WIDE Wide CastCapsule(const Shape& s, const Rays& r) {
  const float radius = s.size.x, half = s.size.z;
  const Wide3 &o = r.origin, &d = r.direction;
  const Wide a = d.x * d.x + d.y * d.y + 1e-12F, b = o.x * d.x + o.y * d.y;
  const Wide c = o.x * o.x + o.y * o.y - radius * radius;
  const Wide discriminant = b * b - a * c;
  const Mask meets = discriminant > 0.0F;
  if (!Any(meets)) return kFar;
  const Wide t = (-b - Sqrt(Max(discriminant, 0.0F))) / a;
  const Wide z = Fma(t, d.z, o.z);
  const Mask wall = Abs(z) <= half;
  const Wide hit = Pick(meets & wall, t, kFar);
  const Mask cap = meets & ~wall;
  if (!Any(cap)) return hit;
  const Wide w = o.z - Pick(z > 0.0F, half, -half);
  return Pick(cap, FirstRoot(Fma(d.z, d.z, a), Fma(w, d.z, b), Fma(w, w, c)), hit);
}

WIDE Wide CastCylinder(const Shape& s, const Rays& r) {
  const float radius = s.size.x, half = s.size.z;
  const Wide3 &o = r.origin, &d = r.direction;
  const Wide a = d.x * d.x + d.y * d.y + 1e-12F, b = o.x * d.x + o.y * d.y;
  const Wide discriminant = b * b - a * (o.x * o.x + o.y * o.y - radius * radius);
  const Mask meets = discriminant > 0.0F;
  if (!Any(meets)) return kFar;
  const Wide t = (-b - Sqrt(Max(discriminant, 0.0F))) / a;
  const Wide z = Fma(t, d.z, o.z);
  const Wide end = (Pick(z > 0.0F, half, -half) - o.z) / d.z;
  const Wide x = Fma(end, d.x, o.x), y = Fma(end, d.y, o.y);
  const Wide lid = Pick(meets & (x * x + y * y < radius * radius), end, kFar);
  return Pick(meets & (Abs(z) <= half), t, lid);
}

WIDE Wide CastBox(const Shape& s, const Rays& r) {
  const Wide3 k{1.0F / r.direction.x, 1.0F / r.direction.y, 1.0F / r.direction.z};
  const Wide ax = (-s.size.x - r.origin.x) * k.x, bx = (s.size.x - r.origin.x) * k.x;
  const Wide ay = (-s.size.y - r.origin.y) * k.y, by = (s.size.y - r.origin.y) * k.y;
  const Wide az = (-s.size.z - r.origin.z) * k.z, bz = (s.size.z - r.origin.z) * k.z;
  const Wide in = Max(Max(Min(ax, bx), Min(ay, by)), Min(az, bz));
  const Wide out = Min(Min(Max(ax, bx), Max(ay, by)), Max(az, bz));
  return Pick(in <= out, in, kFar);
}

template <Form kForm>
WIDE Wide CastRound(const Shape& s, const Rays& r) {
  if constexpr (kForm == Form::kSphere) return CastSphere(s, r);
  if constexpr (kForm == Form::kEllipsoid) return CastEllipsoid(s, r);
  if constexpr (kForm == Form::kCapsule) return CastCapsule(s, r);
  if constexpr (kForm == Form::kCylinder) return CastCylinder(s, r);
  return kFar;
}

/// Where rays enter a shape: t, which may be negative, or kFar. Meshes are not cast (raster.h).
/// `start`: a t near by, from which round shapes are looked for: seen from afar, a thin one's
/// square of a radius would drown in that of the distance.
template <Form kForm>
WIDE Wide Cast(const Shape& s, const Rays& from, float start) {
  if constexpr (kForm == Form::kPlane) return CastPlane(s, from);
  if constexpr (kForm == Form::kBox) return CastBox(s, from);
  const Rays r{Fma(from.direction, start, from.origin), from.direction};
  return CastRound<kForm>(s, r) + start;
}
/// Calls f with the shape's form as a constant, so that loops are compiled for each.
template <class F>
WIDE auto WithForm(Form form, const F& f) {
  switch (form) {
    case Form::kPlane:
      return f.template operator()<Form::kPlane>();
    case Form::kSphere:
      return f.template operator()<Form::kSphere>();
    case Form::kEllipsoid:
      return f.template operator()<Form::kEllipsoid>();
    case Form::kCapsule:
      return f.template operator()<Form::kCapsule>();
    case Form::kCylinder:
      return f.template operator()<Form::kCylinder>();
    case Form::kBox:
      return f.template operator()<Form::kBox>();
    case Form::kMesh:
      break;
  }
  return f.template operator()<Form::kMesh>();
}

/// Not inlined: for rays that are few.
inline Wide CastAny(const Shape& s, const Rays& r, float start) {
  return WithForm(s.form, [&]<Form kForm>() { return Cast<kForm>(s, r, start); });
}

/// The outward normal where a shape is met, in its own axes. Not of meshes.
inline Wide3 NormalAt(const Shape& s, const Wide3& at) {
  switch (s.form) {
    case Form::kSphere:
      return at * (1 / s.size.x);
    case Form::kCapsule: {
      const Wide z = at.z - Clamp(at.z, -s.size.z, s.size.z);
      return Wide3{at.x, at.y, z} * (1 / s.size.x);
    }
    case Form::kEllipsoid: {
      const Float3 k{1 / s.size.x, 1 / s.size.y, 1 / s.size.z};
      return Unit(Times(at, Times(k, k)));
    }
    case Form::kCylinder: {
      // nearer to a lid than to the side: rounding of either is below the other's distance
      const Wide inside = s.size.x - Sqrt(at.x * at.x + at.y * at.y);
      const Mask lid = s.size.z - Abs(at.z) < inside;
      const Wide k = Pick(lid, 0.0F, 1 / s.size.x);
      const Wide z = Pick(at.z > 0.0F, 1.0F, -1.0F);
      return {at.x * k, at.y * k, Pick(lid, z, 0.0F)};
    }
    case Form::kBox: {
      const Wide x = Abs(at.x) * (1 / s.size.x), y = Abs(at.y) * (1 / s.size.y);
      const Wide z = Abs(at.z) * (1 / s.size.z);
      const Mask is_x = (x >= y) & (x >= z), is_y = (y >= z) & ~is_x;
      const auto side = [](Mask is, Wide a) {
        return Pick(is, Pick(a > 0.0F, 1.0F, -1.0F), Wide(0.0F));
      };
      return {side(is_x, at.x), side(is_y, at.y), side(~is_x & ~is_y, at.z)};
    }
    default:
      return {0.0F, 0.0F, 1.0F};
  }
}

}  // namespace pyfastenv::render::PYFASTENV_VARIANT
