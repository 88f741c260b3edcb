#include "learn/f32_network.h"

#include <algorithm>

namespace pyfastenv {

namespace {

constexpr int kBlockRows = 64;  // a block's features of a layer stay in a core's cache
constexpr int kPieceRows = 64;

AlignedFloats Floats(int rows, int columns) { return AlignedFloats(ArraySize(rows, columns)); }

}  // namespace

F32Network::F32Network(int num_threads)
    : train(BestTrainKernels()), threads(std::make_unique<ParallelFor>(num_threads)) {}

F32Network::Parameters::Parameters(const F32Network& network, const FlatLayers& layers, PassUse use)
    : train_(network.train), layers_(layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const FlatLayer& layer = layers[i];
    weights_.push_back(Floats(layer.padded_in, layer.padded_out));
    biases_.push_back(Floats(1, layer.padded_out));
    norms_.push_back(Floats(layer.norm == 0 ? 0 : 2, layer.padded_out));
    const bool back = GoesBack(use, i);
    transposed_.push_back(back ? Floats(layer.padded_out, layer.padded_in) : AlignedFloats());
  }
}

void F32Network::Parameters::Pack(const float* flat, int network) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const FlatLayer& layer = layers_[i];
    const float* from = flat + layer.weights_of(network);
    float* weights = weights_[i].data();
    for (int row = 0; row < layer.in; ++row) {
      std::copy_n(from + ArraySize(row, layer.out), layer.out,
                  weights + ArraySize(row, layer.padded_out));
    }
    if (transposed_[i].data() != nullptr) {
      train_.transpose(weights, layer.padded_in, layer.padded_out, transposed_[i].data(),
                       layer.padded_in);
    }
    PackVectors(layer, flat, network, biases_[i].data(), norms_[i].data());
  }
}

F32Network::Pass::Pass(const F32Network& network, const FlatLayers& layers, Activation activation,
                       int max_rows)
    : train_(network.train), threads_(*network.threads), layers_(layers), activation_(activation) {
  const int rows = Padded(max_rows, kRows);
  const int num_blocks = Padded(rows, kBlockRows) / kBlockRows;
  inputs_ = Floats(rows, layers[0].padded_in);
  input_gradient_ = Floats(rows, layers[0].padded_in);
  size_t size = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const FlatLayer& layer = layers[i];
    for (auto* floats : {&outputs_, &slopes_, &back_}) {
      floats->push_back(Floats(rows, layer.padded_out));
    }
    normals_.push_back(Floats(layer.norm == 0 ? 0 : rows, layer.padded_out));
    inverse_stds_.push_back(Floats(1, layer.norm == 0 ? 0 : rows));
    norm_gradients_.push_back(Floats(layer.norm == 0 ? 0 : num_blocks, 2 * layer.padded_out));
    bias_gradients_.push_back(Floats(1, layer.padded_out));
    for (int row = 0; row < layer.in; row += kPieceRows) {
      const int mine = std::min(kPieceRows, layer.in - row);
      pieces_.push_back({i, row, mine, size});
      size += ArraySize(Padded(mine, kRowMultiple), layer.padded_out);
    }
  }
  weight_gradients_ = AlignedFloats(size);
}

void F32Network::Pass::WriteInput(int row, int column, const float* x, int size) {
  std::copy_n(x, size, inputs_.data() + ArraySize(row, layers_[0].padded_in) + column);
}

void F32Network::Pass::WriteOutputGradient(int row, const float* gradient, int size) {
  std::copy_n(gradient, size, back_.back().data() + ArraySize(row, output_stride()));
}

void F32Network::Pass::ClearOutputGradient(int begin, int rows) {
  std::fill_n(back_.back().data() + ArraySize(begin, output_stride()),
              ArraySize(rows - begin, output_stride()), 0.0F);
}

void F32Network::Pass::ForBlocks(int rows, const std::function<void(int, int, int)>& use) {
  threads_.Run(Padded(rows, kBlockRows) / kBlockRows, [&](int /*worker*/, int block) {
    const int begin = block * kBlockRows;
    use(block, begin, std::min(kBlockRows, rows - begin));
  });
}

