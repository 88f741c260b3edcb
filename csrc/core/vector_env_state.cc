// What VectorEnv's callers read and write between steps: snapshots, streams, tasks, model fields.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "core/vector_env.h"

namespace pyfastenv {

bool VectorEnv::GetState(std::span<const int32_t> ids, std::span<uint8_t> states) {
  const CallGate::Exclusive exclusive(gate_);
  CheckIds(ids);
  CheckFree(ids, "get_state");
  const size_t bytes = store_.state_bytes();
  if (states.size() != ids.size() * bytes) return false;
  const uint64_t fingerprint = store_.Fingerprint(options_.identity);
  for (size_t i = 0; i < ids.size(); ++i) {
    store_.GetState(ids[i], fingerprint, states.data() + i * bytes);
  }
  return true;
}

void VectorEnv::SetState(std::span<const int32_t> ids, std::span<const uint8_t> states) {
  const CallGate::Exclusive exclusive(gate_);
  CheckIds(ids);
  CheckFree(ids, "set_state");
  const size_t bytes = store_.state_bytes();
  if (states.size() != ids.size() * bytes) {
    throw BadValue("state: expected ", bytes, " bytes for each of ", ids.size(),
                   " environments, got ", states.size(), " in all");
  }
  const uint64_t expected = store_.Fingerprint(options_.identity);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (EnvStore::FingerprintOf(states.data() + i * bytes) != expected) {
      throw BadValue("state: row ", i,
                     ": expected a state of such an environment (same id, arguments, "
                     "contents of the model's file, autoreset_mode, obs_dtype and model fields)");
    }
  }
  for (size_t i = 0; i < ids.size(); ++i) store_.SetState(ids[i], states.data() + i * bytes);
}

void VectorEnv::Seed(Seeds seeds) {
  const CallGate::Exclusive exclusive(gate_);
  CheckFree({}, "seed");
  for (size_t i = 0; i < seeds.size(); ++i) store_.Seed(static_cast<int32_t>(i), seeds[i]);
}

void VectorEnv::CopyObservations(void* obs) {
  const CallGate::Exclusive exclusive(gate_);
  CheckFree({}, "reset");
  std::memcpy(obs, store_.all_obs().data(), store_.all_obs().size());
}

void VectorEnv::Amend(std::span<const int32_t> ids, std::span<const double> rewards,
                      std::span<const uint8_t> ended) {
  const CallGate::Exclusive exclusive(gate_);
  CheckIds(ids);
  CheckFree(ids, "amend");
  const bool autoreset = rules_.autoreset_mode == AutoresetMode::kNextStep;
  int64_t episodes = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    Progress progress = store_.progress(ids[i]);
    progress.episode_return += rewards[i];
    if (ended[i] != 0 && progress.flags == 0) {
      progress.flags = autoreset ? kAutoreset : kNeedsReset;
      ++episodes;
    }
    store_.Commit(ids[i], progress);
  }
  runner_.Count(0, {.episodes = episodes});
}

void VectorEnv::GetEpisodes(double* returns, int32_t* lengths) {
  const CallGate::Exclusive exclusive(gate_);
  CheckFree({}, "episodes");
  for (const int32_t id : all_ids_) {
    const Progress progress = store_.progress(id);
    *returns++ = progress.episode_return;
    *lengths++ = progress.elapsed;
  }
}

void VectorEnv::Act(const Policy& policy, std::span<const int32_t> policy_ids, const double* obs,
                    const ActOutputs& out) {
  const CallGate::Exclusive exclusive(gate_);
  CheckFree({}, "act");
  Policy::Scratch scratch(policy);
  const auto size = static_cast<size_t>(policy.action_size());
  for (const int32_t id : all_ids_) {
    const auto i = static_cast<size_t>(id);
    Random random = store_.policy_random(id);
    const int network = policy_ids.empty() ? 0 : policy_ids[i];
    try {
      policy.Act(network, obs + i * static_cast<size_t>(policy.obs_size()), random, scratch);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error("environment " + std::to_string(id) + ": " + error.what());
    }
    store_.policy_random(id) = random;
    out.log_probs[i] = scratch.log_prob;
    if (policy.discrete()) {
      static_cast<int64_t*>(out.actions)[i] = scratch.index;
    } else {
      std::ranges::copy(scratch.action, static_cast<float*>(out.actions) + i * size);
      std::ranges::copy(scratch.env_action, out.env_actions + i * size);
    }
  }
}

