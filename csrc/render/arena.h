// Scratch memory of one renderer: taken piece by piece while a picture is drawn, given back whole.
// Not synchronised.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace pyfastenv::render {

class Arena {
 public:
  static constexpr size_t kAlignment = 64;

  /// Uninitialised, 64-byte aligned, valid until Reset. Throws std::bad_alloc.
  void* Take(size_t bytes);
  template <class T>
  T* Take(size_t count) {
    return static_cast<T*>(Take(count * sizeof(T)));
  }
  /// Gives everything back; memory is kept for the next picture, in one piece.
  void Reset();
  size_t capacity() const;

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  struct Piece {
    std::unique_ptr<std::byte, Free> begin;
    size_t size = 0, used = 0;
  };
  static Piece MakePiece(size_t size);

  std::vector<Piece> pieces_;
};

}  // namespace pyfastenv::render
