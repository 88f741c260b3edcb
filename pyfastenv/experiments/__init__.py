"""The experiments of four documents, each one file: baseline, ours, table, plot, verdict."""
