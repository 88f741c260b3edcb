#include "learn/ensemble_update.h"

#include <algorithm>
#include <cstring>

#include "learn/array_size.h"

namespace pyfastenv {

struct EnsembleUpdate::Worker {
  Bf16Parameters parameters;
  Bf16Pass pass;
  std::vector<float> targets;  // of a minibatch
  std::vector<float> by_high, by_low;
};

EnsembleUpdate::EnsembleUpdate(const EnsembleOptions& options)
    : options_(options),
      kernels_(*BestBf16Kernels()),
      train_(BestTrainKernels()),
      parallel_(std::clamp(options.num_threads, 1, options.num_networks)) {
  std::vector<int> sizes = {options.num_inputs};
  sizes.insert(sizes.end(), options.hidden_sizes.begin(), options.hidden_sizes.end());
  sizes.push_back(2 * options.num_targets);
  layers_ = MakeBf16Layers(sizes, options.num_networks);
  bounds_ = FlatSize(layers_, options.num_networks);
  const auto num_targets = static_cast<size_t>(options.num_targets);
  for (int i = 0; i < parallel_.num_threads(); ++i) {
    workers_.push_back(std::make_unique<Worker>(
        Worker{Bf16Parameters(layers_, Bf16Parameters::Use::kBackward),
               Bf16Pass(kernels_, train_, layers_, Activation::kSilu, options.batch_size),
               std::vector<float>(static_cast<size_t>(options.batch_size) * num_targets),
               std::vector<float>(num_targets), std::vector<float>(num_targets)}));
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
  ForEachNetwork([&](Worker& worker, int network) {
    TrainNetwork(worker, network, samples + seed_of(network) * n * width, order + network * count,
                 count, step, hyper, vectors);
  });
}

void EnsembleUpdate::TrainNetwork(Worker& worker, int network, const float* samples,
                                  const int64_t* order, int64_t count, int64_t step,
                                  const EnsembleHyper& hyper, const AdamVectors& vectors) {
  const int num_inputs = options_.num_inputs;
  const int num_targets = options_.num_targets;
  const ptrdiff_t width = num_inputs + num_targets;
  const int stride = worker.pass.output_stride();
  const auto bound_size = static_cast<size_t>(num_targets);
  const size_t high = bounds_ + static_cast<size_t>(network) * bound_size;
  const size_t low = high + static_cast<size_t>(options_.num_networks) * bound_size;
  for (int64_t begin = 0; begin < count; begin += options_.batch_size) {
    const int size = static_cast<int>(std::min<int64_t>(options_.batch_size, count - begin));
    const int rows = Padded(size, kTile);
    for (int i = 0; i < size; ++i) {
      const float* sample = samples + order[begin + i] * width;
      worker.pass.WriteInput(i, 0, sample, num_inputs);
      std::copy_n(sample + num_inputs, num_targets, worker.targets.data() + i * num_targets);
    }
    worker.parameters.Pack(kernels_, layers_, vectors.parameters, network);
    const float* outputs = worker.pass.Forward(worker.parameters, rows);
    // the bounds are to be close together
    std::fill(worker.by_high.begin(), worker.by_high.end(), hyper.bound_coef);
    std::fill(worker.by_low.begin(), worker.by_low.end(), -hyper.bound_coef);
    // rows beyond the last have no gradient
    std::memset(worker.pass.output_gradient() + static_cast<ptrdiff_t>(size) * stride, 0,
                ArraySize(rows - size, stride) * sizeof(uint16_t));
    kernels_.likelihood(outputs, stride, worker.targets.data(), size, num_targets,
                        vectors.parameters + low, vectors.parameters + high,
                        worker.pass.output_gradient(), worker.by_low.data(), worker.by_high.data());
    const AdamStep adam = MakeAdamStep(hyper.lr, hyper.beta1, hyper.beta2, hyper.eps, ++step);
    worker.pass.Improve(worker.parameters, rows, network, vectors, adam, nullptr,
                        [&](size_t layer) { return hyper.decays[layer]; });
    for (const auto& [gradient, at] :
         {std::pair(worker.by_high.data(), high), std::pair(worker.by_low.data(), low)}) {
      train_.adam(adam, gradient, bound_size, vectors.parameters + at, vectors.mean + at,
                  vectors.square + at);
    }
  }
}

void EnsembleUpdate::Errors(const float* samples, int64_t n, const float* parameters,
                            float* errors) {
  const int num_inputs = options_.num_inputs;
  const int num_targets = options_.num_targets;
  const ptrdiff_t width = num_inputs + num_targets;
  ForEachNetwork([&](Worker& worker, int network) {
    worker.parameters.Pack(kernels_, layers_, parameters, network);
    const float* mine = samples + seed_of(network) * n * width;
    const int stride = worker.pass.output_stride();
    double total = 0.0;
    for (int64_t begin = 0; begin < n; begin += options_.batch_size) {
      const int size = static_cast<int>(std::min<int64_t>(options_.batch_size, n - begin));
      for (int i = 0; i < size; ++i) {
        worker.pass.WriteInput(i, 0, mine + (begin + i) * width, num_inputs);
      }
      const float* outputs = worker.pass.Forward(worker.parameters, Padded(size, kTile));
      for (int i = 0; i < size; ++i) {
        const float* target = mine + (begin + i) * width + num_inputs;
        float sum = 0.0F;
        for (int t = 0; t < num_targets; ++t) {
          const float error = outputs[i * stride + t] - target[t];
          sum += error * error;
        }
        total += sum;
      }
    }
    errors[network] = static_cast<float>(total / static_cast<double>(n * num_targets));
  });
}

void EnsembleUpdate::ForEachNetwork(const std::function<void(Worker&, int)>& run) {
  parallel_.Run(options_.num_networks, [&](int worker, int network) {
    const Bf16Section section(kernels_);
    run(*workers_[static_cast<size_t>(worker)], network);
  });
}

}  // namespace pyfastenv
