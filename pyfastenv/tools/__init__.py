"""The commands beside training: doctor, bench, runs, report."""
