#include "lanes/program/graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace pyfastenv::lanes {

namespace {

constexpr double kUnitTolerance = 1e-15;

uint64_t Bits(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

double Evaluate(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
    case Op::kTimesPositive:
      return a * b;
    case Op::kDiv:
      return a / b;
    case Op::kMin:
      return a < b ? a : b;
    case Op::kMax:
      return a > b ? a : b;
    case Op::kNeg:
      return -a;
    case Op::kAbs:
      return std::fabs(a);
    case Op::kSqrt:
      return std::sqrt(a);
    case Op::kPlusZero:
      return a + 0.0;
    case Op::kUnitScale:
      return std::fabs(a - 1.0) > kUnitTolerance ? 1.0 / a : 1.0;
    case Op::kConstant:
    case Op::kInput:
    case Op::kLess:  // of constants: decided by WhereLess
    case Op::kWhere:
    case Op::kWhereNot:
    case Op::kJoin:
      break;
  }
  return a;
}

}  // namespace

size_t Graph::Hash::operator()(const Node& node) const {
  uint64_t hash = static_cast<uint64_t>(node.op);
  for (const uint64_t part :
       {static_cast<uint64_t>(node.a), static_cast<uint64_t>(node.b), Bits(node.constant)}) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  return hash;
}

bool Graph::Same::operator()(const Node& x, const Node& y) const {
  return x.op == y.op && x.a == y.a && x.b == y.b && Bits(x.constant) == Bits(y.constant);
}

int Graph::Insert(const Node& node) {
  const auto [found, is_new] = index_.try_emplace(node, size());
  if (is_new) {
    if (exact_) zeros_.push_back(ZeroOf(node));
    nodes_.push_back(node);
  }
  return found->second;
}

// Products and quotients of numbers so small that they vanish are taken into account.
Graph::Zero Graph::ZeroOf(const Node& node) const {
  const auto of = [&](int operand) { return zeros_[static_cast<size_t>(operand)]; };
  switch (node.op) {
    case Op::kConstant:
      return {node.constant == 0, node.constant == 0 && std::signbit(node.constant)};
    case Op::kMul:
      return {of(node.a).always || of(node.b).always, node.a != node.b};
    case Op::kDiv:
    case Op::kTimesPositive:
    case Op::kNeg:
      return {of(node.a).always, true};
    case Op::kInput:
    case Op::kLess:
      return {false, true};
    default:
      break;
  }
  const Zero a = of(node.a), b = node.b >= 0 ? of(node.b) : a;
  const bool chosen = node.op == Op::kWhere || node.op == Op::kWhereNot;
  const bool positive = node.op == Op::kUnitScale;
  return {!positive && b.always && (chosen || a.always),
          MakesNegativeZero(node.op, a.negative, b.negative, node.a == node.b)};
}

// As far as a zero's sign counts, whether a node is the constant that choices fill up with.
bool Graph::IsZero(int node) const {
  return Is(node, 0) && !(exact_ && zeros_[static_cast<size_t>(node)].negative);
}

// Whether a node may be left out of a sum with another.
bool Graph::Vanishes(int node, int beside) const {
  if (!exact_) return Is(node, 0);
  return zeros_[static_cast<size_t>(node)].always && !zeros_[static_cast<size_t>(beside)].negative;
}

bool Graph::Is(int node, double value) const {
  return Is(node, Op::kConstant) && (*this)[node].constant == value;
}

int Graph::Constant(double value) {
  return Insert({Op::kConstant, -1, -1, value == 0 && !exact_ ? 0 : value});
}

int Graph::Input(int slot) { return Insert({Op::kInput, slot}); }

int Graph::Unary(Op op, int a) {
  if (Is(a, Op::kConstant)) return Constant(Evaluate(op, (*this)[a].constant, 0));
  if (op == Op::kNeg) return Negate(a);
  if (op == Op::kAbs && Is(a, Op::kNeg)) return Unary(Op::kAbs, (*this)[a].a);
  if (op == Op::kPlusZero && exact_ && !zeros_[static_cast<size_t>(a)].negative) return a;
  return Insert({op, a});
}

int Graph::Binary(Op op, int a, int b) {
  if (Is(a, Op::kConstant) && Is(b, Op::kConstant)) {
    return Constant(Evaluate(op, (*this)[a].constant, (*this)[b].constant));
  }
  switch (op) {
    case Op::kAdd:
      return Add(a, b);
    case Op::kSub:
      return Subtract(a, b);
    case Op::kMul:
      return Multiply(a, b);
    case Op::kTimesPositive:
      return Is(a, 0) || Is(b, 1) ? a : Insert({op, a, b});
    case Op::kDiv:
      return Divide(a, b);
    default:
      return Insert({op, a, b});
  }
}

int Graph::WhereLess(int a, int b, int x, int y) {
  if (x == y) return x;
  if (Is(a, Op::kConstant) && Is(b, Op::kConstant)) {
    return (*this)[a].constant < (*this)[b].constant ? x : y;
  }
  const int less = Insert({Op::kLess, a, b});
  if (IsZero(x)) return Insert({Op::kWhereNot, less, y});
  const int where = Insert({Op::kWhere, less, x});
  return IsZero(y) ? where : Insert({Op::kJoin, where, Insert({Op::kWhereNot, less, y})});
}

int Graph::Negate(int a) {
  if (Is(a, Op::kNeg)) return (*this)[a].a;
  return Insert({Op::kNeg, a});
}

int Graph::Add(int a, int b) {
  if (Vanishes(a, b)) return b;
  if (Vanishes(b, a)) return a;
  if (Is(b, Op::kNeg)) return Subtract(a, (*this)[b].a);
  if (Is(a, Op::kNeg)) return Subtract(b, (*this)[a].a);
  return Insert({Op::kAdd, std::min(a, b), std::max(a, b)});
}

int Graph::Subtract(int a, int b) {
  if (IsZero(b) || Vanishes(b, a)) return a;
  if (!exact_ && Is(a, 0)) return Unary(Op::kNeg, b);
  if (a == b) return Constant(0);
  if (Is(b, Op::kNeg)) return Add(a, (*this)[b].a);
  return Insert({Op::kSub, a, b});
}

int Graph::Multiply(int a, int b) {
  for (const auto& [x, other] : {std::pair(a, b), std::pair(b, a)}) {
    if (!exact_ && Is(x, 0)) return Constant(0);
    if (Is(x, 1)) return other;
    if (Is(x, -1)) return Unary(Op::kNeg, other);
    if (Is(x, Op::kNeg)) return Unary(Op::kNeg, Multiply((*this)[x].a, other));
  }
  return Insert({Op::kMul, std::min(a, b), std::max(a, b)});
}

int Graph::Divide(int a, int b) {
  if (Is(b, 1)) return a;
  if (Is(a, Op::kNeg)) return Unary(Op::kNeg, Divide((*this)[a].a, b));
  return Insert({Op::kDiv, a, b});
}

}  // namespace pyfastenv::lanes
