// Coriolis, centrifugal and gravitational forces by recursive Newton-Euler: mj_rne.
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void BiasForces(const Tables& t, Scratch& s) {
  for (int i = 0; i < 3; ++i) {
    s.body_acc[i] = Splat(0);
    s.body_acc[3 + i] = s.world_acc[i];
  }
  for (int b = 1; b < t.nbody; ++b) {
    const Body& body = t.body[b];
    Lane* acc = s.body_acc + 6 * b;
    Lane* force = s.body_force + 6 * b;
    SumMotions(acc, s.cdof_dot + 6 * body.first_dof, s.qvel + body.first_dof, body.num_dofs);
    for (int i = 0; i < 6; ++i) acc[i] = s.body_acc[6 * body.parent + i] + acc[i];
    Lane momentum[6], gyroscopic[6];
    MulInertia(force, s.cinert + 10 * b, acc);
    MulInertia(momentum, s.cinert + 10 * b, s.cvel + 6 * b);
    CrossForce(gyroscopic, s.cvel + 6 * b, momentum);
    for (int i = 0; i < 6; ++i) force[i] = force[i] + gyroscopic[i];
  }
  for (int b = t.nbody - 1; b > 0; --b) {
    const int parent = t.body[b].parent;
    if (parent == 0) continue;
    Lane* sum = s.body_force + 6 * parent;
    for (int i = 0; i < 6; ++i) sum[i] = sum[i] + s.body_force[6 * b + i];
  }
  for (int i = 0; i < t.nv; ++i) {
    s.qfrc_bias[i] = Dot6(s.cdof + 6 * i, s.body_force + 6 * t.dof[i].body);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