const float* F32Network::Pass::Forward(const Parameters& parameters, int rows,
                                       const Pass* inputs_from) {
  const AlignedFloats& inputs = (inputs_from == nullptr ? this : inputs_from)->inputs_;
  ForBlocks(rows, [&](int /*block*/, int begin, int count) {
    const float* x = inputs.data() + ArraySize(begin, layers_[0].padded_in);
    for (size_t i = 0; i < layers_.size(); ++i) {
      const FlatLayer& layer = layers_[i];
      const size_t at = ArraySize(begin, layer.padded_out);
      float* y = outputs_[i].data() + at;
      float* slope = slopes_[i].data() + at;
      const bool activates = i + 1 < layers_.size() && layer.norm == 0;
      float* z = layer.norm == 0 ? y : normals_[i].data() + at;
      train_.forward(x, parameters.weights_[i].data(), parameters.biases_[i].data(), count,
                     layer.shape(), activates ? activation_ : Activation::kIdentity, z, slope);
      if (layer.norm != 0) {
        train_.normalise(parameters.norms_[i].data(), count, layer.shape(), activation_, z,
                         inverse_stds_[i].data() + begin, y, slope);
      }
      x = y;
    }
  });
  return outputs_.back().data();
}

void F32Network::Pass::Back(const Parameters& parameters, int rows, bool to_inputs) {
  ForBlocks(rows, [&](int block, int begin, int count) {
    for (size_t i = layers_.size(); i-- > (to_inputs ? 0 : 1);) {
      const FlatLayer& layer = layers_[i];
      const float* dy = back_[i].data() + ArraySize(begin, layer.padded_out);
      const size_t at = ArraySize(begin, layer.padded_in);
      float* dx = (i == 0 ? input_gradient_ : back_[i - 1]).data() + at;
      const float* slope = i == 0 ? nullptr : slopes_[i - 1].data() + at;
      train_.backward(dy, parameters.transposed_[i].data(), slope, count, layer.shape(), dx);
      if (i > 0 && layers_[i - 1].norm != 0) {
        train_.backward_norm(parameters.norms_[i - 1].data(), count, layers_[i - 1].shape(),
                             normals_[i - 1].data() + at, inverse_stds_[i - 1].data() + begin,
                             /*slope=*/nullptr, /*first=*/true, dx, norm_gradient(i - 1, block));
      }
    }
  });
}

void F32Network::Pass::Improve(const Parameters& parameters, int rows, int network,
                               const AdamVectors& vectors, const AdamStep& step,
                               const Pass* inputs_from, const std::function<float(size_t)>& decay) {
  Back(parameters, rows, /*to_inputs=*/false);
  const AlignedFloats& inputs = (inputs_from == nullptr ? this : inputs_from)->inputs_;
  const int num_blocks = Padded(rows, kBlockRows) / kBlockRows;
  threads_.Run(static_cast<int>(pieces_.size()), [&](int /*worker*/, int index) {
    const Piece& piece = pieces_[static_cast<size_t>(index)];
    const size_t i = piece.layer;
    const FlatLayer& layer = layers_[i];
    const float* x = (i == 0 ? inputs : outputs_[i - 1]).data() + piece.row;
    float* gradient = weight_gradients_.data() + piece.gradient;
    float* by_biases = piece.row == 0 ? bias_gradients_[i].data() : nullptr;
    LayerShape shape = layer.shape();
    shape.in = piece.rows;
    train_.accumulate(x, back_[i].data(), rows, shape, /*first=*/true, gradient, by_biases);
    AdamStep decayed = step;
    decayed.decay = decay == nullptr ? 0.0F : decay(i);
    DescendWeights(train_, decayed, layer, network, piece.row, piece.rows, gradient, vectors);
    if (piece.row > 0) return;
    float* by_norm = norm_gradient(i, 0);
    for (int block = 1; layer.norm != 0 && block < num_blocks; ++block) {
      const float* more = norm_gradient(i, block);
      for (int k = 0; k < 2 * layer.padded_out; ++k) by_norm[k] += more[k];
    }
    DescendVectors(train_, step, layer, network, by_biases, by_norm, vectors);
  });
}

const float* F32Network::Pass::InputGradient(const Parameters& parameters, int rows) {
  Back(parameters, rows, /*to_inputs=*/true);
  return input_gradient_.data();
}

}  // namespace pyfastenv
