"""Own tasks as environments: compiled in the pool, plain in Python."""
