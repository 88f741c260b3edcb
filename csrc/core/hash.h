// A hash that is the same in every build and process: FNV-1a.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pyfastenv {

constexpr uint64_t kEmptyHash = 0xcbf29ce484222325ULL;

/// Of bytes that follow what `hash` is of.
inline uint64_t Fnv1a(uint64_t hash, const void* data, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace pyfastenv
