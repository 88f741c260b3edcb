"""PPO from Python: ``python examples/train.py [total_steps]``."""

import sys

from pyfastenv.algorithms import ppo

total_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
result = ppo.train(ppo.Config.preset("Hopper-v5", total_steps=total_steps))
print(f"return {result.evaluation['eval/return']:,.0f}; everything else is in {result.run_dir}")
