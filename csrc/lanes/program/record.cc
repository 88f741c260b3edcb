#include "lanes/program/record.h"

#include <cstdlib>
#include <memory>

#include "lanes/stages/stages.h"

namespace pyfastenv::lanes {

namespace {

using namespace PYFASTENV_VARIANT;

// A Scratch of symbols, and the recording that operations on it make.
class Recorder {
 public:
  Recorder(const Tables& t, bool exact)
      : memory_(std::calloc(ScratchBytes(t), 1), std::free), recording_{Graph(exact), {}} {
    if (memory_ == nullptr) throw std::bad_alloc();
    recorded_graph = &recording_.graph;
    scratch_ = MakeScratch(t, memory_.get());
    ReadNumbers(t);
    if (t.WorldVaries()) PlaceWorld(t, *scratch_);
  }
  ~Recorder() { recorded_graph = nullptr; }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  Scratch& scratch() { return *scratch_; }

  void Read(ProgramArray array, Lane* values, int count) {
    for (int i = 0; i < count; ++i) {
      const Slot slot{static_cast<int>(array), i};
      values[i] = FromNode(recording_.graph.Input(slot.Packed()), MayBeNegativeZero(slot));
    }
  }
  void Write(ProgramArray array, const Lane* values, int first, int count) {
    for (int i = first; i < first + count; ++i) {
      recording_.outputs.push_back({NodeOf(values[i]), {static_cast<int>(array), i}});
    }
  }
  // The same of what reaches the state, where a zero has the stages' sign: they make no negative
  // one here, and where the simplified nodes may, zero is added.
  void WriteExact(ProgramArray array, const Lane* values, int count) {
    const std::vector<bool> negative = NegativeZeros(
        recording_.graph, [](int slot) { return MayBeNegativeZero(Slot::Unpack(slot)); });
    for (int i = 0; i < count; ++i) {
      if (PYFASTENV_VARIANT::MayBeNegativeZero(values[i])) recording_.has_signs = false;
      int node = NodeOf(values[i]);
      if (negative[static_cast<size_t>(node)]) node = recording_.graph.Unary(Op::kPlusZero, node);
      recording_.outputs.push_back({node, {static_cast<int>(array), i}});
    }
  }
  Recording Take() { return std::move(recording_); }

 private:
  // qfrc_smooth is the smooth dynamics' WriteExact; tendons' are sums that begin with zero
  static bool MayBeNegativeZero(Slot slot) {
    const auto array = static_cast<ProgramArray>(slot.array);
    return array != ProgramArray::qfrc_smooth && array != ProgramArray::ten_J &&
           array != ProgramArray::ten_length;
  }

  // Numbers that vary are inputs; the others are constants.
  void ReadNumbers(const Tables& t) {
#define PYFASTENV_LANES_NUMBER(name, count, ...) \
  if (t.Varies(Number::name)) Read(ProgramArray::name, scratch_->name, count);
    PYFASTENV_LANES_NUMBERS(PYFASTENV_LANES_NUMBER)
    PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_NUMBER)
#undef PYFASTENV_LANES_NUMBER
  }

