// Which MuJoCo the core is compiled against, for what versions differ in.
#pragma once

#include <mujoco/mujoco.h>

// As 3011000 for 3.11.0, which is how MuJoCo writes its versions since 3.5; before, 3.4.0 was 340.
#define PYFASTENV_MUJOCO_NUMBER(version)                                                      \
  ((version) < 1000 ? (version) / 100 * 1000000 + (version) / 10 % 10 * 1000 + (version) % 10 \
                    : (version))
#define PYFASTENV_MUJOCO PYFASTENV_MUJOCO_NUMBER(mjVERSION_HEADER)
