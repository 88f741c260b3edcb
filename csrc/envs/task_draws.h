// What an own task draws from its environment's stream, with numbers or arrays for bounds: the
// numbers of numpy.random.Generator's methods, in their order, bit for bit.
#pragma once

#include <cstdint>

namespace pyfastenv {

struct TaskFrame;

/// A number or an array of numbers as compiled code hands it over: 8-byte words.
struct DrawOperand {
  static constexpr int kMostAxes = 8;

  enum Dtype : int64_t { kFloat64, kFloat32, kInt64, kInt32, kUint8, kBool };

  const uint8_t* data;
  int64_t dtype;
  int64_t num_axes;
  int64_t shape[kMostAxes];
  int64_t strides[kMostAxes];  // [bytes]
};

/// Whether two operands go together, and with the shape that is given. If none is, writes theirs
/// into `shape`, which has the axes of the operand that has more.
int64_t DrawShape(const DrawOperand* a, const DrawOperand* b, int64_t num_axes, int64_t* shape,
                  int64_t is_given);

/// Fill `out`, C-contiguous, of a shape for which DrawShape has said yes. They return 0, and the
/// stream may have moved, where NumPy raises an exception for the bounds. `closed`: high may be
/// drawn; of integers only.
int64_t DrawUniform(TaskFrame* frame, const DrawOperand* low, const DrawOperand* high,
                    int64_t num_axes, const int64_t* shape, int64_t is_given, int64_t closed,
                    double* out);
int64_t DrawNormal(TaskFrame* frame, const DrawOperand* loc, const DrawOperand* scale,
                   int64_t num_axes, const int64_t* shape, int64_t is_given, int64_t closed,
                   double* out);
int64_t DrawIntegers(TaskFrame* frame, const DrawOperand* low, const DrawOperand* high,
                     int64_t num_axes, const int64_t* shape, int64_t is_given, int64_t closed,
                     int64_t* out);

}  // namespace pyfastenv
