// Straight-line programs: random expressions, compiled, against the same operations one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "lanes/program/arrays.h"
#include "lanes/program/code.h"
#include "lanes/program/compiler.h"
#include "lanes/program/graph.h"
#include "support.h"

namespace pyfastenv::lanes {
namespace {

constexpr int kInputs = 40;
constexpr int kOperations = 600;
constexpr int kMaxSpills = 1000;

int InputArray() { return static_cast<int>(ProgramArray::qpos); }
int OutputArray() { return static_cast<int>(ProgramArray::acc); }

// A block with inputs, outputs and spills, all of `width` doubles.
struct Block {
  explicit Block(int width)
      : width(width),
        outputs(static_cast<size_t>(kInputs * width)),
        spills(outputs + static_cast<size_t>(kOperations * width)),
        memory(spills + static_cast<size_t>(kMaxSpills * width) + 8) {
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    begin = memory.data() + (64 - address % 64) % 64 / sizeof(double);
  }
  std::vector<size_t> Offsets() const {
    std::vector<size_t> offsets(static_cast<size_t>(ProgramArray::kCount));
    offsets[static_cast<size_t>(OutputArray())] = outputs * sizeof(double);
    offsets[static_cast<size_t>(ProgramArray::spill)] = spills * sizeof(double);
    return offsets;
  }

