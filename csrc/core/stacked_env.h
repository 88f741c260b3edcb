// An environment whose observations are its latest ones, the oldest first.
//
// They are the end of its row's memory: who keeps, moves or restores rows need not know. An episode
// begins with its first observation so many times, as gymnasium's FrameStackObservation has it.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/env.h"

namespace pyfastenv {

class StackedEnv final : public Environment {
 public:
  /// `stack` observations of `env`, at least one.
  StackedEnv(std::unique_ptr<Environment> env, int stack, SpecBuilder&& spec = {})
      : Environment(spec), env_(std::move(env)), frame_(env_->spec().obs_low.size()) {
    *spec.operator->() = env_->spec();
    spec->obs_size *= stack;
    spec->obs_low = Repeated(env_->spec().obs_low, stack);
    spec->obs_high = Repeated(env_->spec().obs_high, stack);
    frames_.resize(spec->obs_low.size());
  }

  RowLayout InitialLayout() const override {
    const RowLayout one = env_->InitialLayout();
    return {one.state().size, one.cache().size, one.task().size,
            one.memory().size + spec().obs_size};
  }
  std::vector<double> InitialRow() const override {
    std::vector<double> row = env_->InitialRow();
    row.resize(row.size() + frames_.size());
    return row;
  }
  RowField DescribeField(const std::string& name) const override {
    return env_->DescribeField(name);
  }

  void Prepare(const RowLayout& layout) override {
    env_->Prepare(layout);
    next_offset_ = layout.size() - spec().obs_size;
  }
  void Adopt() noexcept override {
    env_->Adopt();
    offset_ = next_offset_;
  }
  void Load(const double* row) override {
    env_->Load(row);
    std::copy_n(row + offset_, frames_.size(), frames_.begin());
  }
  void Save(double* row) const override {
    env_->Save(row);
    std::copy(frames_.begin(), frames_.end(), row + offset_);
  }
  void ForgetEpisodes() override { env_->ForgetEpisodes(); }

  void Reset(Random& random, std::span<const double> options, InfoRow info) override {
    env_->Reset(random, options, info);
    for (size_t begin = 0; begin < frames_.size(); begin += frame_) {
      env_->Observe(frames_.data() + begin);
    }
  }
  StepResult Step(const Action& action, Random& random, InfoRow info) override {
    const StepResult result = env_->Step(action, random, info);
    std::copy(frames_.begin() + static_cast<ptrdiff_t>(frame_), frames_.end(), frames_.begin());
    env_->Observe(frames_.data() + frames_.size() - frame_);
    return result;
  }
  void Observe(double* obs) const override { std::copy(frames_.begin(), frames_.end(), obs); }

  int group_size() const override { return env_->group_size(); }
  void PrepareSteps(std::span<ComingStep> steps) noexcept override { env_->PrepareSteps(steps); }
  EngineReport engine() const override { return env_->engine(); }

 private:
  static std::vector<double> Repeated(const std::vector<double>& values, int times) {
    std::vector<double> all;
    for (int i = 0; i < times; ++i) all.insert(all.end(), values.begin(), values.end());
    return all;
  }

  std::unique_ptr<Environment> env_;
  size_t frame_;  // numbers of one observation
  int offset_ = 0, next_offset_ = 0;
  std::vector<double> frames_;
};

}  // namespace pyfastenv
