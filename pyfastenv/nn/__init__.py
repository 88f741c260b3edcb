"""Networks, flows and optimisers: tensors, and nothing of environments."""
