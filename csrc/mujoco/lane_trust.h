// Whether a model's physics in lanes is still believed to have mj_step's bits.
//
// Who uses plans for lanes does a group step now and then both ways, and breaks the trust at the
// first differing bit: from then on all workers, all pools and all later plans of the model leave
// it to mj_step. Models are known by their contents. What was found is told once, by whoever comes
// back to Python next.
//
// Threads: any. Process-wide; a forked child begins with new trust in models that it plans anew.
#pragma once

#include <mujoco/mujoco.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pyfastenv {

class LaneTrust {
 public:
  LaneTrust() = default;
  ~LaneTrust();
  LaneTrust(const LaneTrust&) = delete;
  LaneTrust& operator=(const LaneTrust&) = delete;

  bool broken() const { return difference_.load(std::memory_order_acquire) != nullptr; }
  /// The difference that broke it, in a sentence; empty while it holds.
  std::string difference() const;
  /// The first one counts; an empty sentence stands for one that memory did not suffice for.
  void Break(std::string difference) noexcept;

 private:
  friend std::vector<std::string> TakeBrokenTrust();

  std::atomic<const std::string*> difference_{nullptr};  // release/acquire: the text goes with it
  std::atomic<bool> told_{false};
};

/// The trust in a model, as MuJoCo made it, shared by all who plan it. Looks at its numbers.
std::shared_ptr<LaneTrust> FindLaneTrust(const mjModel& model);

/// How often trust has been broken: to see at no cost whether there is something to tell.
int64_t CountBrokenTrust();
/// The differences that nobody has taken yet.
std::vector<std::string> TakeBrokenTrust();

/// For tests of those who watch: while on, every result of lanes that these compare or use is wrong
/// in a bit.
void DisturbLanes(bool on);
void DisturbIfAsked(double& result);

}  // namespace pyfastenv
