"""MuJoCo Playground's tasks: one file per robot; pyfastenv.suites has the ids."""
