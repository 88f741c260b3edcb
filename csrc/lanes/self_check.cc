#include "lanes/self_check.h"

#include <cstring>
#include <random>
#include <vector>

#include "lanes/lane_stepper.h"
#include "lanes/own_numbers.h"
#include "mujoco/error_trap.h"

namespace pyfastenv::lanes {

namespace {

constexpr int kTrajectories = 16;
constexpr int kSteps = 20;

struct DeleteData {
  void operator()(mjData* data) const { mj_deleteData(data); }
};

// A state near the default pose, moving, with controls up to a fifth beyond their bounds.
void Disturb(const mjModel& m, mjData& d, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  mj_resetData(&m, &d);
  for (int i = 0; i < m.nv; ++i) d.qvel[i] = 0.3 * uniform(random);
  mj_integratePos(&m, d.qpos, d.qvel, 1);  // a turn stays a turn
  for (int i = 0; i < m.nv; ++i) d.qvel[i] = uniform(random);
  for (int i = 0; i < m.na; ++i) d.act[i] = uniform(random);
}

void DrawControls(const mjModel& m, mjData& d, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(-1.2, 1.2);
  for (int i = 0; i < m.nu; ++i) {
    const double bound = m.actuator_ctrllimited[i] ? m.actuator_ctrlrange[2 * i + 1] : 1;
    d.ctrl[i] = bound * uniform(random);
  }
}

}  // namespace

std::string SelfCheck(const mjModel& model, const std::shared_ptr<const Plan>& plan) {
  LaneStepper stepper(plan);
  std::unique_ptr<mjData, DeleteData> data(mj_makeData(&model));
  if (data == nullptr) return "MuJoCo could not allocate mjData";
  const int width = plan->width();
  const auto size = static_cast<size_t>(plan->tables().row.size);
  std::vector<double> rows(size * static_cast<size_t>(width)), ours = rows, theirs(size);
  std::vector<double*> from, to;
  for (int l = 0; l < width; ++l) {
    from.push_back(rows.data() + static_cast<size_t>(l) * size);
    to.push_back(ours.data() + static_cast<size_t>(l) * size);
  }
  std::mt19937_64 random(1);
  for (int group = 0; group < kTrajectories; group += width) {
    OwnNumbers numbers(model, *plan, width);
    for (int l = 0; l < width; ++l) numbers.Draw(l, 0.2, random);
    for (int l = 0; l < width; ++l) {
      Disturb(model, *data, random);
      mj_getState(&model, data.get(), from[l], mjSTATE_INTEGRATION);
    }
    for (int k = 0; k < kSteps; ++k) {
      for (int l = 0; l < width; ++l) {
        mj_setState(&model, data.get(), from[l], mjSTATE_INTEGRATION);
        DrawControls(model, *data, random);
        mj_getState(&model, data.get(), from[l], mjSTATE_INTEGRATION);
      }
      ours = rows;
      // half of the steps by straight-line code
      const bool keep_fields = k % 2 == 0;
      const unsigned redo =
          stepper.Step(from.data(), to.data(), width, 1, keep_fields, numbers.from(0));
      for (int l = 0; l < width; ++l) {
        mj_setState(&model, data.get(), from[l], mjSTATE_INTEGRATION);
        const mjModel own = numbers.Of(l);
        try {
          Trapped([&] { mj_step(&own, data.get()); });
        } catch (const MujocoError& error) {
          return std::string("an error of MuJoCo's: ").append(error.what());
        }
        mj_getState(&model, data.get(), theirs.data(), mjSTATE_INTEGRATION);
        const bool same = std::memcmp(theirs.data(), to[l], size * sizeof(double)) == 0;
        if ((redo >> l & 1) == 0 && !same) {
          return "step " + std::to_string(k) + " of trajectory " + std::to_string(group + l);
        }
        std::memcpy(from[l], theirs.data(), size * sizeof(double));
      }
    }
  }
  return {};
}

}  // namespace pyfastenv::lanes
