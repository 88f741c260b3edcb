#include "lanes/model_trees.h"

namespace pyfastenv::lanes {

int LastDof(const mjModel& m, int body) {
  while (body > 0 && m.body_dofnum[body] == 0) body = m.body_parentid[body];
  return body > 0 ? m.body_dofadr[body] + m.body_dofnum[body] - 1 : -1;
}

std::vector<int> DofsThatMove(const mjModel& m, int body) {
  std::vector<int> dofs;
  for (int i = LastDof(m, body); i >= 0; i = m.dof_parentid[i]) dofs.insert(dofs.begin(), i);
  return dofs;
}

uint64_t MaskOf(const std::vector<int>& dofs) {
  uint64_t mask = 0;
  for (const int i : dofs) mask |= uint64_t{1} << i;
  return mask;
}

uint64_t TreeOf(const mjModel& m, int body) {
  return m.body_treeid[body] < 0 ? 0 : uint64_t{1} << m.body_treeid[body] % 64;
}

uint64_t TreesOfTendon(const mjModel& m, int tendon, bool own_coefficients) {
  uint64_t trees = 0;
  for (int k = m.tendon_adr[tendon]; k < m.tendon_adr[tendon] + m.tendon_num[tendon]; ++k) {
    const int object = m.wrap_objid[k];
    const int type = m.wrap_type[k];
    if (type == mjWRAP_JOINT) {
      if (own_coefficients || m.wrap_prm[k] != 0) trees |= TreeOf(m, m.jnt_bodyid[object]);
    } else if (type == mjWRAP_SITE) {
      trees |= TreeOf(m, m.site_bodyid[object]);
    } else if (type != mjWRAP_PULLEY) {
      trees |= TreeOf(m, m.geom_bodyid[object]);
    }
  }
  return trees;
}

}  // namespace pyfastenv::lanes
