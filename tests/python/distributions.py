"""Whether two samples are of one distribution.

What is not raises AssertionError, which says where. Bounds are Bonferroni's over everything tested.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Starts = NDArray[np.float64]  # (n, size): one start per row


def assert_distributed_alike(ours: Starts, theirs: Starts, significance: float) -> float:
    """Two samples (n, size): equal constants; KS, mean and variance of what varies.

    Returns:
        The smallest p-value times the number of tests, 1 at most; above ``significance``.
    """
    # what is rarely not 0 may be so in one alone
    random = (np.ptp(ours, axis=0) > 0) | (np.ptp(theirs, axis=0) > 0)
    assert np.array_equal(ours[0, ~random], theirs[0, ~random]), "constants differ"
    num_tests = 3 * max(random.sum(), 1)
    least = 1.0
    for i in np.flatnonzero(random):
        a, b = ours[:, i], theirs[:, i]
        deviations = (a - a.mean()) ** 2, (b - b.mean()) ** 2
        found = {
            "distribution": stats.ks_2samp(a, b, method="asymp"),
            "mean": stats.ttest_ind(a, b, equal_var=False),
            "variance": stats.ttest_ind(*deviations, equal_var=False),
        }
        for name, test in found.items():
            p = test.pvalue
            assert p > significance / num_tests, f"dimension {i}: another {name}, p = {p:.2g}"
            least = min(least, p)
    return float(min(1.0, least * num_tests))
