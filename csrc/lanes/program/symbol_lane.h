// The lane.h of recordings: a Lane is a node of the graph that is being recorded, arithmetic on it
// makes nodes. Included by stages/lane.h in its place.
//
// Ways that depend on numbers cannot be recorded: no lane is ever special (Any is false), so that
// stages take their usual way. Numbers that do are chosen by WhereLess.
#pragma once

#include <stdint.h>

#include "lanes/program/graph.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

constexpr int kWidth = 1;
constexpr unsigned kAllLanes = 1;

/// The graph that operations of this thread go to.
inline thread_local Graph* recorded_graph = nullptr;

struct Lane {
  int64_t node = 0;  // zeroed memory is the number 0
};
struct Mask {};
using Word = long long;

inline Lane FromNode(int node) { return {node}; }
inline int NodeOf(Lane a) { return static_cast<int>(a.node); }
inline Lane Splat(double a) { return FromNode(recorded_graph->Constant(a)); }

inline Lane Record(Op op, Lane a) { return FromNode(recorded_graph->Unary(op, NodeOf(a))); }
inline Lane Record(Op op, Lane a, Lane b) {
  return FromNode(recorded_graph->Binary(op, NodeOf(a), NodeOf(b)));
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
inline bool Any(Mask) { return false; }
inline Lane Select(Mask, Lane, Lane unusual) { return unusual; }

inline Lane Sqrt(Lane a) { return Record(Op::kSqrt, a); }
inline Lane Abs(Lane a) { return Record(Op::kAbs, a); }
inline Lane PlusZero(Lane a) { return Record(Op::kPlusZero, a); }
inline Lane UnitScale(Lane a) { return Record(Op::kUnitScale, a); }
inline Lane WhereLess(Lane a, Lane b, Lane x, Lane y) {
  return FromNode(recorded_graph->WhereLess(NodeOf(a), NodeOf(b), NodeOf(x), NodeOf(y)));
}
inline Lane Clip(Lane x, Lane low, Lane high) {
  return Record(Op::kMax, low, Record(Op::kMin, high, x));
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
