// Memory that holds machine code: written once, then executable and read-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pyfastenv::lanes {

class Code {
 public:
  Code() = default;
  /// Empty where the system does not let a process make code.
  explicit Code(const std::vector<uint8_t>& bytes);
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  Code(Code&& other) noexcept;
  Code& operator=(Code&& other) noexcept;

  /// The beginning, at a page's; null if empty.
  void* entry() const { return memory_; }

 private:
  void* memory_ = nullptr;
  size_t size_ = 0;
};

}  // namespace pyfastenv::lanes
