// The lane.h of recordings: a Lane is a node of the graph that is being recorded, arithmetic on it
// makes nodes. Included by stages/lane.h in its place.
//
// Ways that depend on numbers cannot be recorded, and stages that take one do not compile here. Two
// kinds are given up: a quaternion of no length (AnyShort), whose lanes the step leaves to MuJoCo,
// and, unless the graph is exact, what shows in the sign of a zero alone (ZeroWhereNone). Numbers
// that decide are chosen by WhereLess.
//
// A Lane knows whether the stages' number may be a negative zero, which its node, simplified, need
// not be any more. Recorder::WriteExact proves by it that a result has the sign of the stages'.
#pragma once

#include <stdint.h>

#include "lanes/program/graph.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

constexpr int kWidth = 1;
constexpr unsigned kAllLanes = 1;

/// The graph that operations of this thread go to.
inline thread_local Graph* recorded_graph = nullptr;

struct Lane {
  static constexpr int64_t kNegativeZero = int64_t{1} << 40;  // it may be one

  int64_t bits = 0;  // the node and that; zeroed memory is the number 0
};
struct Mask {};
using Word = long long;

inline Lane FromNode(int node, bool negative_zero) {
  return {node | (negative_zero ? Lane::kNegativeZero : 0)};
}
inline int NodeOf(Lane a) { return static_cast<int>(a.bits & (Lane::kNegativeZero - 1)); }
inline bool MayBeNegativeZero(Lane a) { return (a.bits & Lane::kNegativeZero) != 0; }
inline Lane Splat(double a) {
  return FromNode(recorded_graph->Constant(a), a == 0 && __builtin_signbit(a) != 0);
}

inline Lane Record(Op op, Lane a) {
  return FromNode(recorded_graph->Unary(op, NodeOf(a)),
                  MakesNegativeZero(op, MayBeNegativeZero(a), false, false));
}
inline Lane Record(Op op, Lane a, Lane b) {
  // one node may be two numbers of the stages, which differ in a zero's sign; but not an input
  const bool same =
      a.bits == b.bits && (!MayBeNegativeZero(a) || (*recorded_graph)[NodeOf(a)].op == Op::kInput);
  return FromNode(recorded_graph->Binary(op, NodeOf(a), NodeOf(b)),
                  MakesNegativeZero(op, MayBeNegativeZero(a), MayBeNegativeZero(b), same));
}

inline Lane operator-(Lane a) { return Record(Op::kNeg, a); }
inline Lane operator+(Lane a, Lane b) { return Record(Op::kAdd, a, b); }
inline Lane operator-(Lane a, Lane b) { return Record(Op::kSub, a, b); }
inline Lane operator*(Lane a, Lane b) { return Record(Op::kMul, a, b); }
inline Lane operator/(Lane a, Lane b) { return Record(Op::kDiv, a, b); }
inline Lane operator+(double a, Lane b) { return Splat(a) + b; }
inline Lane operator-(double a, Lane b) { return Splat(a) - b; }
inline Lane operator*(double a, Lane b) { return Splat(a) * b; }
inline Lane operator/(double a, Lane b) { return Splat(a) / b; }
inline Lane operator+(Lane a, double b) { return a + Splat(b); }
inline Lane operator-(Lane a, double b) { return a - Splat(b); }
inline Lane operator*(Lane a, double b) { return a * Splat(b); }
inline Lane operator/(Lane a, double b) { return a / Splat(b); }

inline Mask operator<(Lane, double) { return {}; }
inline Mask operator==(Lane, double) { return {}; }
inline Mask operator&(Mask, Mask) { return {}; }
inline bool AnyShort(Mask) { return false; }
inline Lane Select(Mask, Lane, Lane unusual) { return unusual; }

inline Lane Sqrt(Lane a) { return Record(Op::kSqrt, a); }
inline Lane Abs(Lane a) { return Record(Op::kAbs, a); }
inline Lane PlusZero(Lane a) { return Record(Op::kPlusZero, a); }
inline Lane UnitScale(Lane a) { return Record(Op::kUnitScale, a); }
inline Lane TimesPositive(Lane a, Lane b) { return Record(Op::kTimesPositive, a, b); }
inline Lane WhereLess(Lane a, Lane b, Lane x, Lane y) {
  return FromNode(recorded_graph->WhereLess(NodeOf(a), NodeOf(b), NodeOf(x), NodeOf(y)),
                  MayBeNegativeZero(x) || MayBeNegativeZero(y));
}
inline bool KeepsZeros() { return recorded_graph->exact(); }
inline bool MayBeIdentity(const Lane* q) {
  return KeepsZeros() &&
         (MayBeNegativeZero(q[1]) || MayBeNegativeZero(q[2]) || MayBeNegativeZero(q[3]));
}
/// In exact graphs alone: elsewhere it changes a zero's sign at most.
inline Lane ZeroWhereNone(Lane a, Lane x) {
  return recorded_graph->exact() ? WhereLess(Splat(0), Abs(a), x, Splat(0)) : x;
}
/// `low` is not above `high` (Derivation::IsUsual).
inline Lane Clip(Lane x, Lane low, Lane high) {
  return Record(Op::kMax, low, Record(Op::kMin, high, x));
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
