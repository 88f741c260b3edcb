#include "lanes/program/compiler.h"

#include <algorithm>
#include <limits>

#include "lanes/program/arrays.h"
#include "lanes/program/assembler.h"

namespace pyfastenv::lanes {

namespace {

constexpr int kNone = -1;
constexpr int kNever = std::numeric_limits<int>::max();

double FromBits(uint64_t bits) {
  double x;
  static_assert(sizeof(x) == sizeof(bits));
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}

// One pass over the operations in the order of their recording. A value stays in its register until
// the register is needed for another and its own next use is the furthest away.
class Compiler {
 public:
  Compiler(const Recording& recording, int lanes, const std::vector<size_t>& offsets)
      : graph_(recording.graph),
        outputs_(recording.outputs),
        offsets_(offsets),
        assembler_(lanes),
        values_(static_cast<size_t>(graph_.size())),
        holds_(static_cast<size_t>(assembler_.num_registers()), kNone),
        pinned_(holds_.size(), false) {}

  CompiledCode Run() {
    FindUses();
    for (int node = 0; node < graph_.size(); ++node) {
      if (IsComputed(node) && !At(node).uses.empty()) Emit(node);
    }
    for (const Output& output : outputs_) {
      if (!IsComputed(output.node)) Store(output);
    }
    return {assembler_.Finish(), num_spills_, num_operations_};
  }

 private:
  struct Value {
    std::vector<int> uses;  // by which nodes, ascending; kNever: as an output
    size_t next_use = 0;    // in `uses`
    int where = kNone;      // register
    int32_t memory = kNone;
    bool is_spilled = false;
    std::vector<Slot> slots;  // of outputs
  };

  Value& At(int node) { return values_[static_cast<size_t>(node)]; }
  bool IsComputed(int node) const {
    return graph_[node].op != Op::kConstant && graph_[node].op != Op::kInput;
  }
  int32_t Offset(Slot slot) const {
    return static_cast<int32_t>(offsets_[static_cast<size_t>(slot.array)]) +
           slot.element * assembler_.vector_bytes();
  }
  int NextUse(int node) {
    const Value& value = At(node);
    return value.next_use < value.uses.size() ? value.uses[value.next_use] : kNever;
  }

  // Backwards: what no output needs has no use.
  void FindUses() {
    for (const Output& output : outputs_) {
      At(output.node).uses.push_back(kNever);
      At(output.node).slots.push_back(output.slot);
    }
    for (int node = graph_.size() - 1; node >= 0; --node) {
      if (!IsComputed(node) || At(node).uses.empty()) continue;
      At(graph_[node].a).uses.push_back(node);
      if (graph_[node].b != kNone) At(graph_[node].b).uses.push_back(node);
    }
    for (int node = 0; node < graph_.size(); ++node) {
      Value& value = At(node);
      std::reverse(value.uses.begin(), value.uses.end());
      while (!value.uses.empty() && value.uses.back() == kNever && value.uses.size() > 1) {
        value.uses.pop_back();
      }
      if (graph_[node].op == Op::kInput) value.memory = Offset(Slot::Unpack(graph_[node].a));
    }
  }

  // Where a value can be had without its register.
  Operand Memory(int node) {
    if (graph_[node].op == Op::kConstant) return Operand::Constant(graph_[node].constant);
    return Operand::Memory(At(node).memory);
  }
  bool IsInMemory(int node) { return graph_[node].op == Op::kConstant || At(node).memory != kNone; }

  // A free register, pinned; the value whose next use is the furthest away gives way.
  int TakeRegister() {
    int best = kNone, furthest = -1;
    for (size_t r = 0; r < holds_.size(); ++r) {
      if (pinned_[r]) continue;
      const int next = holds_[r] == kNone ? kNever : NextUse(holds_[r]);
      if (holds_[r] == kNone || next > furthest) {
        best = static_cast<int>(r);
        furthest = next;
        if (holds_[r] == kNone) break;
      }
    }
    const auto r = static_cast<size_t>(best);
    if (holds_[r] != kNone) Evict(holds_[r]);
    pinned_[r] = true;
    return best;
  }

  void Evict(int node) {
    Value& value = At(node);
    if (NextUse(node) != kNever && !IsInMemory(node)) {
      value.memory = Offset({static_cast<int>(ProgramArray::spill), TakeSpill()});
      value.is_spilled = true;
      assembler_.Store(value.memory, value.where);
    }
    holds_[static_cast<size_t>(value.where)] = kNone;
    value.where = kNone;
  }

  int TakeSpill() {
    if (!free_spills_.empty()) {
      const int spill = free_spills_.back();
      free_spills_.pop_back();
      return spill;
    }
    return num_spills_++;
  }

  void Hold(int node, int where) {
    holds_[static_cast<size_t>(where)] = node;
    At(node).where = where;
  }

  // Brings a value into a register and pins it.
  int InRegister(int node) {
    if (At(node).where == kNone) {
      const int r = TakeRegister();
      assembler_.Load(r, Memory(node));
      Hold(node, r);
    }
    pinned_[static_cast<size_t>(At(node).where)] = true;
    return At(node).where;
  }

  // A second operand: from memory if it is used this once and not in a register.
  Operand AsOperand(int node) {
    Value& value = At(node);
    const bool used_again =
        value.next_use + 1 < value.uses.size() && value.uses[value.next_use + 1] != kNever;
    const bool constant = graph_[node].op == Op::kConstant;
    if (value.where == kNone && (constant || !used_again)) return Memory(node);
    return Operand::Register(InRegister(node));
  }

