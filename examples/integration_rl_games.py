"""rl_games' PPO: ``python examples/integration_rl_games.py [epochs]``, each of 16,384 steps."""

import sys
from pathlib import Path

import rl_games
import yaml
from rl_games.common.algo_observer import DefaultAlgoObserver
from rl_games.torch_runner import Runner

from pyfastenv.integrations.rl_games import register_rl_games


class PrintReturn(DefaultAlgoObserver):
    def after_print_stats(self, frame, epoch_num, total_time):
        super().after_print_stats(frame, epoch_num, total_time)
        if self.algo.game_rewards.current_size > 0:
            print(f"return {self.algo.game_rewards.get_mean().item():,.0f}")


epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
# its own settings for EnvPool, with our environments
path = Path(rl_games.__file__).parent / "configs/mujoco/halfcheetah_envpool.yaml"
params = yaml.safe_load(path.read_text())["params"]
params["torch_threads"] = 1
params["config"] |= {
    "name": "HalfCheetah-v5",
    "env_name": register_rl_games("HalfCheetah-v5"),
    "env_config": {"device": "cpu"},
    "device": "cpu",
    "device_name": "cpu",
    "torch_compile": False,
    "max_epochs": epochs,
}
runner = Runner(PrintReturn())
runner.load({"params": params})
runner.run({"train": True})
