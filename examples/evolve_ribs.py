"""Finds many gaits of Walker2d with pyribs: how often each foot touches the ground, how fast.

pip install ribs
python examples/evolve_ribs.py [generations] [picture.png]
"""

import sys
from itertools import pairwise

import numpy as np
from ribs.archives import GridArchive
from ribs.emitters import EvolutionStrategyEmitter
from ribs.schedulers import Scheduler

import pyfastenv
from pyfastenv.sampling.population import evaluate_population

EMITTERS, BATCH, HIDDEN = 5, 40, 16
FEET = ("foot", "foot_left")


class Gait(pyfastenv.Task):
    """Walks ahead; its infos say the shares of the steps in which the feet touch the ground."""

    model = "walker2d_v5.xml"  # gymnasium's
    frame_skip = 4
    max_episode_steps = 500
    touched = pyfastenv.memory(2)  # steps in which each foot did

    def setup(self):
        self.floor = self.model.geom("floor").id
        self.foot, self.foot_left = (self.model.geom(f"{name}_geom").id for name in FEET)

    def reset(self, data, rng, info):
        self.touched[:] = 0.0
        data.qpos[:] = self.init_qpos + rng.uniform(-0.005, 0.005, self.model.nq)
        data.qvel[:] = rng.uniform(-0.005, 0.005, self.model.nv)

    def step(self, data, action, info):
        x = data.qpos[0]
        self.simulate(data)
        touches = np.zeros(2)
        for i in range(data.ncon):
            if data.contact[i].geom1 == self.floor:
                touches[0] = max(touches[0], data.contact[i].geom2 == self.foot)
                touches[1] = max(touches[1], data.contact[i].geom2 == self.foot_left)
        self.touched[:] += touches
        info["touched_right"] = self.touched[0]
        info["touched_left"] = self.touched[1]
        reward = 1.0 + (data.qpos[0] - x) / self.dt - 1e-3 * np.sum(np.square(action))
        upright = 0.8 < data.qpos[1] < 2.0 and -1.0 < data.qpos[2] < 1.0
        return reward, not upright

    def observation(self, data, obs):
        obs["position"] = data.qpos[1:]
        obs["velocity"] = np.clip(data.qvel, -10.0, 10.0)


def explore(generations: int, seed: int = 1) -> GridArchive:
    """Returns an archive of policies by their gaits."""
    envs = pyfastenv.make_vec(Gait, EMITTERS * BATCH, autoreset_mode="SameStep")
    sizes = (envs.obs_size, HIDDEN, envs.single_action_space.shape[0])
    num_weights = sum((n + 1) * m for n, m in pairwise(sizes))
    archive = GridArchive(
        solution_dim=num_weights, dims=(40, 40), ranges=((0, 1), (0, 1)), seed=seed
    )
    scheduler = Scheduler(
        archive,
        [
            EvolutionStrategyEmitter(
                archive, x0=np.zeros(num_weights), sigma0=0.3, batch_size=BATCH, seed=seed + i
            )
            for i in range(EMITTERS)
        ],
    )
    for generation in range(generations):
        policies = pyfastenv.PolicySpec.of_vectors(
            scheduler.ask(), sizes, distribution="deterministic"
        )
        ended = evaluate_population(envs, policies, seed=0)
        touched = [ended.infos[f"touched_{side}"][:, 0] for side in ("right", "left")]
        scheduler.tell(ended.returns[:, 0], np.stack(touched, 1) / ended.lengths)
        if generation % 20 == 19 or generation == generations - 1:
            best, filled = archive.stats.obj_max, archive.stats.num_elites
            print(f"generation {generation + 1}: {filled} gaits, the best returns {best:,.0f}")
    envs.close()
    return archive


def draw(archive: GridArchive, file: str) -> None:
    """Draws the best return of every gait."""
    import matplotlib.pyplot as plt

    elites = archive.data()
    returns = np.full(archive.dims, np.nan)
    returns[tuple(archive.int_to_grid_index(elites["index"]).T)] = elites["objective"]
    figure, axes = plt.subplots(figsize=(6.4, 5.2))
    drawn = axes.pcolormesh(*archive.boundaries, returns.T)
    axes.set_title("Walker2d: the best return of every gait")
    axes.set_xlabel("share of steps with the right foot on the ground")
    axes.set_ylabel("with the left foot")
    figure.colorbar(drawn, label="return")
    figure.savefig(file, dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    found = explore(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
    if len(sys.argv) > 2:
        draw(found, sys.argv[2])
