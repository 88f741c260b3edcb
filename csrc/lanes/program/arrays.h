// The arrays of Scratch that straight-line programs read and write, numbers of the model included.
#pragma once

#include "lanes/numbers.h"

#define PYFASTENV_LANES_PROGRAM_ARRAYS(X) \
  X(qpos)                                 \
  X(qvel)                                 \
  X(ctrl)                                 \
  X(act)                                  \
  X(act_dot)                              \
  X(mocap_pos)                            \
  X(mocap_quat)                           \
  X(sin_half)                             \
  X(cos_half)                             \
  X(spring_turn)                          \
  X(ball_turn)                            \
  X(xpos)                                 \
  X(xquat)                                \
  X(xmat)                                 \
  X(site_xpos)                            \
  X(cvel)                                 \
  X(cdof_dot)                             \
  X(ten_length)                           \
  X(ten_J)                                \
  X(geom_xpos)                            \
  X(geom_xmat)                            \
  X(subtree_com)                          \
  X(cdof)                                 \
  X(M)                                    \
  X(qLD)                                  \
  X(qLDiagInv)                            \
  X(H)                                    \
  X(H_inverse_diagonal)                   \
  X(free_matrix)                          \
  X(qfrc_passive)                         \
  X(qfrc_bias)                            \
  X(qfrc_actuator)                        \
  X(qfrc_smooth)                          \
  X(qacc_smooth)                          \
  X(qfrc_constraint)                      \
  X(acc)                                  \
  X(qacc)                                 \
  X(Ma)                                   \
  X(search)                               \
  X(Mv)                                   \
  X(cfrc_ext)                             \
  X(xipos)                                \
  X(ximat)                                \
  X(site_xmat)                            \
  X(cinert)                               \
  X(sensordata)                           \
  X(spill)

namespace pyfastenv::lanes {

enum class ProgramArray : int {
#define PYFASTENV_LANES_ARRAY(name, ...) name,
  PYFASTENV_LANES_PROGRAM_ARRAYS(PYFASTENV_LANES_ARRAY)
      PYFASTENV_LANES_NUMBERS(PYFASTENV_LANES_ARRAY) PYFASTENV_LANES_DERIVED(PYFASTENV_LANES_ARRAY)
#undef PYFASTENV_LANES_ARRAY
          kCount
};

}  // namespace pyfastenv::lanes
