"""judo (judo-rai 0.1.0): its controllers' rollouts by :mod:`pyfastenv.physics`.

    judo.utils.mj_rollout_backend.Rollout = pyfastenv.integrations.judo.Rollout

before a controller is made; controls are the same bit for bit. judo's wheel asks for an older
MuJoCo and is installed with ``--no-deps``. What is here does not import it.
"""

from __future__ import annotations

from typing import Any

import mujoco

from pyfastenv import physics
from pyfastenv.physics.arguments import as_list
from pyfastenv.vector.cpus import available_cpus


class Rollout(physics.Rollout):
    """Rollouts on as many threads as there are CPUs; judo asks for one per rollout.

    Args:
        nthread: At most so many.
    """

    def __init__(self, *, nthread: int | None = None):
        super().__init__(nthread=min(nthread or 0, available_cpus()))

    def rollout(self, model: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        """:meth:`pyfastenv.physics.Rollout.rollout`; of ``data`` one per thread is used."""
        data = as_list("data", data, mujoco.MjData)
        return super().rollout(model, data[: max(1, self.nthread)], *args, **kwargs)
