#include "learn/bf16_network.h"

#include <algorithm>

namespace pyfastenv {

namespace {

AlignedFloats Floats(int rows, int columns) { return AlignedFloats(ArraySize(rows, columns)); }

}  // namespace

Bf16Network::Bf16Network() : kernels(*BestBf16Kernels()), train(BestTrainKernels()) {}

Bf16Network::Parameters::Parameters(const Bf16Network& network, const FlatLayers& layers,
                                    PassUse use)
    : kernels_(network.kernels), layers_(layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const FlatLayer& layer = layers[i];
    weights_.emplace_back(layer.padded_in, layer.padded_out);
    biases_.push_back(Floats(1, layer.padded_out));
    norms_.push_back(Floats(layer.norm == 0 ? 0 : 2, layer.padded_out));
    const bool back = GoesBack(use, i);
    transposed_.push_back(back ? Bf16Matrix(layer.padded_out, layer.padded_inputs) : Bf16Matrix());
  }
}

void Bf16Network::Parameters::Pack(const float* flat, int network) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const FlatLayer& layer = layers_[i];
    const float* weights = flat + layer.weights_of(network);
    // the inputs stand in two parts
    const auto pack = i == 0 ? kernels_.pack_twice : kernels_.pack;
    pack(weights, layer.in, layer.out, layer.padded_in, weights_[i].data());
    if (transposed_[i].data() != nullptr) {
      kernels_.pack_transposed(weights, layer.in, layer.out, transposed_[i].data());
    }
    PackVectors(layer, flat, network, biases_[i].data(), norms_[i].data());
  }
}

Bf16Network::Pass::Pass(const Bf16Network& network, const FlatLayers& layers, Activation activation,
                        int max_rows)
    : kernels_(network.kernels), train_(network.train), layers_(layers), activation_(activation) {
  const int rows = Padded(max_rows, kTile);
  int widest = kTile;
  int largest = 0;
  for (const FlatLayer& layer : layers) {
    widest = std::max({widest, layer.padded_in, layer.padded_out, layer.padded_inputs});
    largest = std::max(largest, layer.padded_in * layer.padded_out);
  }
  inputs_ = Bf16Matrix(rows, layers[0].padded_in);
  const bool norms = layers[0].norm != 0;
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    const int width = layers[i].padded_out;
    const bool rounded = !norms && activation != Activation::kRelu;
    hidden_.emplace_back(rows, width);
    slopes_.push_back(rounded ? Bf16Matrix(rows, width) : Bf16Matrix());
    for (auto* floats : {&normals_, &norm_slopes_}) {
      floats->push_back(Floats(norms ? rows : 0, width));
    }
    inverse_stds_.push_back(Floats(1, rows));
  }
  unrounded_ = Floats(norms ? rows : 0, widest);
  norm_gradient_ = Floats(2, widest);
  outputs_ = Floats(rows, layers.back().padded_out);
  output_gradient_ = Bf16Matrix(rows, layers.back().padded_out);
  for (Bf16Matrix& matrix : back_) matrix = Bf16Matrix(rows, widest);
  transposed_ = Bf16Matrix(widest, rows);
  packed_gradient_ = Bf16Matrix(rows, widest);
  weight_gradient_ = Floats(1, largest);
  bias_gradient_ = Floats(1, widest);
  input_gradient_ = Floats(rows, layers[0].padded_inputs);
}

void Bf16Network::Pass::WriteInput(int row, int column, const float* x, int size) {
  const FlatLayer& layer = layers_[0];
  uint16_t* high = inputs_.data() + static_cast<ptrdiff_t>(row) * layer.padded_in + column;
  kernels_.split(x, size, high, high + layer.in);
}

void Bf16Network::Pass::WriteOutputGradient(int row, const float* gradient, int size) {
  kernels_.round(gradient, size, output_gradient_.data() + ArraySize(row, output_stride()));
}

void Bf16Network::Pass::ClearOutputGradient(int begin, int rows) {
  std::fill_n(output_gradient_.data() + ArraySize(begin, output_stride()),
              ArraySize(rows - begin, output_stride()), uint16_t{0});
}

