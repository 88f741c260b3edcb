// MuJoCo's own collisions: the functions of pairs of geoms that lanes have no code for (boxes,
// meshes, height fields …), and all of mj_collision, where a touch is so slight that MuJoCo's broad
// and middle phases may not see it. And its functions of rays.
//
// The functions take one environment at a time and see nothing of it but the two geoms' frames, so
// the contacts are MuJoCo's. Only lanes in which bounding volumes meet ask for them, and they are
// called where no axis is found along which the geoms are apart.
//
// One per LaneStepper; not thread-safe. Keeps the model.
#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <memory>
#include <vector>

#include "lanes/rays.h"
#include "lanes/separation.h"
#include "lanes/tables.h"
#include "mujoco/owned.h"

namespace pyfastenv::lanes {

class NarrowPhase {
 public:
  /// `tables` and its pairs are those of the model, and stay. Throws MujocoError.
  NarrowPhase(std::shared_ptr<const mjModel> model, const Tables& tables);

  /// The function that the stages call. Until this object is gone.
  NarrowPhaseCall call() { return {this, Collide, PositionsOf, List, Cast}; }
  /// The models whose meshes' hulls and faces these lanes have until the next call: as the plan's
  /// but for these. Lanes behind them have the first one's.
  void SetModels(const mjModel* const* models, int count);
  /// Before every run of stages on this thread.
  void Begin() { has_cleared_buffer_ = false; }

 private:
  static int Collide(void* self, int lane, int pair, const double* pos1, const double* mat1,
                     const double* pos2, const double* mat2, ContactPoint* points);
  /// The contacts that MuJoCo's function finds; -1 after an engine error.
  int AskMujoco(const mjModel& m, const Pair& pair, const double* pos1, const double* mat1,
                const double* pos2, const double* mat2, mjPreContact* contacts);
  static Positions PositionsOf(void* self);
  static int List(void* self, int lane, const ListedContact** contacts);

  static double Cast(void* self, int lane, const RayTarget& target, const GeomPlace& place,
                     const double* from, const double* along);

  const mjModel& ModelOf(int lane);
  void ClearBuffer();
  /// False after an engine error in `call`; then the data is as new.
  template <class F>
  bool Run(const F& call);

  std::shared_ptr<const mjModel> model_;
  std::array<const mjModel*, kMaxWidth> of_lanes_{};
  mjModel header_;  // of the lane that is asked about
  const Tables& tables_;
  Separation separation_;
  Rays rays_;
  DataPointer data_;
  DataPointer touching_;  // of two spheres that do
  bool has_cleared_buffer_ = false;
  std::vector<ListedContact> listed_;
  std::vector<mjtNum> geom_size_;  // that a ray meets
};

}  // namespace pyfastenv::lanes