void VectorEnv::SetTasks(std::span<const int32_t> ids, const double* tasks) {
  const CallGate::Exclusive exclusive(gate_);
  CheckIds(ids);
  CheckFree(ids, "reset_task");
  for (const int32_t id : ids) {
    std::copy_n(tasks, spec().task_size(), store_.row(id) + store_.layout().task().offset);
    tasks += spec().task_size();
  }
}

void VectorEnv::GetTasks(std::span<const int32_t> ids, double* tasks) {
  const CallGate::Exclusive exclusive(gate_);
  CheckIds(ids);
  for (const int32_t id : ids) {
    tasks = std::copy_n(store_.row(id) + store_.layout().task().offset, spec().task_size(), tasks);
  }
}

void VectorEnv::CheckUsable(std::span<const int32_t> ids, const char* what) {
  const CallGate::Pass pass(gate_);
  CheckIds(ids);
  CheckFree(ids, what);
}

RowField VectorEnv::AddField(const std::string& name) {
  const CallGate::Exclusive exclusive(gate_);
  if (const RowField* known = store_.layout().Find(name)) return *known;
  CheckFree({}, "set_model_field");
  const RowLayout layout = store_.layout().With(runner_.environment(0).DescribeField(name));
  RowField added = layout.added().back();
  runner_.Prepare(layout);
  EnvStore::Rows rows = store_.RoomFor(layout);
  FirstTouch([&](int32_t id) { store_.Widen(id, rows); });
  // from here on nothing can fail
  runner_.Adopt(layout);
  store_.Adopt(std::move(rows));
  MakeGroupings();
  state_bytes_.store(store_.state_bytes());
  return added;
}

RowField VectorEnv::DescribeField(const std::string& name) {
  const CallGate::Exclusive exclusive(gate_);
  if (const RowField* known = store_.layout().Find(name)) return *known;
  return runner_.environment(0).DescribeField(name);
}

void VectorEnv::SetField(const RowField& field, std::span<const int32_t> ids,
                         const double* values) {
  const CallGate::Exclusive exclusive(gate_);
  CheckIds(ids);
  CheckFree(ids, "set_model_field");
  for (const int32_t id : ids) {
    std::copy_n(values, field.size(), store_.row(id) + field.offset);
    values += field.size();
  }
}

std::vector<double> VectorEnv::GetField(const std::string& name) {
  const CallGate::Exclusive exclusive(gate_);
  const RowField* added = store_.layout().Find(name);
  std::vector<double> defaults;
  if (added == nullptr) defaults = runner_.environment(0).DescribeField(name).defaults;
  std::vector<double> values;
  for (int32_t id = 0; id < num_envs(); ++id) {
    const double* from = added != nullptr ? store_.row(id) + added->offset : defaults.data();
    const size_t size = added != nullptr ? added->size() : defaults.size();
    values.insert(values.end(), from, from + size);
  }
  return values;
}

VectorEnv::RowCopy VectorEnv::CopyRow(int32_t id) {
  const CallGate::Exclusive exclusive(gate_);
  const int32_t ids[] = {id};
  CheckIds(ids);
  CheckFree(ids, "render");
  const double* row = store_.row(id);
  return {{row, row + store_.layout().size()}, store_.layout().added()};
}

std::array<uint64_t, 6> VectorEnv::RandomState(int32_t id) {
  const CallGate::Exclusive exclusive(gate_);
  const int32_t ids[] = {id};
  CheckIds(ids);
  CheckFree(ids, "np_random");
  return store_.progress(id).random.state_words();
}

void VectorEnv::SetRandomState(int32_t id, const std::array<uint64_t, 6>& words) {
  const CallGate::Exclusive exclusive(gate_);
  const int32_t ids[] = {id};
  CheckIds(ids);
  CheckFree(ids, "np_random");
  Progress progress = store_.progress(id);
  progress.random = Random::FromWords(words);
  store_.Commit(id, progress);
}

}  // namespace pyfastenv
