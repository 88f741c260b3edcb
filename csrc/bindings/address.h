// MuJoCo's structs that Python holds, by the address that its objects tell.
#pragma once

#include <cstdint>

namespace pyfastenv {

template <class T>
T* At(uintptr_t address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace pyfastenv