  // A use is done; the last one frees the register and, after this operation, the spilled place.
  void Used(int node, int by) {
    Value& value = At(node);
    while (NextUse(node) <= by) ++value.next_use;
    if (NextUse(node) != kNever) return;
    if (value.where != kNone) {
      holds_[static_cast<size_t>(value.where)] = kNone;
      value.where = kNone;
    }
    if (value.is_spilled) {
      const auto spill = offsets_[static_cast<size_t>(ProgramArray::spill)];
      ended_spills_.push_back(static_cast<int>((static_cast<size_t>(value.memory) - spill) /
                                               static_cast<size_t>(assembler_.vector_bytes())));
      value.is_spilled = false;
      value.memory = kNone;
    }
  }

  void Emit(int index) {
    const Node& node = graph_[index];
    ++num_operations_;
    const int where = node.b != kNone ? EmitBinary(node, index) : EmitUnary(node, index);
    Hold(index, where);
    Value& value = At(index);
    for (const Slot slot : value.slots) {
      value.memory = Offset(slot);
      assembler_.Store(value.memory, where);
    }
    std::fill(pinned_.begin(), pinned_.end(), false);
    if (NextUse(index) == kNever) Used(index, index);
    free_spills_.insert(free_spills_.end(), ended_spills_.begin(), ended_spills_.end());
    ended_spills_.clear();
  }

  int EmitBinary(const Node& node, int index) {
    int a = node.a, b = node.b;
    const bool commutes =
        node.op == Op::kAdd || node.op == Op::kMul || node.op == Op::kTimesPositive;
    if (commutes &&
        (graph_[a].op == Op::kConstant || (At(a).where == kNone && At(b).where != kNone))) {
      std::swap(a, b);
    }
    const int first = InRegister(a);
    const Operand second = a == b ? Operand::Register(first) : AsOperand(b);
    Release(a, index);
    Release(b, index);
    const int where = TakeRegister();
    if (node.op == Op::kLess) {
      assembler_.Less(where, first, second);
    } else {
      assembler_.Compute(OpcodeOf(node.op), where, first, second);
    }
    return where;
  }

  // Operands that are done with may give their register to the result.
  void Release(int node, int by) {
    const int where = At(node).where;
    Used(node, by);
    if (where != kNone && At(node).where == kNone) pinned_[static_cast<size_t>(where)] = false;
  }

  int EmitUnary(const Node& node, int index) {
    const int a = InRegister(node.a);
    if (node.op == Op::kUnitScale) return EmitUnitScale(node, index, a);
    Release(node.a, index);
    const int where = TakeRegister();
    switch (node.op) {
      case Op::kNeg:
        assembler_.Compute(Assembler::kXor, where, a, Operand::Constant(-0.0));
        break;
      case Op::kAbs:
        assembler_.Compute(Assembler::kAnd, where, a, Operand::Constant(FromBits(kAllButSign)));
        break;
      case Op::kPlusZero:
        assembler_.Compute(Assembler::kAdd, where, a, Operand::Constant(0));
        break;
      default:
        assembler_.Compute(Assembler::kSqrt, where, 0, Operand::Register(a));
    }
    return where;
  }

  int EmitUnitScale(const Node& node, int index, int a) {
    constexpr double kTolerance = 1e-15;  // mjMINVAL
    const int off = TakeRegister(), where = TakeRegister();
    assembler_.Compute(Assembler::kSub, off, a, Operand::Constant(1));
    assembler_.Compute(Assembler::kAnd, off, off, Operand::Constant(FromBits(kAllButSign)));
    assembler_.InvertWhere(where, off, kTolerance, a);
    Release(node.a, index);
    return where;
  }

  void Store(const Output& output) {
    const int where = InRegister(output.node);
    assembler_.Store(Offset(output.slot), where);
    pinned_[static_cast<size_t>(where)] = false;
  }

  static Assembler::Arithmetic OpcodeOf(Op op) {
    switch (op) {
      case Op::kSub:
        return Assembler::kSub;
      case Op::kMul:
      case Op::kTimesPositive:
        return Assembler::kMul;
      case Op::kDiv:
        return Assembler::kDiv;
      case Op::kMin:
        return Assembler::kMin;
      case Op::kMax:
        return Assembler::kMax;
      case Op::kWhere:
        return Assembler::kAnd;
      case Op::kWhereNot:
        return Assembler::kAndNot;
      case Op::kJoin:
        return Assembler::kOr;
      default:
        return Assembler::kAdd;
    }
  }

  static constexpr uint64_t kAllButSign = 0x7fffffffffffffff;

  const Graph& graph_;
  const std::vector<Output>& outputs_;
  const std::vector<size_t>& offsets_;
  Assembler assembler_;
  std::vector<Value> values_;
  std::vector<int> holds_;  // of each register: the node whose value it has
  std::vector<bool> pinned_;
  std::vector<int> free_spills_, ended_spills_;
  int num_spills_ = 0, num_operations_ = 0;
};

}  // namespace

CompiledCode Compile(const Recording& recording, int lanes, const std::vector<size_t>& offsets) {
  return Compiler(recording, lanes, offsets).Run();
}

}  // namespace pyfastenv::lanes
