// The items of a call, handed out to the workers of a pool.
//
// Every worker has a share of its own, neighbouring items whose rows are in its cache from the call
// before; who has finished with his takes from the others'. An item that is taken may be given
// back, to be taken again (a rollout's next segment), by anyone.
//
// Threads: Take and GiveBack from any number of workers at a time. Deal only while no item is left
// and none is held; whoever takes an item of it sees everything that was written before Deal.
//
// A worker looks for other shares in a bit set with one bit per share that has items: finding one,
// or finding that there is none, does not cost a look at every share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/cache_line.h"

namespace pyfastenv {

class WorkShares {
 public:
  explicit WorkShares(int num_workers);

  /// Deals items 0 … count - 1 in equal parts. Allocates nothing unless items were given back
  /// before.
  void Deal(int count);

  /// The items of a deal that are first a worker's own: begin and end.
  std::pair<int, int> ShareOf(int worker, int count) const;

  /// Takes up to `max` items of one share, `worker`'s own first. Returns how many; 0: none is left.
  int Take(int worker, int max, int32_t* items);

  /// Puts items back, behind those of the worker's share, unless Drop has been called since Deal
  /// (false).
  bool GiveBack(int worker, std::span<const int32_t> items);

  /// Makes room so that GiveBack of up to `count` items in all throws nothing.
  void ReserveGiveBack(int count);

  /// Removes what nobody has taken, refuses GiveBack until the next Deal, and returns how many
  /// items were removed.
  int Drop();

 private:
  struct alignas(kCacheLine) Share {
    std::mutex mutex;  // guards the rest
    int next = 0;      // items of the deal that are left: next … end - 1
    int end = 0;
    // given back: a ring that grows in ReserveGiveBack only
    std::vector<int32_t> ring;
    size_t ring_first = 0;
    size_t ring_size = 0;
  };
  struct alignas(kCacheLine) Word {
    std::atomic<uint64_t> bits{0};
  };
  static constexpr int kBits = 64;

  int TakeFrom(int share, int max, int32_t* items);
  // of a share whose mutex is held
  void SetBit(int share);
  void ClearBit(int share);
  int FindShare(int from) const;

  const int num_workers_;
  std::unique_ptr<Share[]> shares_;
  std::vector<Word> words_;           // bit s % 64 of word s / 64: share s has items
  std::atomic<bool> dropped_{false};  // written under every share's mutex in turn
};

}  // namespace pyfastenv
