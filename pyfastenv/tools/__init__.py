"""What the command line does beside training: doctor, bench, runs, report."""