  std::unique_ptr<void, decltype(&std::free)> memory_;
  Recording recording_;
  Scratch* scratch_;
};

// Shapes that are round about their third axis, of which Collide asks for no other.
bool IsRound(PairKind kind) {
  return kind == PairKind::kPlaneSphere || kind == PairKind::kPlaneCapsule ||
         kind == PairKind::kSphereSphere || kind == PairKind::kSphereCapsule ||
         kind == PairKind::kCapsuleCapsule;
}

// Collide asks for the places and axes of geoms that may touch.
void WriteGeoms(const Tables& t, Recorder& recorder) {
  const Scratch& s = recorder.scratch();
  for (int g = 0; g < t.ngeom; ++g) {
    bool may_touch = false, round = true;
    for (int k = 0; k < t.num_pairs; ++k) {
      if (t.pair[k].geom1 != g && t.pair[k].geom2 != g) continue;
      may_touch = true;
      round = round && IsRound(t.pair[k].kind);
    }
    if (!may_touch || t.geom[g].body == 0) continue;
    recorder.Write(ProgramArray::geom_xpos, s.geom_xpos, 3 * g, 3);
    if (!round) {
      recorder.Write(ProgramArray::geom_xmat, s.geom_xmat, 9 * g, 9);
      continue;
    }
    for (int i = 2; i < 9; i += 3) {
      recorder.Write(ProgramArray::geom_xmat, s.geom_xmat, 9 * g + i, 1);
    }
  }
}

// What connects and welds are made of.
void WriteTiedBodies(const Tables& t, Recorder& recorder) {
  const Scratch& s = recorder.scratch();
  if (!t.has_frame_equalities) return;
  recorder.Write(ProgramArray::cdof_dot, s.cdof_dot, 0, 6 * t.nv);
  recorder.Write(ProgramArray::cvel, s.cvel, 6, 6 * (t.nbody - 1));
  for (int k = 0; k < t.num_equalities; ++k) {
    const Equality& e = t.equality[k];
    if (e.num_rows == 1) continue;
    for (const int b : {e.body1, e.body2}) {
      if (b == 0) continue;
      recorder.Write(ProgramArray::xpos, s.xpos, 3 * b, 3);
      recorder.Write(ProgramArray::xquat, s.xquat, 4 * b, 4);
      recorder.Write(ProgramArray::xmat, s.xmat, 9 * b, 9);
    }
    for (const int site : {e.site1, e.site2}) {
      if (e.sites && t.site[site].body != 0) {
        recorder.Write(ProgramArray::site_xpos, s.site_xpos, 3 * site, 3);
      }
    }
  }
}

// Jacobians of contacts, ties and applied forces are about the centers of mass of bodies' trees.
void WriteCenters(const Tables& t, Recorder& recorder) {
  const Scratch& s = recorder.scratch();
  for (int b = 1; b < t.nbody; ++b) {
    if (t.body[b].root == b) recorder.Write(ProgramArray::subtree_com, s.subtree_com, 3 * b, 3);
  }
}

// What AddAppliedForces asks for.
void WriteForces(const Tables& t, Recorder& recorder) {
  const Scratch& s = recorder.scratch();
  recorder.Write(ProgramArray::xipos, s.xipos, 3, 3 * (t.nbody - 1));
  recorder.Write(ProgramArray::qfrc_passive, s.qfrc_passive, 0, t.nv);
  recorder.Write(ProgramArray::qfrc_bias, s.qfrc_bias, 0, t.nv);
  recorder.Write(ProgramArray::qfrc_actuator, s.qfrc_actuator, 0, t.nv);
}

// What the stages of an evaluation begin with.
void ReadState(const Tables& t, Recorder& recorder) {
  Scratch& s = recorder.scratch();
  recorder.Read(ProgramArray::qpos, s.qpos, t.nq);
  recorder.Read(ProgramArray::qvel, s.qvel, t.nv);
  recorder.Read(ProgramArray::ctrl, s.ctrl, t.nu);
  recorder.Read(ProgramArray::act, s.act, t.na);
  recorder.Read(ProgramArray::act_dot, s.act_dot, t.na);
  recorder.Read(ProgramArray::mocap_pos, s.mocap_pos, 3 * t.nmocap);
  recorder.Read(ProgramArray::mocap_quat, s.mocap_quat, 4 * t.nmocap);
  recorder.Read(ProgramArray::sin_half, s.sin_half, t.njnt);
  recorder.Read(ProgramArray::cos_half, s.cos_half, t.njnt);
  recorder.Read(ProgramArray::spring_turn, s.spring_turn, 3 * t.njnt);
  recorder.Read(ProgramArray::ball_turn, s.ball_turn, 3 * t.njnt);
}

// What spatial tendons are computed from: the places of their sites and geoms, and how bodies move.
void RecordPlaces(const Tables& t, Recorder& recorder) {
  Scratch& s = recorder.scratch();
  ReadState(t, recorder);
  Places(t, s);
  for (int i = 0; i < t.nsite; ++i) {
    if (t.site[i].body != 0) recorder.Write(ProgramArray::site_xpos, s.site_xpos, 3 * i, 3);
  }
  for (int g = 0; g < t.ngeom; ++g) {
    if (t.geom[g].body == 0) continue;
    recorder.Write(ProgramArray::geom_xpos, s.geom_xpos, 3 * g, 3);
    recorder.Write(ProgramArray::geom_xmat, s.geom_xmat, 9 * g, 9);
  }
  recorder.Write(ProgramArray::subtree_com, s.subtree_com, 3, 3 * (t.nbody - 1));
  recorder.Write(ProgramArray::cdof, s.cdof, 0, 6 * t.nv);
}

// Spatial tendons are there already; FixedTendons puts the others in.
void ReadTendons(const Tables& t, Recorder& recorder) {
  if (!t.has_spatial_tendons) return;
  recorder.Read(ProgramArray::ten_length, recorder.scratch().ten_length, t.ntendon);
  recorder.Read(ProgramArray::ten_J, recorder.scratch().ten_J, t.nJten);
}

void RecordSmoothDynamics(const Tables& t, Recorder& recorder) {
  Scratch& s = recorder.scratch();
  ReadState(t, recorder);
  ReadTendons(t, recorder);
  SmoothDynamics(t, s);
  WriteGeoms(t, recorder);
  WriteCenters(t, recorder);
  WriteForces(t, recorder);
  WriteTiedBodies(t, recorder);
  if (t.constrains_tendons) {
    recorder.Write(ProgramArray::ten_length, s.ten_length, 0, t.ntendon);
    recorder.Write(ProgramArray::ten_J, s.ten_J, 0, t.nJten);
  }
  recorder.Write(ProgramArray::cdof, s.cdof, 0, 6 * t.nv);
  recorder.Write(ProgramArray::M, s.M, 0, t.nC);
  recorder.Write(ProgramArray::qLD, s.qLD, 0, t.nC);
  recorder.Write(ProgramArray::qLDiagInv, s.qLDiagInv, 0, t.nv);
  recorder.WriteExact(ProgramArray::qfrc_smooth, s.qfrc_smooth, t.nv);
  recorder.WriteExact(ProgramArray::qacc_smooth, s.qacc_smooth, t.nv);
  if (t.integrator == Integrator::kImplicitFast) {
    recorder.Write(ProgramArray::H, s.H, 0, t.nC);
    recorder.Write(ProgramArray::free_matrix, s.free_matrix, 0, 36 * t.num_free_bodies);
  }
}

// The smooth dynamics' fields once more, of which only what sensors ask for is left: with the signs
// of their zeros, which programs elsewhere do not keep.
void RecordSensors(const Tables& t, Recorder& recorder) {
  Scratch& s = recorder.scratch();
  ReadState(t, recorder);
  recorder.Read(ProgramArray::qacc, s.qacc, t.nv);
  recorder.Read(ProgramArray::cfrc_ext, s.cfrc_ext, 6 * t.nbody);
  ReadTendons(t, recorder);
  Places(t, s);
  FixedTendons(t, s);
  TendonVelocities(t, s);
  Velocities(t, s);
  if (t.has_gravcomp) PassiveForces(t, s);  // which actuators may make up for
  Actuation(t, s);
  SenseMotion(t, s);
  for (int i = 0; i < t.sensors.count; ++i) {
    const Sensor& sensor = t.sensors.sensor[i];
    if (!IsOfMotion(sensor.kind)) continue;
    recorder.Write(ProgramArray::sensordata, s.sensordata, sensor.adr, sensor.dim);
  }
  if (t.sensors.inertia_matrix) {
    InertiaMatrix(t, s);
    recorder.Write(ProgramArray::M, s.M, 0, t.nC);
  }
  const bool all_sites = t.sensors.sites || t.sensors.places;
  if (all_sites) {
    recorder.Write(ProgramArray::site_xpos, s.site_xpos, 0, 3 * t.nsite);
    recorder.Write(ProgramArray::site_xmat, s.site_xmat, 0, 9 * t.nsite);
  }
  for (int i = all_sites ? t.sensors.count : t.sensors.first_range; i < t.sensors.count; ++i) {
    const int site = t.sensors.sensor[i].object.id;
    recorder.Write(ProgramArray::site_xpos, s.site_xpos, 3 * site, 3);
    recorder.Write(ProgramArray::site_xmat, s.site_xmat, 9 * site, 9);
  }
  for (int i = 0; i < (t.sensors.places ? 0 : t.sensors.num_targets); ++i) {
    const int geom = t.sensors.target[i].geom;
    recorder.Write(ProgramArray::geom_xpos, s.geom_xpos, 3 * geom, 3);
    recorder.Write(ProgramArray::geom_xmat, s.geom_xmat, 9 * geom, 9);
  }
  if (t.sensors.velocities) recorder.Write(ProgramArray::cvel, s.cvel, 0, 6 * t.nbody);
  if (t.sensors.motions) {
    recorder.Write(ProgramArray::cinert, s.cinert, 0, 10 * t.nbody);
    recorder.Write(ProgramArray::cdof, s.cdof, 0, 6 * t.nv);
    recorder.Write(ProgramArray::cdof_dot, s.cdof_dot, 0, 6 * t.nv);
  }
  if (!t.sensors.places) return;
  recorder.Write(ProgramArray::xpos, s.xpos, 0, 3 * t.nbody);
  recorder.Write(ProgramArray::xquat, s.xquat, 0, 4 * t.nbody);
  recorder.Write(ProgramArray::xmat, s.xmat, 0, 9 * t.nbody);
  recorder.Write(ProgramArray::xipos, s.xipos, 0, 3 * t.nbody);
  recorder.Write(ProgramArray::ximat, s.ximat, 0, 9 * t.nbody);
  recorder.Write(ProgramArray::geom_xpos, s.geom_xpos, 0, 3 * t.ngeom);
  recorder.Write(ProgramArray::geom_xmat, s.geom_xmat, 0, 9 * t.ngeom);
  recorder.Write(ProgramArray::subtree_com, s.subtree_com, 0, 3 * t.nbody);
  recorder.Write(ProgramArray::ten_length, s.ten_length, 0, t.ntendon);
}

}  // namespace

