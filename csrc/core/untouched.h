// Memory that nobody has written yet.
//
// A page of memory belongs to the processor (NUMA node) that first writes to it. What many workers
// will use is therefore allocated without being written, and each worker writes its own part.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace pyfastenv {

/// Leaves new elements as they are, where std::allocator sets them to zero.
template <class T>
struct UntouchedAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UntouchedAllocator<U>;
  };

  template <class U>
  void construct(U* /*element*/) noexcept {}
  template <class U, class... Args>
  void construct(U* element, Args&&... args) {
    std::construct_at(element, std::forward<Args>(args)...);
  }
};

/// A vector whose resize writes nothing.
template <class T>
using UntouchedVector = std::vector<T, UntouchedAllocator<T>>;

}  // namespace pyfastenv
