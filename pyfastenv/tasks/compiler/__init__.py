"""Compiles tasks, with numba or a C++ compiler; imported only when there is something to compile.

``cache`` and ``native`` need no numba. Of it, the extension interface is used as its documentation
describes it (types, data models, typing templates, lowering), so every module here must be imported
before the first compilation. What is not documented, and may change with a version of numba, is
gathered in ``numba_internals``.
"""
