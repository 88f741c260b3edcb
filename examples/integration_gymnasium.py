"""A2C in gymnasium's vector wrappers: ``python examples/integration_gymnasium.py [iterations]``."""

import sys

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers.vector import NormalizeObservation, NormalizeReward, RecordEpisodeStatistics
from torch import nn

iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
envs = gymnasium.make_vec("pyfastenv/InvertedPendulum-v5", num_envs=64)  # was: the same without pyfastenv/
envs = statistics = RecordEpisodeStatistics(envs)
envs = NormalizeReward(NormalizeObservation(envs))
