"""Between environments and tensors: rollouts, staging, replay, exploration."""
