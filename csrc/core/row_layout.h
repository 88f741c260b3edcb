// Where everything stands in an environment's row: an immutable value.
//
// Row: [state | cache | task | fields | memory]. `state` and `cache` are the environment's own;
// `task` (parameters of a meta-RL task) and `fields` (per-environment values of model fields)
// belong to callers, who may write them between steps; `memory` holds numbers that a task keeps
// from step to step.
//
// A layout never changes. Adding a field makes a new one, in which everything before `memory` stays
// where it was; whoever holds the old one replaces it whole, at a moment when nobody reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pyfastenv {

/// A model field of which every row has its own values.
struct RowField {
  std::string name;
  std::vector<int> shape;
  std::vector<double> defaults;  // the model's values, flat
  int offset = 0;                // in the row; RowLayout::With sets it, for good

  size_t size() const { return defaults.size(); }
};

class RowLayout {
 public:
  struct Section {
    int offset = 0;
    int size = 0;

    int end() const { return offset + size; }
  };

  RowLayout() = default;
  /// Sizes in doubles.
  RowLayout(int state_size, int cache_size, int task_size, int memory_size = 0)
      : state_size_(state_size),
        cache_size_(cache_size),
        task_size_(task_size),
        memory_size_(memory_size) {}

  Section state() const { return {0, state_size_}; }
  Section cache() const { return {state().end(), cache_size_}; }
  Section task() const { return {cache().end(), task_size_}; }
  Section fields() const { return {task().end(), fields_size_}; }
  Section memory() const { return {fields().end(), memory_size_}; }
  /// Doubles in a row.
  int size() const { return memory().end(); }

  /// The fields added, in their order in the row.
  const std::vector<RowField>& added() const { return added_; }
  /// Null if it has not been added.
  const RowField* Find(const std::string& name) const {
    for (const RowField& field : added_) {
      if (field.name == name) return &field;
    }
    return nullptr;
  }

  /// This layout with one field more. `field.offset` is ignored.
  RowLayout With(RowField field) const {
    RowLayout wider = *this;
    field.offset = fields().end();
    wider.fields_size_ += static_cast<int>(field.size());
    wider.added_.push_back(std::move(field));
    return wider;
  }

  /// A hash of all sizes and of the fields' names: rows of equal versions can be exchanged.
  uint64_t version() const {
    uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
    const auto add = [&hash](uint64_t value) { hash = (hash ^ value) * 0x100000001b3ULL; };
    for (const int size : {state_size_, cache_size_, task_size_, memory_size_}) {
      add(static_cast<uint64_t>(size));
    }
    for (const RowField& field : added_) {
      add(field.size());
      for (const char c : field.name) add(static_cast<uint8_t>(c));
    }
    return hash;
  }

 private:
  int state_size_ = 0;
  int cache_size_ = 0;
  int task_size_ = 0;
  int fields_size_ = 0;
  int memory_size_ = 0;
  std::vector<RowField> added_;
};

}  // namespace pyfastenv
