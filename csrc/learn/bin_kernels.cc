// One source, compiled for each vector unit: see CMakeLists.txt and nn/vector_math.h.
#include "learn/bin_kernels.h"

#include "nn/vector_math.h"

namespace pyfastenv {

namespace {

// Rows of bins, padded to whole vectors, in memory that begins with zeros.
class Rows {
 public:
  Rows(const Bins& bins, float* memory)
      : count(bins.count), size((count + kLanes - 1) / kLanes * kLanes), memory_(memory) {
    __builtin_memcpy(values(), bins.values, static_cast<size_t>(count) * sizeof(float));
  }

  float* values() const { return memory_; }  // of the bins
  float* probs(int critic) const { return memory_ + (1 + critic) * size; }
  float* wanted() const { return memory_ + 3 * size; }
  float* found() const { return memory_ + 4 * size; }

  const int count;
  const int size;

 private:
  float* memory_;
};

void Clear(float* numbers, int count) {
  __builtin_memset(numbers, 0, static_cast<size_t>(count) * sizeof(float));
}

// Probabilities, 0 beyond the last; returns the logarithm of the sum that they were divided by.
float Softmax(const float* logits, const Rows& rows, float* probs) {
  float most = logits[0];
  for (int i = 1; i < rows.count; ++i) most = most < logits[i] ? logits[i] : most;
  for (int i = 0; i < rows.count; ++i) probs[i] = logits[i] - most;
  for (int i = rows.count; i < rows.size; ++i) probs[i] = 0.0F;  // NaN, if a row before had one
  Vec sums = {};
  for (int i = 0; i < rows.size; i += kLanes) {
    const Vec value = Exp(LoadLoose(probs + i));
    StoreLoose(probs + i, value);
    sums += value;
  }
  float sum = Sum(sums);
  for (int i = rows.count; i < rows.size; ++i) {
    sum -= probs[i];
    probs[i] = 0.0F;
  }
  const float inverse = 1.0F / sum;
  for (int i = 0; i < rows.size; i += kLanes) {
    StoreLoose(probs + i, LoadLoose(probs + i) * inverse);
  }
  return most + __builtin_logf(sum);
}

float Mean(const float* probs, const Rows& rows) {
  Vec sums = {};
  for (int i = 0; i < rows.size; i += kLanes) {
    sums += LoadLoose(probs + i) * LoadLoose(rows.values() + i);
  }
  return Sum(sums);
}

// Which of two critics expects less, and what; their logits stand `stride` numbers apart.
int Careful(const float* logits, ptrdiff_t stride, const Rows& rows, float* mean) {
  float means[2];
  for (int critic = 0; critic < 2; ++critic) {
    Softmax(logits + critic * stride, rows, rows.probs(critic));
    means[critic] = Mean(rows.probs(critic), rows);
  }
  const int careful = means[1] < means[0] ? 1 : 0;
  *mean = means[careful];
  return careful;
}

void Least(const float* logits, int num_rows, const Bins& bins, float slope, float* memory,
           float* least, float* gradient) {
  const Rows rows(bins, memory);
  const ptrdiff_t stride = static_cast<ptrdiff_t>(num_rows) * bins.count;
  for (int row = 0; row < num_rows; ++row) {
    const ptrdiff_t at = static_cast<ptrdiff_t>(row) * bins.count;
    const int careful = Careful(logits + at, stride, rows, least + row);
    const float* probs = rows.probs(careful);
    float* mine = gradient + careful * stride + at;
    for (int i = 0; i < bins.count; ++i) {
      mine[i] = slope * probs[i] * (bins.values[i] - least[row]);
    }
    Clear(gradient + (1 - careful) * stride + at, bins.count);
  }
}

// A distribution over reward + discount * (bins - bonus) as one over the bins of the same mean,
// within their range.
void OntoBins(const float* probs, float reward, float discount, float bonus, const Bins& bins,
              float* wanted) {
  const float first = bins.values[0];
  const float last = bins.values[bins.count - 1];
  const float scale = static_cast<float>(bins.count - 1) / (last - first);
  Clear(wanted, bins.count);
  for (int i = 0; i < bins.count; ++i) {
    const float value = reward + discount * (bins.values[i] - bonus);
    const float within = value < first ? first : (value > last ? last : value);
    const float place = (within - first) * scale;
    // NaN has no place, and stays in its share; the last bin's place is beyond the last pair
    const int floor = place > 0.0F ? static_cast<int>(place) : 0;
    const int lower = floor < bins.count - 1 ? floor : bins.count - 2;
    const float share = place - static_cast<float>(lower);
    wanted[lower] += probs[i] * (1.0F - share);
    wanted[lower + 1] += probs[i] * share;
  }
}

double CrossEntropy(const BinRows& given, const Bins& bins, float* memory, float* by_found) {
  const Rows rows(bins, memory);
  const float weight = 0.5F / static_cast<float>(given.rows);
  const float* wanted = rows.wanted();
  const float* found = rows.found();
  double loss = 0.0;
  for (int row = 0; row < given.rows; ++row) {
    const ptrdiff_t at = static_cast<ptrdiff_t>(row) * bins.count;
    float mean = 0.0F;
    const int careful = Careful(given.target + at, given.critic_stride, rows, &mean);
    OntoBins(rows.probs(careful), given.rewards[row], given.discounts[row], given.bonus[row], bins,
             rows.wanted());
    for (int critic = 0; critic < 2; ++critic) {
      const ptrdiff_t begin = critic * given.critic_stride + at;
      const float* logits = given.found + begin;
      const float log_sum = Softmax(logits, rows, rows.found());
      float entropy = 0.0F;
      for (int i = 0; i < bins.count; ++i) {
        entropy += wanted[i] * (log_sum - logits[i]);
        by_found[begin + i] = weight * (found[i] - wanted[i]);
      }
      loss += entropy;
    }
  }
  return loss * weight;
}

}  // namespace

extern const BinKernels PYFASTENV_NAME(kBinKernels);
const BinKernels PYFASTENV_NAME(kBinKernels) = {.least = Least, .cross_entropy = CrossEntropy};

}  // namespace pyfastenv
