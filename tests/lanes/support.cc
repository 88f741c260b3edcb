#include "support.h"

#include <cstdlib>
#include <stdexcept>

namespace pyfastenv::lanes {

const std::vector<Robot>& Robots() {
  static const std::vector<Robot> robots = {
      {"InvertedPendulum", "inverted_pendulum.xml", 2},
      {"InvertedDoublePendulum", "inverted_double_pendulum.xml", 5},
      {"Reacher", "reacher.xml", 2},
      {"Swimmer", "swimmer.xml", 4},
      {"Hopper", "hopper.xml", 4},
      {"HalfCheetah", "half_cheetah.xml", 5},
      {"Walker2d", "walker2d_v5.xml", 4},
      {"Ant", "ant.xml", 5},
      {"Humanoid", "humanoid.xml", 5},
      {"HumanoidStandup", "humanoidstandup.xml", 5},
      {"Pusher", "pusher_v5.xml", 5},
  };
  return robots;
}

ModelPtr LoadRobot(const Robot& robot) {
  const char* directory = std::getenv("PYFASTENV_ASSETS_DIR");
  if (directory == nullptr) throw std::runtime_error("PYFASTENV_ASSETS_DIR is not set");
  const std::string path = std::string(directory) + "/" + robot.file;
  char error[1000] = "";
  ModelPtr m(mj_loadXML(path.c_str(), nullptr, error, sizeof(error)));
  if (m == nullptr) throw std::runtime_error(path + ": " + error);
  return m;
}

ModelPtr LoadXml(const std::string& xml) {
  mjVFS vfs;
  mj_defaultVFS(&vfs);
  mj_addBufferVFS(&vfs, "model.xml", xml.data(), static_cast<int>(xml.size()));
  char error[1000] = "";
  ModelPtr m(mj_loadXML("model.xml", &vfs, error, sizeof(error)));
  mj_deleteVFS(&vfs);
  if (m == nullptr) throw std::runtime_error(error);
  return m;
}

DataPtr MakeData(const mjModel& m) { return DataPtr(mj_makeData(&m)); }

std::vector<int> Widths() {
  std::vector<int> widths;
  for (const int width : {8, 4, 2, 1}) {
    if (KernelsOfWidth(width) != nullptr) widths.push_back(width);
  }
  return widths;
}

std::shared_ptr<const Plan> MakePlan(const mjModel& m, int width,
                                     const std::vector<std::string>& fields) {
  PlanResult result = Plan::MakeUnchecked(m, *KernelsOfWidth(width), fields);
  if (result.plan == nullptr) throw std::runtime_error(result.refusal);
  return result.plan;
}

void Randomizer::Reset(mjData& d, double scale) {
  mj_resetData(&m_, &d);
  for (int i = 0; i < m_.nv; ++i) d.qvel[i] = 0.5 * scale * Uniform();
  mj_integratePos(&m_, d.qpos, d.qvel, 1);
  for (int i = 0; i < m_.nv; ++i) d.qvel[i] = scale * 2 * Uniform();
}

void Randomizer::DrawControls(mjData& d, double amplitude) {
  for (int i = 0; i < m_.nu; ++i) {
    const double bound = m_.actuator_ctrllimited[i] ? m_.actuator_ctrlrange[2 * i + 1] : 1;
    d.ctrl[i] = amplitude * bound * Uniform();
  }
  for (int i = 0; i < 3 * m_.nmocap; ++i) d.mocap_pos[i] += 0.01 * Uniform();
  for (int i = 0; i < 4 * m_.nmocap; ++i) d.mocap_quat[i] += 0.01 * Uniform();
}

void Randomizer::Push(mjData& d) {
  mju_zero(d.qfrc_applied, static_cast<int>(m_.nv));
  mju_zero(d.xfrc_applied, static_cast<int>(6 * m_.nbody));
  if (Uniform() < 0) return;
  const double weight = m_.body_subtreemass[0];
  if (Uniform() < 0) {
    for (int i = 0; i < m_.nv; ++i) d.qfrc_applied[i] = 0.1 * weight * Uniform();
  }
  for (int i = 0; i < 6 * m_.nbody; ++i) {
    if (Uniform() < -0.8) d.xfrc_applied[i] = (i % 6 < 3 ? weight : 0.1 * weight) * Uniform();
  }
}

}  // namespace pyfastenv::lanes
