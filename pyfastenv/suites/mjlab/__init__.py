"""mjlab's tasks for Go1 and G1; pyfastenv.suites has the ids."""
