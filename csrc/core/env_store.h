// What a pool owns per environment: its row, random streams, counters and latest observation.
//
// Knows no threads: whoever holds an environment reads and writes its slots.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/env.h"
#include "core/obs_layout.h"
#include "core/untouched.h"
#include "npy/dtype.h"
#include "npy/random.h"

namespace pyfastenv {

/// The needs of an environment, besides a step, before the next one; bits.
enum EnvFlag : uint8_t {
  kNeedsReset = 1,  // never reset, ended in DISABLED mode, or interrupted
  kAutoreset = 2,   // NEXT_STEP: the episode has ended, the next step is a reset
};

/// The parts that a step changes besides the row. Calls work on a copy and commit it once nothing
/// can throw.
struct Progress {
  Random random;
  double episode_return = 0.0;
  int32_t elapsed = 0;  // steps of the episode
  uint8_t flags = kNeedsReset;
};

class EnvStore {
 public:
  /// Rows and observations are not written yet: Initialize does that.
  EnvStore(int num_envs, const Environment& env, const ObsLayout& obs_layout);

  /// Writes an environment's first row, once for every id before it is used, best by the worker
  /// that will run it (core/untouched.h).
  void Initialize(int32_t id);

  int num_envs() const { return static_cast<int>(flags_.size()); }
  size_t obs_bytes() const { return obs_bytes_; }
  const ObsLayout& obs_layout() const { return obs_layout_; }
  DType obs_dtype() const { return obs_layout_.dtype; }

  const RowLayout& layout() const { return rows_.layout; }
  double* row(int32_t id) { return rows_.values.data() + static_cast<size_t>(id) * stride(); }
  uint8_t* obs(int32_t id) { return obs_.data() + static_cast<size_t>(id) * obs_bytes_; }
  const UntouchedVector<uint8_t>& all_obs() const { return obs_; }

  Progress progress(int32_t id) const;
  void Commit(int32_t id, const Progress& progress);
  uint8_t flags(int32_t id) const { return flags_[static_cast<size_t>(id)]; }
  void MarkNeedsReset(int32_t id) { flags_[static_cast<size_t>(id)] |= kNeedsReset; }
  /// Those of `ids` that kNeedsReset.
  std::vector<int32_t> Unreset(std::span<const int32_t> ids) const;

  /// Starts both streams of an environment: its own and the one its policy draws from in rollouts,
  /// NumPy's SeedSequence(entropy) and SeedSequence(entropy, spawn_key=(1,)).
  void Seed(int32_t id, std::span<const uint32_t> entropy);
  /// The stream that a policy draws from.
  static Random PolicyStream(std::span<const uint32_t> entropy);
  Random& policy_random(int32_t id) { return policy_random_[static_cast<size_t>(id)]; }

  /// All environments' rows, and what stands where in them.
  struct Rows {
    RowLayout layout;
    UntouchedVector<double> values;  // (num_envs, layout.size())
  };
  /// Room for the rows of a layout with more fields, not written yet. May throw.
  Rows RoomFor(const RowLayout& layout) const;
  /// Writes an environment's present row there, best by its worker; more fields get their defaults.
  void Widen(int32_t id, Rows& wider) const noexcept;
  void Adopt(Rows&& rows) noexcept { rows_ = std::move(rows); }

  // ---- snapshots: complete; bytes that only mean something to a store of the same kind ----

  size_t state_bytes() const;
  /// Identifies the kind: environment, arguments (`identity`) and layout.
  uint64_t Fingerprint(const std::string& identity) const;
  void GetState(int32_t id, uint64_t fingerprint, uint8_t* state) const;
  static uint64_t FingerprintOf(const uint8_t* state);
  void SetState(int32_t id, const uint8_t* state);

 private:
  size_t stride() const { return static_cast<size_t>(rows_.layout.size()); }

  Rows rows_;
  std::vector<double> initial_row_;
  const ObsLayout obs_layout_;
  const size_t obs_bytes_;

  std::vector<Random> random_;
  std::vector<Random> policy_random_;
  std::vector<double> episode_return_;
  std::vector<int32_t> elapsed_;
  std::vector<uint8_t> flags_;
  UntouchedVector<uint8_t> obs_;  // latest observations, of obs_layout
};

}  // namespace pyfastenv
