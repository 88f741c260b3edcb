// The layout of rows is a value, and a pool's changes whole or not at all.
#include "core/row_layout.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "counting_env.h"
#include "failing_new.h"

namespace pyfastenv {
namespace {

using namespace pyfastenv::testing;  // NOLINT

TEST(RowLayout, SectionsFollowEachOther) {
  const RowLayout layout(5, 2, 3, 4);
  EXPECT_EQ(layout.state().offset, 0);
  EXPECT_EQ(layout.cache().offset, 5);
  EXPECT_EQ(layout.task().offset, 7);
  EXPECT_EQ(layout.fields().offset, 10);
  EXPECT_EQ(layout.fields().size, 0);
  EXPECT_EQ(layout.memory().offset, 10);
  EXPECT_EQ(layout.size(), 14);
}

// what stood before the memory stays where it was, and the old value is as it was
TEST(RowLayout, WithMakesAnotherValue) {
  const RowLayout layout(5, 2, 3, 4);
  const RowLayout one = layout.With({"mass", {2}, {1.0, 2.0}});
  const RowLayout two = one.With({"gravity", {3}, {0.0, 0.0, -9.8}});
  EXPECT_EQ(layout.size(), 14);
  EXPECT_TRUE(layout.added().empty());
  EXPECT_EQ(one.Find("mass")->offset, 10);
  EXPECT_EQ(one.memory().offset, 12);
  EXPECT_EQ(one.Find("gravity"), nullptr);
  EXPECT_EQ(two.Find("mass")->offset, 10);
  EXPECT_EQ(two.Find("gravity")->offset, 12);
  EXPECT_EQ(two.memory().offset, 15);
  EXPECT_EQ(two.size(), 19);
}

TEST(RowLayout, VersionsTellLayoutsApart) {
  const RowLayout layout(5, 2, 3);
  const RowField a{"a", {1}, {0.0}};
  const RowField b{"b", {1}, {0.0}};
  EXPECT_EQ(layout.version(), RowLayout(5, 2, 3).version());
  EXPECT_NE(layout.version(), RowLayout(5, 3, 2).version());
  EXPECT_NE(layout.version(), RowLayout(5, 2, 3, 1).version());
  EXPECT_NE(layout.version(), layout.With(a).version());
  EXPECT_NE(layout.With(a).version(), layout.With(b).version());
  EXPECT_NE(layout.With(a).With(b).version(), layout.With(b).With(a).version());
  EXPECT_EQ(layout.With(a).With(b).version(), layout.With(a).With(b).version());
}

// a row's memory moves behind the new field's values
TEST(EnvStoreRows, WidenedRowsKeepEverySection) {
  class WithMemory final : public CountingEnv {
   public:
    RowLayout InitialLayout() const override { return {1, 1, 1, 2}; }
    std::vector<double> InitialRow() const override { return {1, 2, 3, 4, 5}; }
    RowField DescribeField(const std::string& name) const override { return {name, {1}, {0.5}}; }
  };
  const WithMemory env;
  EnvStore store(2, env, ObsLayout{});
  for (const int32_t id : {0, 1}) store.Initialize(id);
  store.row(1)[4] = 9.0;
  for (const char* name : {"a", "b"}) {
    EnvStore::Rows wider = store.RoomFor(store.layout().With(env.DescribeField(name)));
    for (int32_t id = 0; id < store.num_envs(); ++id) store.Widen(id, wider);
    store.Adopt(std::move(wider));
  }
  EXPECT_EQ(std::vector<double>(store.row(0), store.row(0) + 7),
            (std::vector<double>{1, 2, 3, 0.5, 0.5, 4, 5}));
  EXPECT_EQ(std::vector<double>(store.row(1), store.row(1) + 7),
            (std::vector<double>{1, 2, 3, 0.5, 0.5, 4, 9}));
}

// AddField with memory running out at its first, second, … allocation: until one attempt succeeds,
// rows, layout, snapshots and the steps that follow are those of a pool that was never asked
TEST(AddField, ChangesNothingWhenMemoryRunsOut) {
  constexpr int kNumEnvs = 5;
  Started twin(MakeOptions(kNumEnvs, 3));
  Started runner(MakeOptions(kNumEnvs, 3));
  const std::string name = "gain";
  const size_t bytes = runner.env.state_bytes();
  auto state = runner.State();
  auto row = runner.Row(2);
  int t = 0;
  const int failures =
      WithEverMoreMemory([&] { runner.env.AddField(name); },
                         [&] {
                           EXPECT_EQ(runner.env.state_bytes(), bytes);
                           EXPECT_EQ(runner.State(), state);
                           EXPECT_EQ(runner.Row(2), row);
                           EXPECT_TRUE(runner.env.CopyRow(2).fields.empty());
                           EXPECT_TRUE(Continue(runner, t, t + 2) == Continue(twin, t, t + 2));
                           t += 2;
                           state = runner.State();
                           row = runner.Row(2);
                         });
  EXPECT_GT(failures, 5);
  EXPECT_LT(failures, 1000);
  EXPECT_EQ(runner.env.CopyRow(2).fields.size(), 1U);
  EXPECT_TRUE(Continue(runner, 100, 120) == Continue(twin, 100, 120));
}

// the same when a worker's environment cannot get ready, whichever it is
TEST(AddField, ChangesNothingWhenAWorkerCannotPrepare) {
  static int prepares_left = -1;
  class Reluctant final : public CountingEnv {
   public:
    void Prepare(const RowLayout& layout) override {
      CountingEnv::Prepare(layout);
      if (prepares_left == 0) throw std::runtime_error("cannot prepare");
      if (prepares_left > 0) --prepares_left;
    }
  };
  constexpr int kThreads = 4;
  VectorEnv env([] { return std::make_unique<Reluctant>(); }, MakeOptions(6, kThreads));
  Started twin(MakeOptions(6, 1));
  env.SetState(twin.all, twin.State());
  Results out(6);
  for (int worker = 0; worker < kThreads; ++worker) {
    prepares_left = worker;
    EXPECT_THROW(env.AddField("gain"), std::runtime_error);
    prepares_left = -1;
    EXPECT_EQ(env.state_bytes(), twin.env.state_bytes());
    for (int t = 10 * worker; t < 10 * worker + 10; ++t) {
      const auto actions = ActionsOf(t, twin.all);
      env.Step({actions.data(), DType::kFloat32, sizeof(float)}, out.Views(), Never);
      twin.Step(actions);
      ASSERT_EQ(out.obs, twin.out.obs);
      ASSERT_EQ(out.terms, twin.out.terms);
    }
  }
  EXPECT_EQ(env.AddField("gain").offset, static_cast<int>(twin.Row(0).size()));
}

// the size of a snapshot is checked where it cannot change
TEST(State, AsksAgainWhenAFieldWasAddedMeanwhile) {
  Started runner(MakeOptions(2, 1));
  std::vector<uint8_t> states(2 * runner.env.state_bytes(), 7);
  runner.env.AddField("gain");
  EXPECT_FALSE(runner.env.GetState(runner.all, states));
  EXPECT_EQ(states, std::vector<uint8_t>(states.size(), 7));
  states.resize(2 * runner.env.state_bytes());
  EXPECT_TRUE(runner.env.GetState(runner.all, states));
  states.pop_back();
  ExpectUsageError(Code::kValue, "bytes for each of 2 environments",
                   [&] { runner.env.SetState(runner.all, states); });
}

}  // namespace
}  // namespace pyfastenv
