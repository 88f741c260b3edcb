"""A run, on disk: its options, its folder with one owner, its metrics, and its policies back."""
