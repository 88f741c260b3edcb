#include "bindings/results.h"

#include <algorithm>

namespace pyfastenv {

namespace {

DType ColumnDType(const InfoField& info, DType action_dtype) {
  if (info.type == InfoField::Type::kInt64) return DType::kInt64;
  if (info.type == InfoField::Type::kFloat32) return DType::kFloat32;
  const bool follows = info.type == InfoField::Type::kActionDType && action_dtype != DType::kInt64;
  return follows ? action_dtype : DType::kFloat64;
}

NewArray Column(const InfoField& info, int64_t count, DType dtype) {
  if (info.size == InfoField::kScalar) return MakeZeros({count}, ToArrayType(dtype));
  return MakeZeros({count, info.size}, ToArrayType(dtype));
}

// A bool array: which kinds have one of `bits`; null if none has.
py::object Mask(const std::vector<uint8_t>& kinds, uint8_t bits) {
  NewArray mask = MakeArray({static_cast<int64_t>(kinds.size())}, ArrayType::kBool);
  auto* values = static_cast<uint8_t*>(mask.data);
  uint8_t any = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    values[i] = (kinds[i] & bits) != 0 ? 1 : 0;
    any |= values[i];
  }
  return any != 0 ? std::move(mask.array) : py::object();
}

}  // namespace

ResultMaker::ResultMaker(const ResultShape& shape) : shape_(shape) {
  for (const auto& info : shape_.spec.infos) {
    column_names_.push_back({py::str(info.name), py::str("_" + info.name)});
  }
}

int64_t ResultMaker::ObsWidth() const {
  return shape_.obs.frames.empty() ? shape_.obs.size : static_cast<int64_t>(shape_.obs.bytes());
}

ArrayType ResultMaker::ObsType() const {
  return shape_.obs.frames.empty() ? ToArrayType(shape_.obs.dtype) : ArrayType::kUInt8;
}

NewArray ResultMaker::MakeObs(int count) const { return MakeArray({count, ObsWidth()}, ObsType()); }

// With copy=False, results are views of the next of kRingSize sets of arrays.
Results& ResultMaker::RingSlot() {
  if (ring_.empty()) {
    for (size_t i = 0; i < kRingSize; ++i) ring_.push_back(NewResults(shape_.num_envs));
  }
  ring_next_ = (ring_next_ + 1) % kRingSize;
  return ring_[ring_next_];
}

Results ResultMaker::NewResults(int count) const {
  Results results;
  const NewArray obs = MakeObs(count);
  const NewArray rewards = MakeArray({count}, ArrayType::kFloat64);
  const NewArray terminations = MakeArray({count}, ArrayType::kBool);
  const NewArray truncations = MakeArray({count}, ArrayType::kBool);
  results.obs = obs.array;
  results.rewards = rewards.array;
  results.terminations = terminations.array;
  results.truncations = truncations.array;
  results.views.obs = obs.data;
  results.views.rewards = static_cast<double*>(rewards.data);
  results.views.terminations = static_cast<uint8_t*>(terminations.data);
  results.views.truncations = static_cast<uint8_t*>(truncations.data);
  return results;
}

Results ResultMaker::Allocate(int count, DType action_dtype) {
  Results results;
  if (shape_.copy && given_.empty()) {
    results = NewResults(count);
  } else {
    results = given_.empty() ? RingSlot() : given_[given_next_++ % given_.size()];
    if (count < shape_.num_envs) {
      const py::slice head(0, count, 1);
      for (py::object* array :
           {&results.obs, &results.rewards, &results.terminations, &results.truncations}) {
        *array = (*array)[head];
      }
    }
  }
  // kinds of environments that a masked reset leaves alone stay kNoInfo
  results.kinds.assign(static_cast<size_t>(count), kNoInfo);
  results.views.kinds = results.kinds.data();
  results.action_dtype = action_dtype;
  AddInfoColumns(results, action_dtype);
  return results;
}

void ResultMaker::AddInfoColumns(Results& results, DType action_dtype) const {
  if (!shape_.infos) return;
  const auto count = static_cast<int64_t>(results.kinds.size());
  for (const auto& info : shape_.spec.infos) {
    const DType dtype = ColumnDType(info, action_dtype);
    NewArray column = Column(info, count, dtype);
    results.views.columns.push_back({column.data, dtype, info.width()});
    results.columns.push_back(std::move(column.array));
  }
}

py::tuple ResultMaker::Pack(const Results& results, const Finals& finals,
                            const std::vector<int32_t>* ids) {
  const py::dict infos = Infos(results, finals, ids);
  return py::make_tuple(results.obs, results.rewards, results.terminations, results.truncations,
                        infos);
}

