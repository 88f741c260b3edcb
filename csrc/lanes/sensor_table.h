// Sensors that lanes compute themselves, as the stages read them.
//
// No standard library here: see tables.h.
#pragma once

namespace pyfastenv::lanes {

enum class SensorKind : int {
  // a number of an array, or several in a row; `id`: the first
  kPosition,
  kVelocity,
  kTendonLength,
  kTendonVelocity,
  kActuatorLength,
  kActuatorVelocity,
  kActuatorForce,
  kJointForce,
  kTendonForce,  // of a tendon's actuators
  kBallQuat,
  kClock,
  // of a site
  kMagnetometer,
  kGyro,
  kVelocimeter,
  kAccelerometer,
  kForce,
  kTorque,
  // of a frame, seen from another
  kFramePosition,
  kFrameQuat,
  kFrameAxis,  // `id`: which
  kFrameLinearVelocity,
  kFrameAngularVelocity,
  kFrameLinearAcceleration,
  kFrameAngularAcceleration,
  // of a subtree; `id`: its body
  kSubtreeCenter,
  kSubtreeLinearVelocity,
  kSubtreeAngularMomentum,
  // of a limit's row, if it has one; `id`: the limit
  kLimitPosition,
  kLimitVelocity,
  kLimitForce,
  // of contacts; `id`: where the pairs of geoms begin whose it counts
  kContactCount,
  // along a site's axis to what a ray meets first
  kRange,
};

/// Whether a sensor is made of motion and forces alone, which stand in lanes, and not of rows.
constexpr bool IsOfMotion(SensorKind kind) {
  return kind != SensorKind::kClock && kind < SensorKind::kLimitPosition;
}

enum class FrameKind : int { kNone, kBody, kInertia, kGeom, kSite };

struct SensorFrame {
  FrameKind kind;
  int id;
  bool still;  // of a body that no dof moves
};

struct Sensor {
  SensorKind kind;
  int id;
  SensorFrame object, reference;
  int adr, dim;        // in sensordata
  double cutoff;       // 0: none
  bool cuts_negative;  // at -cutoff too
};

/// How lanes tell that a ray does not meet a geom: of a plane they compute it; of other shapes they
/// try a sphere that MuJoCo tries too, of its size's numbers; of a height field, a box.
enum class RayShape : int { kPlane, kSphere, kCapsule, kCylinder, kBox, kOther, kHeightField };

/// A geom that rays may meet.
struct RayTarget {
  RayShape shape;
  int geom;
  // of a height field: its box's half sizes, from where to where it is high, how steep it becomes
  double half[2], low, high, steepest;
};

/// Those of a plan, and what they are made of.
struct SensorTable {
  const Sensor* sensor;
  int count;
  int first_range;  // those from here on are of rays
  const RayTarget* target;
  int num_targets;
  const bool* still;  // (nbody): whether no dof moves a body
  // (num_pairs) of each kContactCount: whether it counts a pair's contacts
  const unsigned char* counted;
  int num_data;          // of the model's sensordata; 0: nobody reads it
  double magnetic[3];    // flux
  bool gravity;          // is on
  bool accelerations;    // of bodies
  bool external_forces;  // on bodies: of contacts and ties
  bool subtree_velocities;
  bool others;  // that are left to MuJoCo's functions
  // what MuJoCo's functions read of the sensors that are left to them; `frames`: contacts' places
  // or directions, in which signs of zeros show
  bool contacts, frames, sites, places, velocities, motions, inertia_matrix;
};

}  // namespace pyfastenv::lanes
