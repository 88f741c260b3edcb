"""Whether two samples are of one distribution, and whether one's rows are independent.

Each comparison raises AssertionError and says where. Bounds are Bonferroni's over everything that
one comparison tests.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Starts = NDArray[np.float64]  # (n, size): one start per row


def varying(starts: Starts) -> NDArray[np.bool_]:
    """Which dimensions are random."""
    return np.asarray(np.ptp(starts, axis=0) > 0)


def assert_distributed_alike(ours: Starts, theirs: Starts, significance: float) -> float:
    """Two samples (n, size): equal constants; KS, mean and variance of what varies.

    Returns:
        The smallest p-value times the number of tests, 1 at most; above ``significance``.
    """
    random = varying(ours) | varying(theirs)  # what is rarely not 0 may be so in one alone
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


def assert_independent(a: Starts, b: Starts, significance: float) -> None:
    """Rows of two samples (n, size), pair by pair: no row twice, no correlations."""
    random = varying(a)
    assert not (a[:, random] == b[:, random]).all(axis=1).any(), "equal rows"
    bound = significance / max(random.sum(), 1)
    for i in np.flatnonzero(random):
        p = stats.pearsonr(a[:, i], b[:, i]).pvalue
        assert p > bound, f"dimension {i}: correlated, p = {p:.2g}"
