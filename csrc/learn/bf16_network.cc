#include "learn/bf16_network.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace pyfastenv {

namespace {

AlignedFloats Floats(int rows, int columns) { return AlignedFloats(ArraySize(rows, columns)); }

}  // namespace

uint16_t RoundToBf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return 0x7FC0;
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1U)) >> 16);
}

Bf16Layers MakeBf16Layers(const std::vector<int>& sizes, int num_networks, bool layer_norm) {
  Bf16Layers layers;
  const auto networks = static_cast<size_t>(num_networks);
  size_t offset = 0;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    Bf16Layer layer{};
    layer.in = sizes[i];
    layer.out = sizes[i + 1];
    layer.padded_in = Padded(i == 0 ? 2 * layer.in : layer.in, kTile);
    layer.padded_inputs = Padded(layer.in, kTile);
    layer.padded_out = Padded(layer.out, kTile);
    layer.weights = offset;
    offset += networks * ArraySize(layer.in, layer.out);
    layers.push_back(layer);
  }
  for (Bf16Layer& layer : layers) {
    layer.biases = offset;
    offset += networks * static_cast<size_t>(layer.out);
  }
  for (size_t i = 0; layer_norm && i + 1 < layers.size(); ++i) {
    layers[i].norm = offset;
    offset = layers[i].norm_of(num_networks);
  }
  return layers;
}

size_t FlatSize(const Bf16Layers& layers, int num_networks) {
  const bool norms = layers.size() > 1 && layers[0].norm != 0;
  return norms ? layers[layers.size() - 2].norm_of(num_networks)
               : layers.back().biases_of(num_networks);
}

Bf16Parameters::Bf16Parameters(const Bf16Layers& layers, Use use) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const Bf16Layer& layer = layers[i];
    weights_.emplace_back(layer.padded_in, layer.padded_out);
    biases_.push_back(Floats(1, layer.padded_out));
    norms_.push_back(Floats(layer.norm == 0 ? 0 : 2, layer.padded_out));
    const bool back = use == Use::kBackwardToInputs || (use == Use::kBackward && i > 0);
    transposed_.push_back(back ? Bf16Matrix(layer.padded_out, layer.padded_inputs) : Bf16Matrix());
  }
}

void Bf16Parameters::Pack(const Bf16Kernels& kernels, const Bf16Layers& layers, const float* flat,
                          int network) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const Bf16Layer& layer = layers[i];
    const float* weights = flat + layer.weights_of(network);
    const auto pack = i == 0 ? kernels.pack_twice : kernels.pack;  // the inputs stand in two parts
    pack(weights, layer.in, layer.out, layer.padded_in, weights_[i].data());
    if (transposed_[i].data() != nullptr) {
      kernels.pack_transposed(weights, layer.in, layer.out, transposed_[i].data());
    }
    std::copy_n(flat + layer.biases_of(network), layer.out, biases_[i].data());
    for (int part = 0; layer.norm != 0 && part < 2; ++part) {
      std::copy_n(flat + layer.norm_of(network) + ArraySize(part, layer.out), layer.out,
                  norms_[i].data() + ArraySize(part, layer.padded_out));
    }
  }
}

