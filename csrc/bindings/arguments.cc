#include "bindings/arguments.h"

#include <algorithm>
#include <numeric>

namespace pyfastenv {

namespace {

using Code = UsageError::Code;

// an int as little-endian 32-bit words, without leading zeros
std::vector<uint32_t> SeedWords(const py::object& seed) {
  const unsigned long long small = PyLong_AsUnsignedLongLong(seed.ptr());  // NOLINT
  if (PyErr_Occurred() == nullptr) {
    std::vector<uint32_t> words = {static_cast<uint32_t>(small)};
    if ((small >> 32) != 0) words.push_back(static_cast<uint32_t>(small >> 32));
    return words;
  }
  PyErr_Clear();
  const auto num_words = (seed.attr("bit_length")().cast<size_t>() + 31) / 32;
  const auto bytes = seed.attr("to_bytes")(num_words * 4, "little").cast<std::string>();
  std::vector<uint32_t> words(num_words);
  for (size_t i = 0; i < bytes.size(); ++i) {
    words[i / 4] |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (8 * (i % 4));
  }
  return words;
}

}  // namespace

std::vector<int32_t> ReadIds(const py::object& env_ids, int num_envs) {
  if (env_ids.is_none()) {
    std::vector<int32_t> all(static_cast<size_t>(num_envs));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const InputArray input =
      ReadIntegers(env_ids, "env_ids", [] { return std::string("a vector of integers"); });
  if (input.shape.size() != 1) {
    throw BadValue("env_ids: expected a vector, got shape ", Describe(input.shape));
  }
  if (input.shape[0] == 0) throw BadValue("env_ids: expected at least one id");
  const auto* ids = static_cast<const int64_t*>(input.data);
  std::vector<int32_t> result;
  result.reserve(static_cast<size_t>(input.shape[0]));
  for (int64_t i = 0; i < input.shape[0]; ++i) {
    if (ids[i] < 0 || ids[i] >= num_envs) {
      throw UsageError(Code::kIndex, "env_ids: expected ids from 0 to ", num_envs - 1, ", got ",
                       ids[i]);
    }
    result.push_back(static_cast<int32_t>(ids[i]));
  }
  return result;
}

std::vector<int32_t> ReadMask(const py::object& mask, int num_envs) {
  const auto* values = static_cast<const uint8_t*>(mask.cast<py::buffer>().request().ptr);
  std::vector<int32_t> ids;
  for (int i = 0; i < num_envs; ++i) {
    if (values[i] != 0) ids.push_back(i);
  }
  return ids;
}

std::vector<std::vector<uint32_t>> ReadSeeds(const py::object& seeds,
                                             const std::vector<int32_t>& ids) {
  std::vector<std::vector<uint32_t>> entropy;
  if (seeds.is_none()) return entropy;
  const py::sequence sequence = seeds;
  entropy.resize(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const py::object seed = sequence[static_cast<size_t>(ids[i])];
    if (!seed.is_none()) entropy[i] = SeedWords(seed);
  }
  return entropy;
}

void CheckFinite(const InputArray& input, const char* name, const std::vector<int32_t>* ids) {
  const int64_t count = NumElements(input.shape);
  if (AllFinite(input, 0, count)) return;
  const int64_t rows = input.shape.empty() ? 1 : input.shape[0];
  std::vector<int32_t> bad;
  for (int64_t i = 0; i < rows; ++i) {
    if (!AllFinite(input, i * (count / rows), count / rows)) {
      bad.push_back(ids != nullptr ? (*ids)[static_cast<size_t>(i)] : static_cast<int32_t>(i));
    }
  }
  throw BadValue(name, ": expected finite numbers, got NaN or infinity for ",
                 NameEnvironments(bad));
}

InputArray ReadActions(py::handle actions, const EnvSpec& spec, int count,
                       const std::vector<int32_t>* ids) {
  const bool discrete = spec.num_actions > 0;
  std::vector<int64_t> shape = {count};
  if (!discrete) shape.push_back(spec.action_size());
  const char* dtype = spec.action_dtype == DType::kFloat32 ? " float32" : " float64";
  const auto expected = [&] { return Describe(shape) + (discrete ? " int64" : dtype); };
  InputArray input = discrete ? ReadIntegers(actions, "actions", expected)
                              : ReadActionValues(actions, "actions", expected);
  if (input.shape != shape) {  // a single number is no batch at all
    throw UsageError(input.shape.empty() ? Code::kType : Code::kValue,
                     "actions: expected " + expected() + ", got " + Describe(input.given));
  }
  if (discrete) {
    const auto* values = static_cast<const int64_t*>(input.data);
    const auto bad = [&](int64_t a) { return a < 0 || a >= spec.num_actions; };
    if (std::any_of(values, values + count, bad)) {
      std::vector<int32_t> bad_ids;
      for (int i = 0; i < count; ++i) {
        if (bad(values[i])) {
          bad_ids.push_back(ids != nullptr ? (*ids)[static_cast<size_t>(i)] : i);
        }
      }
      throw BadValue("actions: expected 0 to ", spec.num_actions - 1, ", got others for ",
                     NameEnvironments(bad_ids));
    }
  } else {
    CheckFinite(input, "actions", ids);
  }
  return input;
}

ActionViews ActionsOf(const InputArray& input, const EnvSpec& spec) {
  const size_t item = ItemSize(input.dtype);
  return {input.data, input.dtype, item * static_cast<size_t>(spec.action_size())};
}

}  // namespace pyfastenv