void ResultMaker::AddColumns(py::dict& infos, const std::vector<py::object>& columns,
                             const std::vector<uint8_t>& kinds) const {
  const auto& fields = shape_.spec.infos;
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool always = fields[i].when == InfoField::When::kAlways;
    py::object mask = Mask(kinds, always ? kStepInfo | kResetInfo : kStepInfo);
    if (!mask) continue;
    PyDict_SetItem(infos.ptr(), column_names_[i].name.ptr(), columns[i].ptr());
    PyDict_SetItem(infos.ptr(), column_names_[i].mask.ptr(), mask.ptr());
  }
}

py::dict ResultMaker::Infos(const Results& results, const Finals& finals,
                            const std::vector<int32_t>* ids) {
  py::dict infos;
  AddColumns(infos, results.columns, results.kinds);
  if (!finals.empty()) AddFinals(infos, results, finals);
  if (py::object diverged = Mask(results.kinds, kDiverged)) {
    infos["diverged"] = diverged;
    infos["_diverged"] = Mask(results.kinds, kDiverged);
  }
  if (ids != nullptr) {
    NewArray env_id = MakeArray({static_cast<int64_t>(ids->size())}, ArrayType::kInt32);
    std::copy(ids->begin(), ids->end(), static_cast<int32_t*>(env_id.data));
    NewArray mask = MakeArray({static_cast<int64_t>(ids->size())}, ArrayType::kBool);
    std::fill_n(static_cast<uint8_t*>(mask.data), ids->size(), uint8_t{1});
    infos["env_id"] = env_id.array;
    infos["_env_id"] = mask.array;
  }
  return infos;
}

// SAME_STEP: final_obs (an object array) and final_info, gymnasium's names and shapes. Results
// whose kind has kFinal correspond to `finals` in order.
void ResultMaker::AddFinals(py::dict& infos, const Results& results, const Finals& finals) const {
  const EnvSpec& spec = shape_.spec;
  const auto count = static_cast<int64_t>(results.kinds.size());
  const py::object final_obs = MakeNones(count);
  Results final_results;  // only columns and kinds are used
  final_results.kinds.assign(results.kinds.size(), kNoInfo);
  AddInfoColumns(final_results, results.action_dtype);
  size_t next = 0;
  for (size_t i = 0; i < results.kinds.size(); ++i) {
    if ((results.kinds[i] & kFinal) == 0) continue;
    const FinalStep& final_step = *finals[next++];
    NewArray obs = MakeArray({ObsWidth()}, ObsType());
    std::copy(final_step.obs.begin(), final_step.obs.end(), static_cast<uint8_t*>(obs.data));
    final_obs[py::int_(i)] = obs.array;
    final_results.kinds[i] = final_step.kind;
    size_t offset = 0;
    for (size_t k = 0; k < final_results.columns.size(); ++k) {
      const InfoColumn& column = final_results.views.columns[k];
      const auto width = static_cast<size_t>(column.width);
      if ((final_step.kind & kStepInfo) != 0 || spec.infos[k].when == InfoField::When::kAlways) {
        StoreAs(column.dtype, final_step.info.data() + offset, column.width,
                static_cast<uint8_t*>(column.data) + i * width * ItemSize(column.dtype));
      }
      offset += width;
    }
  }
  py::dict final_info;
  AddColumns(final_info, final_results.columns, final_results.kinds);
  infos["final_obs"] = final_obs;
  infos["_final_obs"] = Mask(results.kinds, kFinal);
  infos["final_info"] = final_info;
  infos["_final_info"] = Mask(results.kinds, kFinal);
}

void ResultMaker::UseBuffers(const std::vector<std::array<py::object, 4>>& sets) {
  const int count = shape_.num_envs;
  std::vector<Results> given;
  for (const auto& [obs, rewards, terminations, truncations] : sets) {
    Results results;
    results.obs = obs;
    results.rewards = rewards;
    results.terminations = terminations;
    results.truncations = truncations;
    results.views.obs = OutputData(obs, "obs", {count, ObsWidth()}, ObsType());
    results.views.rewards =
        static_cast<double*>(OutputData(rewards, "rewards", {count}, ArrayType::kFloat64));
    const auto flags = [&](const py::object& array, const char* name) {
      return static_cast<uint8_t*>(OutputData(array, name, {count}, ArrayType::kBool));
    };
    results.views.terminations = flags(terminations, "terminations");
    results.views.truncations = flags(truncations, "truncations");
    given.push_back(std::move(results));
  }
  given_.swap(given);
  given_next_ = 0;
}

}  // namespace pyfastenv
