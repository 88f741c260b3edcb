"""MetaWorld v3 (Yu et al. 2019, McLean et al. 2025) as own tasks: 50 tasks of one arm."""