const float* Bf16Network::Pass::Forward(const Parameters& parameters, int rows,
                                        const Pass* inputs_from) {
  const uint16_t* x = (inputs_from == nullptr ? this : inputs_from)->inputs_.data();
  for (size_t i = 0; i + 1 < layers_.size(); ++i) {
    const FlatLayer& layer = layers_[i];
    if (layer.norm != 0) {
      kernels_.forward_last(x, parameters.weights_[i].data(), parameters.biases_[i].data(), rows,
                            layer.padded_in, layer.padded_out, normals_[i].data());
      train_.normalise(parameters.norms_[i].data(), rows, layer.shape(), activation_,
                       normals_[i].data(), inverse_stds_[i].data(), unrounded_.data(),
                       norm_slopes_[i].data());
      kernels_.round(unrounded_.data(), rows * layer.padded_out, hidden_[i].data());
    } else if (activation_ == Activation::kRelu) {
      kernels_.forward_relu(x, parameters.weights_[i].data(), parameters.biases_[i].data(), rows,
                            layer.padded_in, layer.padded_out, hidden_[i].data());
    } else {
      kernels_.forward_slope(activation_, x, parameters.weights_[i].data(),
                             parameters.biases_[i].data(), rows, layer.padded_in, layer.padded_out,
                             hidden_[i].data(), slopes_[i].data());
    }
    x = hidden_[i].data();
  }
  const FlatLayer& last = layers_.back();
  kernels_.forward_last(x, parameters.weights_.back().data(), parameters.biases_.back().data(),
                        rows, last.padded_in, last.padded_out, outputs_.data());
  return outputs_.data();
}

const uint16_t* Bf16Network::Pass::Back(const Parameters& parameters, size_t i, int rows,
                                        const uint16_t* dy) {
  const FlatLayer& layer = layers_[i];
  uint16_t* dx = back_[i % 2].data();
  const auto* weights = parameters.transposed_[i].data();
  const FlatLayer& before = layers_[i - 1];
  if (before.norm != 0) {
    kernels_.forward_last(dy, weights, nullptr, rows, layer.padded_out, layer.padded_in,
                          unrounded_.data());
    train_.backward_norm(parameters.norms_[i - 1].data(), rows, before.shape(),
                         normals_[i - 1].data(), inverse_stds_[i - 1].data(),
                         norm_slopes_[i - 1].data(), /*first=*/true, unrounded_.data(),
                         norm_gradient_.data());
    kernels_.round(unrounded_.data(), rows * layer.padded_in, dx);
  } else if (activation_ == Activation::kRelu) {
    kernels_.backward_relu(dy, weights, hidden_[i - 1].data(), rows, layer.padded_in,
                           layer.padded_out, dx);
  } else {
    kernels_.backward_slope(dy, weights, slopes_[i - 1].data(), rows, layer.padded_in,
                            layer.padded_out, dx);
  }
  return dx;
}

void Bf16Network::Pass::Improve(const Parameters& parameters, int rows, int network,
                                const AdamVectors& vectors, const AdamStep& step,
                                const Pass* inputs_from,
                                const std::function<float(size_t)>& decay) {
  const Bf16Matrix& inputs = (inputs_from == nullptr ? this : inputs_from)->inputs_;
  const uint16_t* dy = output_gradient_.data();
  for (size_t i = layers_.size(); i-- > 0;) {
    const FlatLayer& layer = layers_[i];
    const uint16_t* x = i == 0 ? inputs.data() : hidden_[i - 1].data();
    kernels_.transpose(x, rows, layer.padded_in, transposed_.data());
    kernels_.pack_samples(dy, rows, layer.padded_out, packed_gradient_.data());
    kernels_.forward_last(transposed_.data(), packed_gradient_.data(), nullptr, layer.padded_in,
                          rows, layer.padded_out, weight_gradient_.data());
    kernels_.column_sums(dy, rows, layer.padded_out, bias_gradient_.data());
    float* gradient = weight_gradient_.data();
    const size_t size = ArraySize(layer.in, layer.padded_out);
    if (i == 0) {  // the inputs stand there in two parts
      for (size_t k = 0; k < size; ++k) gradient[k] += gradient[size + k];
    }
    AdamStep decayed = step;
    decayed.decay = decay == nullptr ? 0.0F : decay(i);
    DescendWeights(train_, decayed, layer, network, 0, layer.in, gradient, vectors);
    DescendVectors(train_, step, layer, network, bias_gradient_.data(), norm_gradient_.data(),
                   vectors);
    if (i > 0) dy = Back(parameters, i, rows, dy);
  }
}

const float* Bf16Network::Pass::InputGradient(const Parameters& parameters, int rows) {
  const uint16_t* dy = output_gradient_.data();
  for (size_t i = layers_.size(); i-- > 1;) dy = Back(parameters, i, rows, dy);
  const FlatLayer& first = layers_[0];
  kernels_.forward_last(dy, parameters.transposed_[0].data(), nullptr, rows, first.padded_out,
                        first.padded_inputs, input_gradient_.data());
  return input_gradient_.data();
}

}  // namespace pyfastenv
