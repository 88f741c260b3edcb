"""Own tasks: one Python class for one environment, run by the pool at the built-in ones' speed.

The class is :class:`pyfastenv.Task`; docs/own_tasks.md is the way in.
"""
