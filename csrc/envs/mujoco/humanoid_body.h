// What Humanoid and HumanoidStandup share: the observation's parts and the tendon infos.
#pragma once

#include "envs/mujoco/mujoco_env.h"

namespace pyfastenv {

/// Which parts the observation has, and from which body and degree of freedom on: v4 includes the
/// world body and the free joint's zeros, v5 leaves them out.
struct HumanoidObservation {
  HumanoidObservation(const Params& params, GymVersion version, bool exclude_positions)
      : skipped_qpos(exclude_positions ? 2 : 0),
        first_body(version == GymVersion::kV5 ? 1 : 0),
        first_dof(version == GymVersion::kV5 ? 6 : 0) {
    if (version == GymVersion::kV4) return;
    cinert = params.GetBool("include_cinert_in_observation", true);
    cvel = params.GetBool("include_cvel_in_observation", true);
    qfrc_actuator = params.GetBool("include_qfrc_actuator_in_observation", true);
    cfrc_ext = params.GetBool("include_cfrc_ext_in_observation", true);
  }

  /// The fields of mjData that the tasks read; v5's infos have the tendons.
  static std::vector<lanes::Field> Reads(std::vector<lanes::Field> more, GymVersion version) {
    using lanes::Field;
    more.insert(more.end(), {Field::cinert, Field::cvel, Field::qfrc_actuator, Field::cfrc_ext});
    if (version == GymVersion::kV5) {
      more.insert(more.end(), {Field::ten_length, Field::ten_velocity});
    }
    return more;
  }

  int Size(const mjModel& m) const {
    const int bodies = m.nbody - first_body;
    return m.nq - skipped_qpos + m.nv + (cinert ? 10 * bodies : 0) + (cvel ? 6 * bodies : 0) +
           (qfrc_actuator ? m.nv - first_dof : 0) + (cfrc_ext ? 6 * bodies : 0);
  }

  void Write(const mjModel& m, const mjData& d, double* obs) const {
    const ptrdiff_t bodies = m.nbody - first_body;
    obs = Append(obs, d.qpos + skipped_qpos, m.nq - skipped_qpos);
    obs = Append(obs, d.qvel, m.nv);
    if (cinert) obs = Append(obs, d.cinert + 10 * first_body, 10 * bodies);
    if (cvel) obs = Append(obs, d.cvel + 6 * first_body, 6 * bodies);
    if (qfrc_actuator) obs = Append(obs, d.qfrc_actuator + first_dof, m.nv - first_dof);
    if (cfrc_ext) Append(obs, d.cfrc_ext + 6 * first_body, 6 * bodies);
  }

  int skipped_qpos;
  int first_body;
  int first_dof;
  bool cinert = true, cvel = true, qfrc_actuator = true, cfrc_ext = true;
};

struct TendonInfos {
  TendonInfos() = default;
  TendonInfos(SpecBuilder& spec, const mjModel& m)
      : length(AddPositionInfo(spec, "tendon_length", GymVersion::kV5, m.ntendon)),
        velocity(AddPositionInfo(spec, "tendon_velocity", GymVersion::kV5, m.ntendon)) {}

  void Write(const mjData& d, InfoRow info) const {
    std::copy_n(d.ten_length, length.width, info.vector(length).begin());
    std::copy_n(d.ten_velocity, velocity.width, info.vector(velocity).begin());
  }

  InfoSlot length, velocity;
};

}  // namespace pyfastenv
