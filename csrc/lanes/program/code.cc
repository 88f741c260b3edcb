#include "lanes/program/code.h"

#include <cstring>
#include <utility>

#ifdef PYFASTENV_LANE_PROGRAMS
#include <sys/mman.h>
#endif

namespace pyfastenv::lanes {

#ifdef PYFASTENV_LANE_PROGRAMS
Code::Code(const std::vector<uint8_t>& bytes) : size_(bytes.size()) {
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  std::memcpy(memory, bytes.data(), size_);
  if (mprotect(memory, size_, PROT_READ | PROT_EXEC) == 0) {
    memory_ = memory;
  } else {
    munmap(memory, size_);
  }
}

Code::~Code() {
  if (memory_ != nullptr) munmap(memory_, size_);
}
#else
Code::Code(const std::vector<uint8_t>&) {}
Code::~Code() = default;
#endif

Code::Code(Code&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_) {}

Code& Code::operator=(Code&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace pyfastenv::lanes