Recording Record(RecordedStage stage, const Tables& t) {
  const bool shown = t.sensors.frames && stage == RecordedStage::kSmoothDynamics;
  Recorder recorder(t, /*exact=*/shown || stage == RecordedStage::kSensors);
  Scratch& s = recorder.scratch();
  switch (stage) {
    case RecordedStage::kPlaces:
      RecordPlaces(t, recorder);
      break;
    case RecordedStage::kSmoothDynamics:
      RecordSmoothDynamics(t, recorder);
      break;
    case RecordedStage::kAccelerationProduct:
      recorder.Read(ProgramArray::M, s.M, t.nC);
      recorder.Read(ProgramArray::qacc, s.qacc, t.nv);
      AccelerationProduct(t, s);
      recorder.Write(ProgramArray::Ma, s.Ma, 0, t.nv);
      break;
    case RecordedStage::kSearchProduct:
      recorder.Read(ProgramArray::M, s.M, t.nC);
      recorder.Read(ProgramArray::search, s.search, t.nv);
      SearchProduct(t, s);
      recorder.Write(ProgramArray::Mv, s.Mv, 0, t.nv);
      break;
    case RecordedStage::kConstraintAcceleration:
      recorder.Read(ProgramArray::qLD, s.qLD, t.nC);
      recorder.Read(ProgramArray::qLDiagInv, s.qLDiagInv, t.nv);
      recorder.Read(ProgramArray::qfrc_constraint, s.qfrc_constraint, t.nv);
      ConstraintAcceleration(t, s);
      recorder.Write(ProgramArray::acc, s.acc, 0, t.nv);
      break;
    case RecordedStage::kDampedAcceleration:
      recorder.Read(ProgramArray::M, s.M, t.nC);
      recorder.Read(ProgramArray::H, s.H, t.nC);
      recorder.Read(ProgramArray::qvel, s.qvel, t.nv);
      recorder.Read(ProgramArray::qfrc_smooth, s.qfrc_smooth, t.nv);
      recorder.Read(ProgramArray::qfrc_constraint, s.qfrc_constraint, t.nv);
      DampedAcceleration(t, s);
      recorder.Write(ProgramArray::H_inverse_diagonal, s.H_inverse_diagonal, 0, t.nv);
      recorder.WriteExact(ProgramArray::acc, s.acc, t.nv);
      break;
    case RecordedStage::kSensors:
      RecordSensors(t, recorder);
      break;
    case RecordedStage::kCount:
      break;
  }
  return recorder.Take();
}

}  // namespace pyfastenv::lanes
