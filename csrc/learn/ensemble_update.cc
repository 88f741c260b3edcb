#include "learn/ensemble_update.h"

#include <algorithm>
#include <utility>

#include "learn/array_size.h"
#include "learn/bf16_network.h"
#include "learn/f32_network.h"

namespace pyfastenv {

// One thread's memory, and what it does with a network at a time.
class EnsembleUpdate::Worker {
 public:
  virtual ~Worker() = default;

  /// Minibatches of a network's samples in an order.
  virtual void Train(int network, const float* samples, const int64_t* order, int64_t count,
                     int64_t step, const EnsembleHyper& hyper, const AdamVectors& vectors) = 0;
  virtual float Error(int network, const float* samples, int64_t n, const float* parameters) = 0;
};

// In Bf16Network or F32Network.
template <class Network>
class EnsembleUpdate::WorkerIn : public EnsembleUpdate::Worker {
 public:
  WorkerIn(EnsembleUpdate& o, Network n)
      : owner(o),
        network_(std::move(n)),
        packed(network_, o.layers_, PassUse::kBackward),
        pass(network_, o.layers_, Activation::kSilu, o.options_.batch_size),
        targets(ArraySize(o.options_.batch_size, num_targets)),
        by_outputs(ArraySize(o.options_.batch_size, num_outputs)),
        by_high(static_cast<size_t>(num_targets)),
        by_low(by_high) {}

  void Train(int network, const float* samples, const int64_t* order, int64_t count, int64_t step,
             const EnsembleHyper& hyper, const AdamVectors& vectors) override;
  float Error(int network, const float* samples, int64_t n, const float* parameters) override;

 private:
  EnsembleUpdate& owner;
  const int num_inputs = owner.options_.num_inputs;
  const int num_targets = owner.options_.num_targets;
  const int num_outputs = 2 * num_targets;
  const ptrdiff_t width = num_inputs + num_targets;

