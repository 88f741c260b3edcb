#include "render/arena.h"

#include <algorithm>
#include <new>

namespace pyfastenv::render {

namespace {
constexpr size_t kSmallest = size_t{1} << 16;
}

void Arena::Free::operator()(std::byte* p) const {
  ::operator delete(p, std::align_val_t{kAlignment});
}

Arena::Piece Arena::MakePiece(size_t size) {
  auto* begin = static_cast<std::byte*>(::operator new(size, std::align_val_t{kAlignment}));
  return {std::unique_ptr<std::byte, Free>(begin), size, 0};
}

void* Arena::Take(size_t bytes) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (pieces_.empty() || pieces_.back().size - pieces_.back().used < bytes) {
    pieces_.push_back(MakePiece(std::max({bytes, kSmallest, capacity()})));
  }
  Piece& piece = pieces_.back();
  std::byte* taken = piece.begin.get() + piece.used;
  piece.used += bytes;
  return taken;
}

void Arena::Reset() {
  if (pieces_.size() > 1) {
    const size_t size = capacity();
    pieces_.clear();
    pieces_.push_back(MakePiece(size));
  }
  if (!pieces_.empty()) pieces_.back().used = 0;
}

size_t Arena::capacity() const {
  size_t size = 0;
  for (const Piece& piece : pieces_) size += piece.size;
  return size;
}

}  // namespace pyfastenv::render
