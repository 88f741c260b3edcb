#include "lanes/stages/muscles.h"

#include "lanes/stages/spatial.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// A divisor, kept away from zero.
Lane AtLeastTiny(Lane x) { return WhereLess(x, Splat(kMinVal), Splat(kMinVal), x); }

// x where a <= b, else y.
Lane WhereAtMost(Lane a, Lane b, Lane x, Lane y) { return WhereLess(b, a, y, x); }

Lane PeakForce(const Muscle& muscle, const Lane* parameters) {
  const Lane by_scale = parameters[3] / (muscle.acc0 > kMinVal ? muscle.acc0 : kMinVal);
  return WhereLess(parameters[2], Splat(0), by_scale, parameters[2]);
}

// What is one in the units of the curves.
Lane OptimalLength(const Muscle& muscle, const Lane* parameters) {
  return (muscle.length_range[1] - muscle.length_range[0]) /
         AtLeastTiny(parameters[1] - parameters[0]);
}

Lane InUnits(const Muscle& muscle, Lane length, Lane optimum, const Lane* parameters) {
  return parameters[0] + (length - muscle.length_range[0]) / AtLeastTiny(optimum);
}

// mju_muscleGainLength: half parabolas up to one and down again.
Lane LengthCurve(Lane length, Lane shortest, Lane longest) {
  const Lane rise = 0.5 * (shortest + 1.0), fall = 0.5 * (1.0 + longest);
  const Lane one = Splat(1), zero = Splat(0);
  const Lane x0 = (length - shortest) / AtLeastTiny(rise - shortest);
  const Lane x1 = (1.0 - length) / AtLeastTiny(1.0 - rise);
  const Lane x2 = (length - 1.0) / AtLeastTiny(fall - 1.0);
  const Lane x3 = (longest - length) / AtLeastTiny(longest - fall);
  Lane r = WhereAtMost(length, fall, 1.0 - 0.5 * x2 * x2, 0.5 * x3 * x3);
  r = WhereAtMost(length, one, 1.0 - 0.5 * x1 * x1, r);
  r = WhereAtMost(length, rise, 0.5 * x0 * x0, r);
  r = WhereAtMost(length, longest, r, zero);
  return WhereAtMost(shortest, length, r, zero);
}

// By the speed of lengthening: nothing, the first curve up to zero, the second up to y, `beyond`.
Lane BySpeed(Lane velocity, Lane y, Lane shortening, Lane lengthening, Lane beyond) {
  Lane r = WhereAtMost(velocity, y, lengthening, beyond);
  r = WhereAtMost(velocity, Splat(0), shortening, r);
  return WhereAtMost(velocity, Splat(-1), Splat(0), r);
}

Lane VelocityCurve(Lane velocity, Lane peak) {
  const Lane y = peak - 1.0;
  const Lane lengthening = peak - (y - velocity) * (y - velocity) / AtLeastTiny(y);
  return BySpeed(velocity, y, (velocity + 1.0) * (velocity + 1.0), lengthening, peak);
}

Lane VelocityCurvesSlope(Lane velocity, Lane peak) {
  const Lane y = peak - 1.0;
  const Lane lengthening = (-2.0 * velocity + 2.0 * y) / AtLeastTiny(y);
  return BySpeed(velocity, y, 2.0 * velocity + 2.0, lengthening, Splat(0));
}

// The gain of a muscle at rest.
Lane StaticGain(const Muscle& muscle, Lane length, Lane optimum, const Lane* parameters) {
  const Lane L = InUnits(muscle, length, optimum, parameters);
  return -PeakForce(muscle, parameters) * LengthCurve(L, parameters[4], parameters[5]);
}

// mju_sigmoid
Lane Sigmoid(Lane x) {
  const Lane between = x * x * x * (3.0 * x * (2.0 * x - 5.0) + 10.0);
  return WhereAtMost(x, Splat(0), Splat(0), WhereLess(x, Splat(1), between, Splat(1)));
}

}  // namespace

Lane MuscleGain(const Muscle& muscle, Lane length, Lane velocity, const Lane* parameters) {
  const Lane optimum = OptimalLength(muscle, parameters);
  const Lane speed = AtLeastTiny(optimum * parameters[6]);
  return StaticGain(muscle, length, optimum, parameters) *
         VelocityCurve(velocity / speed, parameters[8]);
}

Lane MuscleGainByVelocity(const Muscle& muscle, Lane length, Lane velocity,
                          const Lane* parameters) {
  const Lane optimum = OptimalLength(muscle, parameters);
  const Lane speed = AtLeastTiny(optimum * parameters[6]);
  return StaticGain(muscle, length, optimum, parameters) *
         VelocityCurvesSlope(velocity / speed, parameters[8]) / speed;
}

Lane MuscleBias(const Muscle& muscle, Lane length, const Lane* parameters) {
  const Lane force = PeakForce(muscle, parameters);
  const Lane L = InUnits(muscle, length, OptimalLength(muscle, parameters), parameters);
  const Lane bend = 0.5 * (1.0 + parameters[5]);  // a half parabola up to it, a line beyond
  const Lane width = AtLeastTiny(bend - 1.0);
  const Lane x = (L - 1.0) / width, beyond = (L - bend) / width;
  const Lane parabola = -force * parameters[7] * 0.5 * x * x;
  const Lane line = -force * parameters[7] * (0.5 + beyond);
  return WhereAtMost(L, Splat(1), Splat(0), WhereAtMost(L, bend, parabola, line));
}

Lane MuscleActivationRate(const Muscle& muscle, Lane ctrl, Lane act) {
  const Lane held = Clip(act, Splat(0), Splat(1));
  const Lane slow = 0.5 + 1.5 * held;
  const Lane rising = muscle.dynamics[0] * slow, falling = muscle.dynamics[1] / slow;
  const Lane change = Clip(ctrl, Splat(0), Splat(1)) - act;
  const double width = muscle.dynamics[2];
  const Lane time = width < kMinVal ? WhereLess(Splat(0), change, rising, falling)
                                    : falling + (rising - falling) * Sigmoid(change / width + 0.5);
  return change / AtLeastTiny(time);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
