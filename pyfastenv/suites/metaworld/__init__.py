"""MetaWorld v3 (Yu et al. 2019, McLean et al. 2025) as own tasks: 50 tasks of one arm."""

from pyfastenv.suites.metaworld.benchmarks import Benchmark, make_benchmark

__all__ = ["Benchmark", "make_benchmark"]