  int width;
  size_t outputs, spills;
  std::vector<double> memory;
  double* begin;
};

double Evaluate(const Graph& graph, int index, const std::vector<double>& values,
                const Block& block, int lane) {
  const Node& node = graph[index];
  const double a = node.a >= 0 && node.op != Op::kInput ? values[static_cast<size_t>(node.a)] : 0;
  const double b = node.b >= 0 ? values[static_cast<size_t>(node.b)] : 0;
  const auto bits = [](double x) { return std::bit_cast<uint64_t>(x); };
  switch (node.op) {
    case Op::kConstant:
      return node.constant;
    case Op::kInput:
      return block.begin[Slot::Unpack(node.a).element * block.width + lane];
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
    case Op::kTimesPositive:
      return a * b;
    case Op::kDiv:
      return a / b;
    case Op::kMin:
      return a < b ? a : b;
    case Op::kMax:
      return a > b ? a : b;
    case Op::kLess:
      return std::bit_cast<double>(a < b ? ~uint64_t{0} : 0);
    case Op::kWhere:
      return std::bit_cast<double>(bits(a) & bits(b));
    case Op::kWhereNot:
      return std::bit_cast<double>(~bits(a) & bits(b));
    case Op::kJoin:
      return std::bit_cast<double>(bits(a) | bits(b));
    case Op::kNeg:
      return -a;
    case Op::kAbs:
      return std::abs(a);
    case Op::kSqrt:
      return std::sqrt(a);
    case Op::kPlusZero:
      return a + 0.0;
    case Op::kUnitScale:
      return std::abs(a - 1) > 1e-15 ? 1 / a : 1.0;
  }
  return 0;
}

class RandomPrograms : public testing::TestWithParam<int> {};

TEST_P(RandomPrograms, AreTheOperationsOneByOne) {
  const int width = GetParam();
  if (KernelsOfWidth(width) == nullptr) GTEST_SKIP() << "not on this processor";
  std::mt19937 random(static_cast<unsigned>(width));
  std::uniform_real_distribution<double> uniform(-2, 2);
  for (int trial = 0; trial < 50; ++trial) {
    Recording recording;
    Graph& graph = recording.graph;
    std::vector<int> nodes;
    for (int i = 0; i < kInputs; ++i) nodes.push_back(graph.Input(Slot{InputArray(), i}.Packed()));
    for (const double x : {0.0, 1.0, -1.0, 0.3, 1e-200}) nodes.push_back(graph.Constant(x));
    // operands from near (chains) and from far (spills)
    const auto pick = [&] {
      const size_t range = random() % 2 == 0 ? std::min<size_t>(nodes.size(), 5) : nodes.size();
      return nodes[nodes.size() - 1 - random() % range];
    };
    constexpr Op kOps[] = {Op::kAdd, Op::kSub, Op::kMul,  Op::kDiv,      Op::kMin,      Op::kMax,
                           Op::kNeg, Op::kAbs, Op::kSqrt, Op::kPlusZero, Op::kUnitScale};
    for (int i = 0; i < kOperations; ++i) {
      const size_t k = random() % (std::size(kOps) + 1);
      if (k == std::size(kOps)) {
        nodes.push_back(graph.WhereLess(pick(), pick(), pick(), pick()));
      } else {
        const bool binary = kOps[k] <= Op::kMax;
        nodes.push_back(binary ? graph.Binary(kOps[k], pick(), pick())
                               : graph.Unary(kOps[k], pick()));
      }
      if (random() % 8 == 0) recording.outputs.push_back({nodes.back(), {OutputArray(), i}});
    }
    Block block(width);
    for (int i = 0; i < kInputs * width; ++i) {
      // lengths near one too
      block.begin[i] = random() % 3 == 0 ? 1 + 1e-15 * uniform(random) : uniform(random);
    }
    const CompiledCode compiled = Compile(recording, width, block.Offsets());
    ASSERT_LT(compiled.num_spills, kMaxSpills);
    EXPECT_GT(compiled.num_spills, 0);
    const Code code(compiled.bytes);
    ASSERT_NE(code.entry(), nullptr);
    reinterpret_cast<Program>(code.entry())(block.begin);
    for (int lane = 0; lane < width; ++lane) {
      std::vector<double> values;
      for (int node = 0; node < graph.size(); ++node) {
        values.push_back(Evaluate(graph, node, values, block, lane));
      }
      for (const Output& output : recording.outputs) {
        const double expected = values[static_cast<size_t>(output.node)];
        const double got =
            block.begin[block.outputs + static_cast<size_t>(output.slot.element * width + lane)];
        ASSERT_TRUE(std::memcmp(&got, &expected, sizeof(got)) == 0 ||
                    (std::isnan(got) && std::isnan(expected)))
            << "trial " << trial << ", output " << output.slot.element << " in lane " << lane
            << ": expected " << expected << ", got " << got;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, RandomPrograms, testing::Values(8, 4));

TEST(Graph, LeavesOutExactZerosAndOnes) {
  Graph graph;
  const int x = graph.Input(0), y = graph.Input(1);
  const int zero = graph.Constant(0), one = graph.Constant(1);
  EXPECT_EQ(graph.Binary(Op::kAdd, x, zero), x);
  EXPECT_EQ(graph.Binary(Op::kMul, x, zero), zero);
  EXPECT_EQ(graph.Binary(Op::kMul, one, x), x);
  EXPECT_EQ(graph.Binary(Op::kSub, x, x), zero);
  EXPECT_EQ(graph.Binary(Op::kAdd, x, graph.Unary(Op::kNeg, y)), graph.Binary(Op::kSub, x, y));
  EXPECT_EQ(graph.Binary(Op::kMul, x, y), graph.Binary(Op::kMul, y, x));
  EXPECT_NE(graph.Unary(Op::kPlusZero, x), x);
  EXPECT_EQ(graph.WhereLess(x, y, x, x), x);
  EXPECT_EQ(graph.WhereLess(zero, one, x, y), x);
  EXPECT_EQ(graph.WhereLess(one, zero, x, y), y);
  EXPECT_EQ(graph.Binary(Op::kAdd, graph.Constant(0.1), graph.Constant(0.2)),
            graph.Constant(0.1 + 0.2));
}

// Numbers at which signs of zeros are decided, and what operations on them give one by one, beside
// what is left of them in a graph.
TEST(ExactGraph, KeepsTheSignsOfZeros) {
  constexpr int kFew = 6, kSamples = 32;
  constexpr double kNumbers[] = {0.0, -0.0, 1.0, -1.0, 0.5, 3.0};
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    Graph graph(/*exact=*/true);
    Block block(kSamples);
    struct Value {
      int node;
      std::vector<double> truth;  // (kSamples)
    };
    std::vector<Value> values;
    for (int i = 0; i < kFew; ++i) {
      values.push_back({graph.Input(Slot{InputArray(), i}.Packed()), {}});
      for (int k = 0; k < kSamples; ++k) {
        const double x = kNumbers[random() % std::size(kNumbers)];
        block.begin[i * kSamples + k] = x;
        values.back().truth.push_back(x);
      }
    }
    for (const double x : kNumbers) {
      values.push_back({graph.Constant(x), std::vector<double>(kSamples, x)});
    }
    constexpr Op kOps[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kMin,
                           Op::kMax, Op::kNeg, Op::kAbs, Op::kPlusZero};
    for (int operation = 0; operation < 60; ++operation) {
      const auto pick = [&] { return values[random() % values.size()]; };
      const Value a = pick(), b = pick(), x = pick(), y = pick();
      const size_t which = random() % (std::size(kOps) + 1);
      Value made{0, {}};
      for (size_t k = 0; k < kSamples; ++k) {
        const double p = a.truth[k], q = b.truth[k];
        const double results[] = {p + q,         p - q,         p * q,
                                  p < q ? p : q, p > q ? p : q, -p,
                                  std::abs(p),   p + 0.0,       p < q ? x.truth[k] : y.truth[k]};
        made.truth.push_back(results[which]);
      }
      if (which == std::size(kOps)) {
        made.node = graph.WhereLess(a.node, b.node, x.node, y.node);
      } else {
        made.node = kOps[which] <= Op::kMax ? graph.Binary(kOps[which], a.node, b.node)
                                            : graph.Unary(kOps[which], a.node);
      }
      const auto large = [](double r) { return std::abs(r) > 1e20; };
      if (!std::any_of(made.truth.begin(), made.truth.end(), large)) values.push_back(made);
    }
    for (int k = 0; k < kSamples; ++k) {
      std::vector<double> got;
      for (int node = 0; node < graph.size(); ++node) {
        got.push_back(Evaluate(graph, node, got, block, k));
      }
      for (const Value& value : values) {
        const double mine = got[static_cast<size_t>(value.node)];
        const double truth = value.truth[static_cast<size_t>(k)];
        ASSERT_EQ(std::memcmp(&mine, &truth, sizeof(mine)), 0)
            << "trial " << trial << ": expected " << truth << ", got " << mine;
      }
    }
  }
}

TEST(ExactGraph, LeavesOutWhatChangesNoBit) {
  Graph graph(/*exact=*/true);
  const int x = graph.Input(0), zero = graph.Constant(0), square = graph.Binary(Op::kMul, x, x);
  const int vanishing = graph.Binary(Op::kMul, x, zero);
  EXPECT_NE(vanishing, zero);
  EXPECT_EQ(graph.Binary(Op::kAdd, square, vanishing), square);
  EXPECT_NE(graph.Binary(Op::kAdd, x, zero), x);
  EXPECT_EQ(graph.Binary(Op::kSub, x, zero), x);
  EXPECT_NE(graph.Constant(-0.0), zero);
}

}  // namespace
}  // namespace pyfastenv::lanes
