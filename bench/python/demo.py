"""``make demo``: the same numbers as gymnasium, and how much sooner.

First compares every observation, reward and flag with gymnasium's SyncVectorEnv, then measures
both, and the physics limit, in turn. Takes less than half a minute.
"""

from __future__ import annotations

import sys
import warnings

from pyfastenv.tools.bench import race
from pyfastenv.tools.contestants import first_difference

ENV_IDS = ("HalfCheetah-v5", "Humanoid-v5")
SECONDS = 6.0


def main() -> None:
    warnings.filterwarnings("ignore", module="gymnasium")
    for env_id in ENV_IDS:
        difference = first_difference(env_id)
        if difference is not None:
            sys.exit(f"{env_id}: pyfastenv and gymnasium differ in {difference}")
        print(f"{env_id}: observations, rewards and flags equal gymnasium's in every bit")
    for env_id in ENV_IDS:
        print(f"\n{race(env_id, seconds=SECONDS)}", flush=True)


if __name__ == "__main__":
    main()