Bf16Pass::Bf16Pass(const Bf16Kernels& kernels, const TrainKernels& train, const Bf16Layers& layers,
                   Activation activation, int max_rows)
    : kernels_(kernels), train_(train), layers_(layers), activation_(activation) {
  const int rows = Padded(max_rows, kTile);
  int widest = kTile;
  int largest = 0;
  for (const Bf16Layer& layer : layers) {
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

void Bf16Pass::WriteInput(int row, int column, const float* x, int size) {
  const Bf16Layer& layer = layers_[0];
  uint16_t* high = inputs_.data() + static_cast<ptrdiff_t>(row) * layer.padded_in + column;
  kernels_.split(x, size, high, high + layer.in);
}

const float* Bf16Pass::Forward(const Bf16Parameters& parameters, int rows,
                               const Bf16Pass* inputs_from) {
  const uint16_t* x = (inputs_from == nullptr ? this : inputs_from)->inputs_.data();
  for (size_t i = 0; i + 1 < layers_.size(); ++i) {
    const Bf16Layer& layer = layers_[i];
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
  const Bf16Layer& last = layers_.back();
  kernels_.forward_last(x, parameters.weights_.back().data(), parameters.biases_.back().data(),
                        rows, last.padded_in, last.padded_out, outputs_.data());
  return outputs_.data();
}

const uint16_t* Bf16Pass::Back(const Bf16Parameters& parameters, size_t i, int rows,
                               const uint16_t* dy) {
  const Bf16Layer& layer = layers_[i];
  uint16_t* dx = back_[i % 2].data();
  const auto* weights = parameters.transposed_[i].data();
  const Bf16Layer& before = layers_[i - 1];
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

void Bf16Pass::Improve(const Bf16Parameters& parameters, int rows, int network,
                       const AdamVectors& vectors, const AdamStep& step,
                       const Bf16Pass* inputs_from, const std::function<float(size_t)>& decay) {
  const Bf16Matrix& inputs = (inputs_from == nullptr ? this : inputs_from)->inputs_;
  const uint16_t* dy = output_gradient_.data();
  for (size_t i = layers_.size(); i-- > 0;) {
    const Bf16Layer& layer = layers_[i];
    const uint16_t* x = i == 0 ? inputs.data() : hidden_[i - 1].data();
    kernels_.transpose(x, rows, layer.padded_in, transposed_.data());
    kernels_.pack_samples(dy, rows, layer.padded_out, packed_gradient_.data());
    kernels_.forward_last(transposed_.data(), packed_gradient_.data(), nullptr, layer.padded_in,
                          rows, layer.padded_out, weight_gradient_.data());
    kernels_.column_sums(dy, rows, layer.padded_out, bias_gradient_.data());
    Descend(layer, i == 0, network, vectors, step, decay == nullptr ? 0.0F : decay(i));
    if (i > 0) dy = Back(parameters, i, rows, dy);
  }
}

const float* Bf16Pass::InputGradient(const Bf16Parameters& parameters, int rows) {
  const uint16_t* dy = output_gradient_.data();
  for (size_t i = layers_.size(); i-- > 1;) dy = Back(parameters, i, rows, dy);
  const Bf16Layer& first = layers_[0];
  kernels_.forward_last(dy, parameters.transposed_[0].data(), nullptr, rows, first.padded_out,
                        first.padded_inputs, input_gradient_.data());
  return input_gradient_.data();
}

void Bf16Pass::Descend(const Bf16Layer& layer, bool first, int network, const AdamVectors& vectors,
                       const AdamStep& step, float decay) {
  const auto in = static_cast<size_t>(layer.in);
  const auto out = static_cast<size_t>(layer.out);
  const auto stride = static_cast<size_t>(layer.padded_out);
  float* gradient = weight_gradient_.data();
  if (first) {  // the inputs stand there in two parts
    for (size_t i = 0; i < in * stride; ++i) gradient[i] += gradient[in * stride + i];
  }
  if (stride > out) {  // together, as the parameters stand
    for (size_t row = 1; row < in; ++row) {
      const float* from = gradient + row * stride;
      std::copy(from, from + out, gradient + row * out);
    }
  }
  const auto adam = [&](const AdamStep& by, const float* grad, size_t size, size_t begin) {
    train_.adam(by, grad, size, vectors.parameters + begin, vectors.mean + begin,
                vectors.square + begin);
  };
  AdamStep of_weights = step;
  of_weights.decay = decay;
  adam(of_weights, gradient, in * out, layer.weights_of(network));
  adam(step, bias_gradient_.data(), out, layer.biases_of(network));
  for (size_t part = 0; layer.norm != 0 && part < 2; ++part) {
    adam(step, norm_gradient_.data() + part * stride, out, layer.norm_of(network) + part * out);
  }
}

}  // namespace pyfastenv
