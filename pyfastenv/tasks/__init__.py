"""Own tasks: one Python class for one environment, run by the pool at the built-in ones' speed.

The class is :class:`pyfastenv.Task`; docs/own_tasks.md is the way in. Here, too, a room knows those
below it: ``make`` and ``registration`` over ``program`` over ``compiler`` (the only one that
imports numba, and only when something has to be compiled), ``cache``, ``sources`` and ``plain``,
over ``task``.
"""
