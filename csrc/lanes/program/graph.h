// Arithmetic as data: what the stages compute for one model, recorded to be compiled.
//
// Nodes are numbers; equal operations on equal operands are one node. Operations on the model's
// constants are done when they are recorded, and those with an exact zero or one are left out:
// what is left has the same numbers for all finite inputs, but a result that is zero may have the
// other sign. Where signs matter, MakesNegativeZero follows them. An exact graph leaves out only
// what changes no bit for finite inputs, a zero's sign included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace pyfastenv::lanes {

enum class Op : uint8_t {
  kConstant,
  kInput,
  kAdd,
  kSub,
  kMul,
  kTimesPositive,  // a b, b > 0
  kDiv,
  kMin,    // a < b ? a : b
  kMax,    // a > b ? a : b
  kLess,   // all bits where a < b, else none: for the next three alone
  kWhere,  // the bits of b where a's are set
  kWhereNot,
  kJoin,  // the bits of both
  kNeg,
  kAbs,
  kSqrt,
  kPlusZero,   // a + 0: never a negative zero
  kUnitScale,  // 1 / a, or 1 where a differs from 1 by no more than 1e-15
};

/// Whether an operation's result may be a negative zero, by whether its operands may; `same`: they
/// are one number. Not asked of kConstant, kInput and kLess. Products of numbers so small that they
/// vanish are left out of account (VanishingForces of stages/step.cc).
constexpr bool MakesNegativeZero(Op op, bool a, bool b, bool same) {
  switch (op) {
    case Op::kAdd:
      return a && b;
    case Op::kSub:
    case Op::kTimesPositive:
    case Op::kSqrt:
      return a;
    case Op::kMul:
      return !same;
    case Op::kMin:
    case Op::kMax:
    case Op::kJoin:  // of two choices, of which each is the other's zero
      return a || b;
    case Op::kWhere:
    case Op::kWhereNot:
      return b;
    case Op::kAbs:
    case Op::kPlusZero:
    case Op::kUnitScale:
      return false;
    default:
      return true;
  }
}

struct Node {
  Op op;
  int a = -1;  // operands; of an input, its slot
  int b = -1;  // -1 if there is none
  double constant = 0;
};

class Graph {
 public:
  explicit Graph(bool exact = false) : exact_(exact) { Constant(0); }  // node 0

  int Constant(double value);
  int Input(int slot);
  int Unary(Op op, int a);
  int Binary(Op op, int a, int b);
  /// a < b ? x : y
  int WhereLess(int a, int b, int x, int y);

  bool exact() const { return exact_; }
  const Node& operator[](int node) const { return nodes_[static_cast<size_t>(node)]; }
  int size() const { return static_cast<int>(nodes_.size()); }

 private:
  struct Hash {
    size_t operator()(const Node& node) const;
  };
  struct Same {
    bool operator()(const Node& x, const Node& y) const;
  };

  int Add(int a, int b);
  int Subtract(int a, int b);
  int Multiply(int a, int b);
  int Divide(int a, int b);
  int Negate(int a);
  // What an exact graph knows of a node: whether it is a zero of either sign for all inputs, and
  // whether it may be a negative one.
  struct Zero {
    bool always, negative;
  };

  int Insert(const Node& node);
  Zero ZeroOf(const Node& node) const;
  bool IsZero(int node) const;
  bool Vanishes(int node, int beside) const;
  bool Is(int node, double value) const;
  bool Is(int node, Op op) const { return (*this)[node].op == op; }

  bool exact_;
  std::vector<Node> nodes_;
  std::vector<Zero> zeros_;  // of an exact graph's nodes
  std::unordered_map<Node, int, Hash, Same> index_;
};

/// Finds for each node whether it may be a negative zero. `inputs`: whether an input may, by its
/// slot.
template <class Inputs>
std::vector<bool> NegativeZeros(const Graph& graph, Inputs inputs) {
  std::vector<bool> may;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph[i];
    const auto of = [&](int operand) { return operand >= 0 && may[static_cast<size_t>(operand)]; };
    may.push_back(node.op == Op::kInput ? inputs(node.a)
                  : node.op == Op::kConstant
                      ? false
                      : MakesNegativeZero(node.op, of(node.a), of(node.b), node.a == node.b));
  }
  return may;
}

/// Where a program's inputs and results are: `array` of ProgramArray, element.
struct Slot {
  static constexpr int kMaxElements = 1 << 20;
  int array, element;

  int Packed() const { return array * kMaxElements + element; }
  static Slot Unpack(int packed) { return {packed / kMaxElements, packed % kMaxElements}; }
};

/// A node and where it is to be written.
struct Output {
  int node;
  Slot slot;
};

/// Straight-line code to be: the graph in the order of its recording, and what of it is wanted.
struct Recording {
  Graph graph;
  std::vector<Output> outputs;
  /// Whether zeros that reach the state have the stages' signs, proven; else it may not run.
  bool has_signs = true;
};

}  // namespace pyfastenv::lanes
