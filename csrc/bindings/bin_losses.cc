// Functions _core.least_of_bins and _core.bin_cross_entropy: what FlashSAC's critics learn from,
// and what its policy does.
#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/numpy_interop.h"
#include "learn/bin_kernels.h"

namespace pyfastenv {

namespace {

// Logits of two critics for each of K seeds, (K, 2, rows, bins)
InputArray ReadLogits(const py::object& object, const char* name, int64_t count) {
  return ReadFloat32(object, name, {kAnySize, 2, kAnySize, count},
                     [count] { return "(seeds, 2, rows, " + std::to_string(count) + ") float32"; });
}

InputArray ReadBins(const py::object& object) {
  InputArray bins = ReadFloat32(object, "bins", {kAnySize});
  if (bins.shape[0] < 2) throw BadValue("bins: expected at least two, got ", Describe(bins.array));
  return bins;
}

Bins ToBins(const InputArray& array) { return {Floats(array), static_cast<int>(array.shape[0])}; }

py::tuple LeastOfBins(const py::object& logits, const py::object& bins, float slope) {
  const InputArray bin_array = ReadBins(bins);
  const InputArray input = ReadLogits(logits, "logits", bin_array.shape[0]);
  const int64_t seeds = input.shape[0];
  const int64_t rows = input.shape[2];
  const NewArray least = MakeArray({seeds, rows}, ArrayType::kFloat32);
  const NewArray gradient = MakeArray(input.shape, ArrayType::kFloat32);
  const Bins values = ToBins(bin_array);
  std::vector<float> memory(BinMemory(values.count));
  WithoutGil([&] {
    for (int64_t k = 0; k < seeds; ++k) {
      const int64_t at = k * 2 * rows * values.count;
      BestBinKernels().least(Floats(input) + at, static_cast<int>(rows), values, slope,
                             memory.data(), static_cast<float*>(least.data) + k * rows,
                             static_cast<float*>(gradient.data) + at);
    }
  });
  return py::make_tuple(least.array, gradient.array);
}

py::tuple BinCrossEntropy(const py::object& found, const py::object& target,
                          const py::object& rewards, const py::object& discounts,
                          const py::object& bonus, const py::object& bins) {
  const InputArray bin_array = ReadBins(bins);
  const int64_t count = bin_array.shape[0];
  const InputArray found_array = ReadLogits(found, "found", count);
  const int64_t seeds = found_array.shape[0];
  const int64_t both = found_array.shape[2];
  if (both % 2 != 0 || both == 0) {
    throw BadValue("found: expected both ends of one or more transitions, got ",
                   Describe(found_array.array));
  }
  const InputArray target_array = ReadFloat32(target, "target", found_array.shape);
  const int64_t rows = both / 2;
  const auto column = [&](const py::object& object, const char* name) {
    return ReadFloat32(object, name, {seeds, rows});
  };
  const InputArray reward_array = column(rewards, "rewards");
  const InputArray discount_array = column(discounts, "discounts");
  const InputArray bonus_array = column(bonus, "bonus");
  const NewArray losses = MakeArray({seeds}, ArrayType::kFloat32);
  const NewArray gradient = MakeZeros(found_array.shape, ArrayType::kFloat32);
  const Bins values = ToBins(bin_array);
  std::vector<float> memory(BinMemory(values.count));
  WithoutGil([&] {
    for (int64_t k = 0; k < seeds; ++k) {
      const int64_t at = k * 2 * both * count;
      const BinRows transitions{
          static_cast<int>(rows),          both * count,
          Floats(found_array) + at,        Floats(target_array) + at + rows * count,
          Floats(reward_array) + k * rows, Floats(discount_array) + k * rows,
          Floats(bonus_array) + k * rows};
      static_cast<float*>(losses.data)[k] = static_cast<float>(BestBinKernels().cross_entropy(
          transitions, values, memory.data(), static_cast<float*>(gradient.data) + at));
    }
  });
  return py::make_tuple(losses.array, gradient.array);
}

}  // namespace

void BindBinLosses(py::module_& m) {
  m.def("least_of_bins", &LeastOfBins, py::arg("logits"), py::arg("bins"), py::arg("slope"),
        "The smaller mean (K, B) of two critics' distributions over bins, of logits (K, 2, B, N), "
        "and slope times its gradient by them.");
  m.def("bin_cross_entropy", &BinCrossEntropy, py::arg("found"), py::arg("target"),
        py::arg("rewards"), py::arg("discounts"), py::arg("bonus"), py::arg("bins"),
        "Losses (K,) of critics and their gradient by found; logits (K, 2, 2 B, N) of both ends of "
        "B transitions: of the critics those where they begin count, of their targets where they "
        "end.");
}

}  // namespace pyfastenv
