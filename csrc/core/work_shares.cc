#include "core/work_shares.h"

#include <bit>

namespace pyfastenv {

WorkShares::WorkShares(int num_workers)
    : num_workers_(num_workers),
      shares_(std::make_unique<Share[]>(static_cast<size_t>(num_workers))),
      words_(static_cast<size_t>((num_workers + kBits - 1) / kBits)) {}

std::pair<int, int> WorkShares::ShareOf(int worker, int count) const {
  const int64_t size = count;
  return {static_cast<int>(size * worker / num_workers_),
          static_cast<int>(size * (worker + 1) / num_workers_)};
}

void WorkShares::Deal(int count) {
  dropped_.store(false, std::memory_order_relaxed);
  for (int worker = 0; worker < num_workers_; ++worker) {
    Share& share = shares_[static_cast<size_t>(worker)];
    const std::lock_guard lock(share.mutex);
    std::tie(share.next, share.end) = ShareOf(worker, count);
    if (share.next < share.end) SetBit(worker);
  }
}

int WorkShares::Take(int worker, int max, int32_t* items) {
  // its own share first; a bit may be out of date by the time its share is looked at
  for (int share = FindShare(worker); share >= 0; share = FindShare(share)) {
    const int taken = TakeFrom(share, max, items);
    if (taken > 0) return taken;
  }
  return 0;
}

int WorkShares::TakeFrom(int index, int max, int32_t* items) {
  Share& share = shares_[static_cast<size_t>(index)];
  const std::lock_guard lock(share.mutex);
  int taken = 0;
  for (; taken < max && share.next < share.end; ++taken, ++share.next) {
    items[taken] = share.next;
  }
  for (; taken < max && share.ring_size > 0; ++taken, --share.ring_size) {
    items[taken] = share.ring[share.ring_first];
    if (++share.ring_first == share.ring.size()) share.ring_first = 0;
  }
  if (share.next == share.end && share.ring_size == 0) ClearBit(index);
  return taken;
}

bool WorkShares::GiveBack(int worker, std::span<const int32_t> items) {
  Share& share = shares_[static_cast<size_t>(worker)];
  const std::lock_guard lock(share.mutex);
  if (dropped_.load(std::memory_order_relaxed)) return false;
  for (const int32_t item : items) {
    share.ring[(share.ring_first + share.ring_size) % share.ring.size()] = item;
    ++share.ring_size;
  }
  if (!items.empty()) SetBit(worker);
  return true;
}

void WorkShares::ReserveGiveBack(int count) {
  for (int worker = 0; worker < num_workers_; ++worker) {
    Share& share = shares_[static_cast<size_t>(worker)];
    const std::lock_guard lock(share.mutex);
    if (share.ring.size() >= static_cast<size_t>(count)) continue;
    share.ring.resize(static_cast<size_t>(count));  // empty now: nothing to rearrange
    share.ring_first = 0;
  }
}

int WorkShares::Drop() {
  int dropped = 0;
  dropped_.store(true, std::memory_order_relaxed);
  for (int worker = 0; worker < num_workers_; ++worker) {
    Share& share = shares_[static_cast<size_t>(worker)];
    const std::lock_guard lock(share.mutex);
    dropped += share.end - share.next + static_cast<int>(share.ring_size);
    share.next = share.end;
    share.ring_size = 0;
    ClearBit(worker);
  }
  return dropped;
}

void WorkShares::SetBit(int share) {
  words_[static_cast<size_t>(share / kBits)].bits.fetch_or(uint64_t{1} << (share % kBits),
                                                           std::memory_order_release);
}

void WorkShares::ClearBit(int share) {
  words_[static_cast<size_t>(share / kBits)].bits.fetch_and(~(uint64_t{1} << (share % kBits)),
                                                            std::memory_order_release);
}

// The first share with items, from `from` on and around; -1: none.
int WorkShares::FindShare(int from) const {
  const auto num_words = static_cast<int>(words_.size());
  const int first = from / kBits;
  for (int i = 0; i <= num_words; ++i) {
    const int word = (first + i) % num_words;
    uint64_t bits = words_[static_cast<size_t>(word)].bits.load(std::memory_order_acquire);
    if (i == 0) bits &= ~uint64_t{0} << (from % kBits);  // those before `from` come last
    if (bits != 0) return word * kBits + std::countr_zero(bits);
  }
  return -1;
}

}  // namespace pyfastenv
