// Axes along which two convex geoms are apart, remembered from one question to the next.
//
// Most pairs of geoms whose bounding boxes meet do not touch, which MuJoCo's collision functions
// find out by iterations (GJK). An axis that has separated them a step ago nearly always does so
// still, and one support point of each geom tells. Then those functions would find nothing, and are
// not called. What is remembered changes no result, only the time.
//
// Not thread-safe.
#pragma once

#include <mujoco/mujoco.h>

#include <vector>

#include "lanes/tables.h"

namespace pyfastenv::lanes {

class Separation {
 public:
  /// The model and the tables stay; pairs are the tables'.
  Separation(const mjModel& model, const Tables& tables);

  /// Whether a pair's geoms are apart beyond doubt; `mat` by rows.
  bool IsCertain(int pair, const double* pos1, const double* mat1, const double* pos2,
                 const double* mat2);
  /// How many points MuJoCo has found where it was not: it is asked again until there are none.
  void Note(int pair, int points) { witnesses_[static_cast<size_t>(pair)].touching = points > 0; }

 private:
  struct Witness {
    double axis[3];  // from the first geom to the second, in the first's frame; zero: none yet
    int vertex[2];   // of meshes: where climbing begins
    bool touching;
    int wait, patience;  // questions until the next search, and from the last, vain one to that
  };

  bool IsConvex(int geom) const;
  void Support(int geom, const double* direction, int& vertex, double* point) const;

  const mjModel& model_;
  const Tables& tables_;
  std::vector<bool> is_searched_;   // (num_pairs)
  std::vector<Witness> witnesses_;  // (num_pairs)
};

}  // namespace pyfastenv::lanes