  Network network_;
  typename Network::Parameters packed;
  typename Network::Pass pass;
  std::vector<float> targets, by_outputs;  // of a minibatch
  std::vector<float> by_high, by_low;
};

EnsembleUpdate::EnsembleUpdate(const EnsembleOptions& options)
    : options_(options),
      kernels_(BestGaussianKernels()),
      train_(BestTrainKernels()),
      parallel_(std::clamp(options.num_threads, 1, options.num_networks)) {
  std::vector<int> sizes = {options.num_inputs};
  sizes.insert(sizes.end(), options.hidden_sizes.begin(), options.hidden_sizes.end());
  sizes.push_back(2 * options.num_targets);
  const int num_networks = options.num_networks;
  layers_ = options.bfloat16 ? Bf16Network::MakeLayers(sizes, num_networks)
                             : F32Network::MakeLayers(sizes, num_networks);
  bounds_ = FlatSize(layers_, num_networks);
  for (int i = 0; i < parallel_.num_threads(); ++i) {
    if (options.bfloat16) {
      workers_.push_back(std::make_unique<WorkerIn<Bf16Network>>(*this, Bf16Network()));
    } else {
      workers_.push_back(std::make_unique<WorkerIn<F32Network>>(*this, F32Network(1)));
    }
  }
}

EnsembleUpdate::~EnsembleUpdate() = default;

size_t EnsembleUpdate::num_parameters() const {
  return bounds_ + 2 * ArraySize(options_.num_networks, options_.num_targets);
}

void EnsembleUpdate::RunEpoch(const float* samples, int64_t n, const int64_t* order, int64_t count,
                              int64_t step, const EnsembleHyper& hyper,
                              const AdamVectors& vectors) {
  const ptrdiff_t width = options_.num_inputs + options_.num_targets;
  parallel_.Run(options_.num_networks, [&](int worker, int network) {
    workers_[static_cast<size_t>(worker)]->Train(network, samples + seed_of(network) * n * width,
                                                 order + network * count, count, step, hyper,
                                                 vectors);
  });
}

void EnsembleUpdate::Errors(const float* samples, int64_t n, const float* parameters,
                            float* errors) {
  const ptrdiff_t width = options_.num_inputs + options_.num_targets;
  parallel_.Run(options_.num_networks, [&](int worker, int network) {
    errors[network] = workers_[static_cast<size_t>(worker)]->Error(
        network, samples + seed_of(network) * n * width, n, parameters);
  });
}

template <class Network>
void EnsembleUpdate::WorkerIn<Network>::Train(int network, const float* samples,
                                              const int64_t* order, int64_t count, int64_t step,
                                              const EnsembleHyper& hyper,
                                              const AdamVectors& vectors) {
  const typename Network::Section section(network_);
  const int stride = pass.output_stride();
  const auto bound_size = static_cast<size_t>(num_targets);
  const size_t high = owner.bounds_ + static_cast<size_t>(network) * bound_size;
  const size_t low = high + static_cast<size_t>(owner.options_.num_networks) * bound_size;
  const int batch_size = owner.options_.batch_size;
  for (int64_t begin = 0; begin < count; begin += batch_size) {
    const int size = static_cast<int>(std::min<int64_t>(batch_size, count - begin));
    const int rows = Padded(size, Network::kRows);
    for (int i = 0; i < size; ++i) {
      const float* sample = samples + order[begin + i] * width;
      pass.WriteInput(i, 0, sample, num_inputs);
      std::copy_n(sample + num_inputs, num_targets, targets.data() + i * num_targets);
    }
    packed.Pack(vectors.parameters, network);
    const float* outputs = pass.Forward(packed, rows);
    // the bounds are to be close together
    std::fill(by_high.begin(), by_high.end(), hyper.bound_coef);
    std::fill(by_low.begin(), by_low.end(), -hyper.bound_coef);
    owner.kernels_.likelihood(outputs, stride, targets.data(), size, num_targets,
                              vectors.parameters + low, vectors.parameters + high,
                              by_outputs.data(), by_low.data(), by_high.data());
    for (int i = 0; i < size; ++i) {
      pass.WriteOutputGradient(i, by_outputs.data() + i * num_outputs, num_outputs);
    }
    pass.ClearOutputGradient(size, rows);
    const AdamStep adam = MakeAdamStep(hyper.lr, hyper.beta1, hyper.beta2, hyper.eps, ++step);
    pass.Improve(packed, rows, network, vectors, adam, nullptr,
                 [&](size_t layer) { return hyper.decays[layer]; });
    Descend(owner.train_, adam, by_high.data(), bound_size, vectors, high);
    Descend(owner.train_, adam, by_low.data(), bound_size, vectors, low);
  }
}

template <class Network>
float EnsembleUpdate::WorkerIn<Network>::Error(int network, const float* samples, int64_t n,
                                               const float* parameters) {
  const typename Network::Section section(network_);
  packed.Pack(parameters, network);
  const int stride = pass.output_stride();
  const int batch_size = owner.options_.batch_size;
  double total = 0.0;
  for (int64_t begin = 0; begin < n; begin += batch_size) {
    const int size = static_cast<int>(std::min<int64_t>(batch_size, n - begin));
    for (int i = 0; i < size; ++i) pass.WriteInput(i, 0, samples + (begin + i) * width, num_inputs);
    const float* outputs = pass.Forward(packed, Padded(size, Network::kRows));
    for (int i = 0; i < size; ++i) {
      const float* target = samples + (begin + i) * width + num_inputs;
      float sum = 0.0F;
      for (int t = 0; t < num_targets; ++t) {
        const float error = outputs[i * stride + t] - target[t];
        sum += error * error;
      }
      total += sum;
    }
  }
  return static_cast<float>(total / static_cast<double>(n * num_targets));
}

}  // namespace pyfastenv
