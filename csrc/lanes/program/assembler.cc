#include "lanes/program/assembler.h"

#include <cstring>
#include <map>

namespace pyfastenv::lanes {

namespace {

constexpr int kLoad = 0x28, kStore = 0x29;  // vmovapd
constexpr int kBroadcast = 0x19;            // vbroadcastsd
constexpr int kCompare = 0xc2, kLessThan = 0x11, kGreaterThan = 0x1e;
constexpr uint64_t kAllBits = ~uint64_t{0};

int Bit(int value, int bit) { return value >> bit & 1; }

double FromBits(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

uint64_t BitsOf(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

}  // namespace

void Assembler::Word(uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) Byte(static_cast<int>(value >> shift & 0xff));
}

// EVEX for 512 bits, VEX for 256; both hold the upper bits of register numbers, inverted.
void Assembler::Prefix(int map, int reg, int vvvv, const Operand& rm, bool broadcast, int mask) {
  const int r = rm.kind == Operand::kRegister ? rm.index : 0;
  constexpr int k66 = 1;  // double precision, packed
  if (wide_) {
    Byte(0x62);
    Byte((1 - Bit(reg, 3)) << 7 | (1 - Bit(r, 4)) << 6 | (1 - Bit(r, 3)) << 5 |
         (1 - Bit(reg, 4)) << 4 | map);
    Byte(1 << 7 | (~vvvv & 15) << 3 | 1 << 2 | k66);
    Byte(2 << 5 | static_cast<int>(broadcast) << 4 | (1 - Bit(vvvv, 4)) << 3 | mask);
  } else {
    Byte(0xc4);
    Byte((1 - Bit(reg, 3)) << 7 | 1 << 6 | (1 - Bit(r, 3)) << 5 | map);
    Byte((~vvvv & 15) << 3 | 1 << 2 | k66);
  }
}

void Assembler::Address(int reg, const Operand& rm, bool broadcast, int immediate) {
  constexpr int kBlock = 7;  // rdi
  const int field = (reg & 7) << 3;
  if (rm.kind == Operand::kRegister) {
    Byte(3 << 6 | field | (rm.index & 7));
  } else if (rm.kind == Operand::kConstant) {
    Byte(field | 5);  // relative to the instruction's end
    fixups_.push_back(
        {code_.size(), code_.size() + 4 + static_cast<size_t>(immediate), BitsOf(rm.constant)});
    Word(0);
  } else {
    // EVEX scales short distances by the operand's size
    const int scale = !wide_ ? 1 : broadcast ? 8 : 64;
    const int32_t scaled = rm.offset / scale;
    if (rm.offset % scale == 0 && scaled >= -128 && scaled < 128) {
      Byte(1 << 6 | field | kBlock);
      Byte(scaled & 0xff);
    } else {
      Byte(2 << 6 | field | kBlock);
      Word(static_cast<uint32_t>(rm.offset));
    }
  }
}

void Assembler::Instruction(int map, int opcode, int reg, int vvvv, const Operand& rm,
                            bool broadcast, int mask, int immediate) {
  Prefix(map, reg, vvvv, rm, broadcast, mask);
  Byte(opcode);
  Address(reg, rm, broadcast, immediate);
}

void Assembler::Compute(Arithmetic op, int destination, int a, Operand b) {
  // AVX-512 repeats a constant from memory by itself; for AVX2 it stands there four times
  const bool broadcast = wide_ && b.kind == Operand::kConstant;
  Instruction(1, op, destination, op == kSqrt ? 0 : a, b, broadcast);
}

void Assembler::Less(int destination, int a, Operand b) {
  if (wide_) {
    constexpr int kMask = 1;
    Instruction(1, kCompare, kMask, a, b, b.kind == Operand::kConstant, 0, 1);
    Byte(kLessThan);
    Compute(kXor, destination, destination, Operand::Register(destination));
    Instruction(2, kBroadcast, destination, 0, Operand::Constant(FromBits(kAllBits)), false, kMask);
  } else {
    Instruction(1, kCompare, destination, a, b, false, 0, 1);
    Byte(kLessThan);
  }
}

void Assembler::Load(int destination, Operand from) {
  if (from.kind == Operand::kConstant && wide_) {
    Instruction(2, kBroadcast, destination, 0, from, false);
  } else {
    Instruction(1, kLoad, destination, 0, from, false);
  }
}

void Assembler::Store(int32_t offset, int source) {
  Instruction(1, kStore, source, 0, Operand::Memory(offset), false);
}

void Assembler::InvertWhere(int destination, int off, double tolerance, int a) {
  Load(destination, Operand::Constant(1));
  if (wide_) {
    constexpr int kMask = 1;
    Instruction(1, kCompare, kMask, off, Operand::Constant(tolerance), true, 0, 1);
    Byte(kGreaterThan);
    for (const int byte : {0xc5, 0xf9, 0x98, 0xc9}) Byte(byte);  // kortestb k1, k1
    Byte(0x74);                                                  // jz: no lane is off
    Byte(6);
    Instruction(1, kDiv, destination, destination, Operand::Register(a), false, kMask);
  } else {
    Instruction(1, kCompare, off, off, Operand::Constant(tolerance), false, 0, 1);
    Byte(kGreaterThan);
    Instruction(1, 0x50, 0, 0, Operand::Register(off), false);  // vmovmskpd eax, off
    Byte(0x85);                                                 // test eax, eax
    Byte(0xc0);
    Byte(0x74);
    const size_t jump = code_.size();
    Byte(0);
    // (1 / a) and the mask, or (1 and not the mask): kept in `off`
    Instruction(1, kLoad, destination, 0, Operand::Constant(1), false);
    Instruction(1, kDiv, destination, destination, Operand::Register(a), false);
    Instruction(1, kAnd, destination, off, Operand::Register(destination), false);
    Instruction(1, kAndNot, off, off, Operand::Constant(1), false);
    Instruction(1, kOr, destination, destination, Operand::Register(off), false);
    code_[jump] = static_cast<uint8_t>(code_.size() - jump - 1);
  }
}

std::vector<uint8_t> Assembler::Finish() {
  for (const int byte : {0xc5, 0xf8, 0x77, 0xc3}) Byte(byte);  // vzeroupper; ret
  while (code_.size() % 64 != 0) Byte(0xcc);
  std::map<uint64_t, size_t> places;
  for (const Fixup& fixup : fixups_) {
    const auto [place, is_new] = places.try_emplace(fixup.constant, code_.size());
    for (int copy = 0; is_new && copy < (wide_ ? 1 : 4); ++copy) {
      for (int shift = 0; shift < 64; shift += 8) {
        Byte(static_cast<int>(fixup.constant >> shift & 0xff));
      }
    }
    const auto distance = static_cast<uint32_t>(place->second - fixup.end);
    std::memcpy(code_.data() + fixup.at, &distance, sizeof(distance));
  }
  return code_;
}

}  // namespace pyfastenv::lanes
