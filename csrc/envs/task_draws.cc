#include "envs/task_draws.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "envs/task_frame.h"
#include "npy/random.h"

namespace pyfastenv {

namespace {

constexpr int kMostAxes = DrawOperand::kMostAxes;

// The length of an operand along an axis counted from the last, 1 where it has none.
int64_t LengthAt(const DrawOperand& operand, int64_t from_last) {
  if (from_last >= operand.num_axes) return 1;
  return operand.shape[operand.num_axes - 1 - from_last];
}

// A walk over two operands in C order of a shape to which they are broadcast.
class Walk {
 public:
  Walk(const DrawOperand& a, const DrawOperand& b, int64_t num_axes, const int64_t* shape)
      : num_axes_(num_axes), shape_(shape), at_{a.data, b.data} {
    const DrawOperand* operands[] = {&a, &b};
    for (int k = 0; k < 2; ++k) {
      for (int64_t axis = 0; axis < num_axes; ++axis) {
        const int64_t own = axis - (num_axes - operands[k]->num_axes);
        const bool repeats = own < 0 || operands[k]->shape[own] == 1;
        strides_[k][axis] = repeats ? 0 : operands[k]->strides[own];
      }
    }
  }

  int64_t size() const {
    return std::accumulate(shape_, shape_ + num_axes_, int64_t{1}, std::multiplies<>());
  }
  const uint8_t* a() const { return at_[0]; }
  const uint8_t* b() const { return at_[1]; }

  void Next() {
    for (int64_t axis = num_axes_ - 1; axis >= 0; --axis) {
      const bool wraps = ++index_[axis] == shape_[axis];
      const int64_t by = wraps ? 1 - shape_[axis] : 1;
      for (int k = 0; k < 2; ++k) at_[k] += by * strides_[k][axis];
      if (!wraps) return;
      index_[axis] = 0;
    }
  }

 private:
  const int64_t num_axes_;
  const int64_t* const shape_;
  const uint8_t* at_[2];
  int64_t strides_[2][kMostAxes] = {};
  int64_t index_[kMostAxes] = {};
};

template <class To>
To Read(const DrawOperand& operand, const uint8_t* at) {
  switch (operand.dtype) {
    case DrawOperand::kFloat64:
      return static_cast<To>(*reinterpret_cast<const double*>(at));
    case DrawOperand::kFloat32:
      return static_cast<To>(*reinterpret_cast<const float*>(at));
    case DrawOperand::kInt64:
      return static_cast<To>(*reinterpret_cast<const int64_t*>(at));
    case DrawOperand::kInt32:
      return static_cast<To>(*reinterpret_cast<const int32_t*>(at));
    case DrawOperand::kUint8:
      return static_cast<To>(*at);
    default:
      return static_cast<To>(*at != 0);
  }
}

// Whether an integer can be read: NumPy cuts numbers off, and raises for those that are none.
bool IsInteger(const DrawOperand& operand, const uint8_t* at) {
  if (operand.dtype != DrawOperand::kFloat64) return true;
  return std::abs(Read<double>(operand, at)) < 0x1p63;
}

// Draws once all bounds have been looked at, as NumPy does. `looks`: whether anything is wrong with
// bounds that draw nothing.
template <class T, class IsFine, class Draw>
int64_t Fill(const DrawOperand& a, const DrawOperand& b, int64_t num_axes, const int64_t* shape,
             bool looks, T* out, IsFine is_fine, Draw draw) {
  if (looks) {
    const int64_t own_axes = std::max(a.num_axes, b.num_axes);
    int64_t own_shape[kMostAxes];
    DrawShape(&a, &b, own_axes, own_shape, 0);
    Walk walk(a, b, own_axes, own_shape);
    for (int64_t left = walk.size(); left > 0; --left, walk.Next()) {
      if (!is_fine(walk.a(), walk.b())) return 0;
    }
  }
  Walk walk(a, b, num_axes, shape);
  for (int64_t left = walk.size(); left > 0; --left, walk.Next()) {
    *out++ = draw(walk.a(), walk.b());
  }
  return 1;
}

}  // namespace

int64_t DrawShape(const DrawOperand* a, const DrawOperand* b, int64_t num_axes, int64_t* shape,
                  int64_t is_given) {
  if (a->num_axes > num_axes || b->num_axes > num_axes) return 0;
  for (int64_t i = 0; i < num_axes; ++i) {
    const int64_t of_a = LengthAt(*a, i), of_b = LengthAt(*b, i);
    if (of_a != of_b && of_a != 1 && of_b != 1) return 0;
    const int64_t length = of_a == 1 ? of_b : of_a;
    int64_t& given = shape[num_axes - 1 - i];
    if (is_given == 0) {
      given = length;
    } else if (length != 1 && length != given) {
      return 0;
    }
  }
  return 1;
}

int64_t DrawUniform(TaskFrame* frame, const DrawOperand* low, const DrawOperand* high,
                    int64_t num_axes, const int64_t* shape, int64_t /*is_given*/,
                    int64_t /*closed*/, double* out) {
  const auto is_fine = [=](const uint8_t* a, const uint8_t* b) {
    const double range = Read<double>(*high, b) - Read<double>(*low, a);
    return std::isfinite(range) && !std::signbit(range);
  };
  return Fill(*low, *high, num_axes, shape, true, out, is_fine,
              [=](const uint8_t* a, const uint8_t* b) {
                return frame->random->Uniform(Read<double>(*low, a), Read<double>(*high, b));
              });
}

int64_t DrawNormal(TaskFrame* frame, const DrawOperand* loc, const DrawOperand* scale,
                   int64_t num_axes, const int64_t* shape, int64_t /*is_given*/, int64_t /*closed*/,
                   double* out) {
  const auto is_fine = [=](const uint8_t* /*a*/, const uint8_t* b) {
    const auto width = Read<double>(*scale, b);
    return std::isnan(width) || !std::signbit(width);
  };
  return Fill(*loc, *scale, num_axes, shape, true, out, is_fine,
              [=](const uint8_t* a, const uint8_t* b) {
                return frame->random->Normal(Read<double>(*loc, a), Read<double>(*scale, b));
              });
}

int64_t DrawIntegers(TaskFrame* frame, const DrawOperand* low, const DrawOperand* high,
                     int64_t num_axes, const int64_t* shape, int64_t is_given, int64_t closed,
                     int64_t* out) {
  const auto is_fine = [=](const uint8_t* a, const uint8_t* b) {
    if (!IsInteger(*low, a) || !IsInteger(*high, b)) return false;
    const auto first = Read<int64_t>(*low, a), last = Read<int64_t>(*high, b);
    return closed != 0 ? first <= last : first < last;
  };
  // NumPy returns an empty size before it looks at anything
  const bool is_empty = is_given != 0 && std::find(shape, shape + num_axes, 0) != shape + num_axes;
  return Fill(*low, *high, num_axes, shape, !is_empty, out, is_fine,
              [=](const uint8_t* a, const uint8_t* b) {
                const auto last = Read<int64_t>(*high, b) - (closed != 0 ? 0 : 1);
                return frame->random->IntegersUpTo(Read<int64_t>(*low, a), last);
              });
}

}  // namespace pyfastenv
