"""Sample Factory's APPO: ``python examples/integration_sample_factory.py [total_steps]``."""

import sys

from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.train import run_rl
from sf_examples.envpool.mujoco.envpool_mujoco_params import mujoco_envpool_override_defaults

from pyfastenv.integrations.sample_factory import register_sample_factory


def main(total_steps):
    arguments = [
        f"--env={register_sample_factory('HalfCheetah-v5', num_envs=64)}",
        f"--train_for_env_steps={total_steps}",
        "--experiment=halfcheetah",
        "--restart_behavior=overwrite",
        "--use_env_info_cache=False",
        "--device=cpu",
    ]
    parser, _ = parse_sf_args(arguments)
    mujoco_envpool_override_defaults("mujoco_halfcheetah", parser)  # its settings for EnvPool
    run_rl(parse_full_cfg(parser, arguments))
    print("checkpoints and curves are in train_dir/halfcheetah")


if __name__ == "__main__":  # Sample Factory spawns processes
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500_000)
