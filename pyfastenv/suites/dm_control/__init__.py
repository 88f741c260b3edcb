"""dm_control's suite: one file per domain; pyfastenv.suites has the ids."""
