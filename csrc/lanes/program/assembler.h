// Machine code of x86-64 vector arithmetic in doubles: AVX-512 (8 lanes) or AVX2 (4 lanes).
//
// Code is a function void(void* block) of the System V convention: every operand in memory is at a
// fixed distance from `block`. Constants stand behind the code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pyfastenv::lanes {

/// An operand: a register, memory of the block, or a constant in all lanes.
struct Operand {
  enum Kind { kRegister, kMemory, kConstant } kind;
  int index;       // of the register
  int32_t offset;  // in the block
  double constant;

  static Operand Register(int index) { return {kRegister, index, 0, 0}; }
  static Operand Memory(int32_t offset) { return {kMemory, 0, offset, 0}; }
  static Operand Constant(double value) { return {kConstant, 0, 0, value}; }
};

class Assembler {
 public:
  /// `lanes`: 8 or 4.
  explicit Assembler(int lanes) : wide_(lanes == 8) {}

  int num_registers() const { return wide_ ? 32 : 16; }
  /// Lanes have so many bytes.
  int vector_bytes() const { return wide_ ? 64 : 32; }

  enum Arithmetic : uint8_t {
    kSqrt = 0x51,  // of b alone
    kAnd = 0x54,
    kAndNot = 0x55,  // not a, and b
    kOr = 0x56,
    kXor = 0x57,
    kAdd = 0x58,
    kMul = 0x59,
    kSub = 0x5c,
    kMin = 0x5d,  // a < b ? a : b
    kDiv = 0x5e,
    kMax = 0x5f,  // a > b ? a : b
  };
  void Compute(Arithmetic op, int destination, int a, Operand b);
  /// destination = all bits where a < b, none elsewhere.
  void Less(int destination, int a, Operand b);
  void Load(int destination, Operand from);
  void Store(int32_t offset, int source);
  /// destination = 1 / a where `off` > tolerance, else 1. `off` is spoilt.
  void InvertWhere(int destination, int off, double tolerance, int a);

  /// The whole function.
  std::vector<uint8_t> Finish();

 private:
  struct Fixup {
    size_t at;  // of the distance, relative to the instruction's end
    size_t end;
    uint64_t constant;
  };

  void Byte(int value) { code_.push_back(static_cast<uint8_t>(value)); }
  void Word(uint32_t value);
  // An instruction of opcode map `map` (1: 0F, 2: 0F38, 3: 0F3A); `immediate`: bytes behind it.
  void Instruction(int map, int opcode, int reg, int vvvv, const Operand& rm, bool broadcast,
                   int mask = 0, int immediate = 0);
  void Prefix(int map, int reg, int vvvv, const Operand& rm, bool broadcast, int mask);
  void Address(int reg, const Operand& rm, bool broadcast, int immediate);

  bool wide_;
  std::vector<uint8_t> code_;
  std::vector<Fixup> fixups_;
};

}  // namespace pyfastenv::lanes
