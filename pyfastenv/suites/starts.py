"""How long a start is sought that fits."""

# then there is none, by a parameter or by an environment's own model: it would be sought for ever
MOST_DRAWS = 10_000
