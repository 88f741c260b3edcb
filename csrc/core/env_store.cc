#include "core/env_store.h"

#include <algorithm>
#include <cstring>

#include "core/hash.h"

namespace pyfastenv {

namespace {

// A snapshot: this header, the row, the observation.
struct StateHeader {
  uint64_t fingerprint;
  Random random;
  Random policy_random;
  double episode_return;
  int32_t elapsed;
  uint8_t flags;
  uint8_t padding[3];
};

}  // namespace

EnvStore::EnvStore(int num_envs, const Environment& env, const ObsLayout& obs_layout)
    : rows_{env.InitialLayout(), {}},
      initial_row_(env.InitialRow()),
      obs_layout_(obs_layout),
      obs_bytes_(obs_layout.bytes()) {
  const auto count = static_cast<size_t>(num_envs);
  rows_.values.resize(count * stride());
  random_.resize(count);
  policy_random_.resize(count);
  episode_return_.resize(count);
  elapsed_.resize(count);
  flags_.assign(count, kNeedsReset);
  obs_.resize(count * obs_bytes_);
}

void EnvStore::Initialize(int32_t id) {
  std::copy(initial_row_.begin(), initial_row_.end(), row(id));
  std::fill_n(obs(id), obs_bytes_, uint8_t{0});
}

Progress EnvStore::progress(int32_t id) const {
  const auto i = static_cast<size_t>(id);
  return {random_[i], episode_return_[i], elapsed_[i], flags_[i]};
}

void EnvStore::Commit(int32_t id, const Progress& progress) {
  const auto i = static_cast<size_t>(id);
  random_[i] = progress.random;
  episode_return_[i] = progress.episode_return;
  elapsed_[i] = progress.elapsed;
  flags_[i] = progress.flags;
}

std::vector<int32_t> EnvStore::Unreset(std::span<const int32_t> ids) const {
  std::vector<int32_t> unreset;
  for (const int32_t id : ids) {
    if ((flags(id) & kNeedsReset) != 0) unreset.push_back(id);
  }
  return unreset;
}

void EnvStore::Seed(int32_t id, std::span<const uint32_t> entropy) {
  random_[static_cast<size_t>(id)] = Random(entropy);
  policy_random_[static_cast<size_t>(id)] = PolicyStream(entropy);
}

Random EnvStore::PolicyStream(std::span<const uint32_t> entropy) {
  constexpr size_t kPoolSize = 4;  // entropy before a spawn key is padded to it
  constexpr uint32_t kSpawnKey = 1;
  std::vector<uint32_t> words(entropy.begin(), entropy.end());
  words.resize(std::max(words.size(), kPoolSize));
  words.push_back(kSpawnKey);
  return Random(words);
}

EnvStore::Rows EnvStore::RoomFor(const RowLayout& layout) const {
  return {layout, UntouchedVector<double>(flags_.size() * static_cast<size_t>(layout.size()))};
}

void EnvStore::Widen(int32_t id, Rows& wider) const noexcept {
  const RowLayout& present = rows_.layout;
  const RowLayout& layout = wider.layout;
  const auto kept = static_cast<size_t>(present.fields().end());
  const auto i = static_cast<size_t>(id);
  const double* from = rows_.values.data() + i * stride();
  double* to = wider.values.data() + i * static_cast<size_t>(layout.size());
  to = std::copy_n(from, kept, to);
  for (size_t k = present.added().size(); k < layout.added().size(); ++k) {
    const std::vector<double>& defaults = layout.added()[k].defaults;
    to = std::copy(defaults.begin(), defaults.end(), to);
  }
  std::copy_n(from + kept, present.memory().size, to);
}

size_t EnvStore::state_bytes() const {
  return sizeof(StateHeader) + stride() * sizeof(double) + obs_bytes_;
}

uint64_t EnvStore::Fingerprint(const std::string& identity) const {
  constexpr uint64_t kStateVersion = 3;
  const uint64_t kind[] = {kStateVersion, rows_.layout.version(), obs_bytes_,
                           static_cast<uint64_t>(obs_dtype())};
  uint64_t hash = Fnv1a(kEmptyHash, kind, sizeof(kind));
  hash = Fnv1a(hash, identity.data(), identity.size());
  return hash;
}

void EnvStore::GetState(int32_t id, uint64_t fingerprint, uint8_t* state) const {
  const auto i = static_cast<size_t>(id);
  const StateHeader header{
      fingerprint, random_[i], policy_random_[i], episode_return_[i], elapsed_[i], flags_[i], {}};
  std::memcpy(state, &header, sizeof(header));
  state += sizeof(header);
  std::memcpy(state, rows_.values.data() + i * stride(), stride() * sizeof(double));
  state += stride() * sizeof(double);
  std::memcpy(state, &obs_[i * obs_bytes_], obs_bytes_);
}

uint64_t EnvStore::FingerprintOf(const uint8_t* state) {
  uint64_t fingerprint = 0;
  std::memcpy(&fingerprint, state, sizeof(fingerprint));
  return fingerprint;
}

void EnvStore::SetState(int32_t id, const uint8_t* state) {
  StateHeader header;
  std::memcpy(&header, state, sizeof(header));
  state += sizeof(header);
  Commit(id, {header.random, header.episode_return, header.elapsed, header.flags});
  policy_random_[static_cast<size_t>(id)] = header.policy_random;
  std::memcpy(row(id), state, stride() * sizeof(double));
  state += stride() * sizeof(double);
  std::memcpy(obs(id), state, obs_bytes_);
}

}  // namespace pyfastenv
