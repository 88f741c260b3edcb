"""Where a run's metrics go beside metrics.jsonl: one file per logger, named in registry.py."""
