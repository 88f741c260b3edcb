// Sensors of a model that lanes leave to MuJoCo's functions (rays, distances, touches …): the model
// without all others, so that mj_sensorPos, mj_sensorVel and mj_sensorAcc compute these alone.
#pragma once

#include <mujoco/mujoco.h>

#include <vector>

namespace pyfastenv::lanes {

class OtherSensors {
 public:
  OtherSensors() = default;
  /// `sensors`: their indices.
  OtherSensors(const mjModel& m, const std::vector<int>& sensors);

  bool empty() const { return type_.empty(); }
  /// Whether some of them are made of contacts, of cameras' frames.
  bool of_contacts() const { return of_contacts_; }
  bool of_cameras() const { return of_cameras_; }
  /// Whether some are made of the quaternions of geoms and sites (those of meshes).
  bool of_quaternions() const { return of_quaternions_; }
  /// Whether some show contacts' places or directions, in which signs of zeros are seen.
  bool of_frames() const { return of_frames_; }
  /// Whether all are zero where nothing touches: touches and contacts alone.
  bool vanish() const { return vanish_; }
  /// The header of a model with the same sensors, left with these; while this object and the model
  /// stay. They keep their places in sensordata.
  mjModel Of(const mjModel& m) const;
  /// Copies their numbers from one sensordata to another.
  void Copy(const mjtNum* from, mjtNum* to) const;
  void SetZero(mjtNum* to) const;

 private:
  bool of_contacts_ = false, of_cameras_ = false, of_quaternions_ = false, of_frames_ = false,
       vanish_ = false;
  // mjModel's arrays of sensors
  std::vector<int> type_, datatype_, needstage_, objtype_, objid_, reftype_, refid_, intprm_, dim_,
      adr_, history_, historyadr_, plugin_;
  std::vector<mjtNum> cutoff_, noise_, delay_, interval_;
};

}  // namespace pyfastenv::lanes
