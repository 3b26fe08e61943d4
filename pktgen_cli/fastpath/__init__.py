"""The pieces of `_fastpath.pyx`: kernel declarations, inline helpers and one file a backend.

Nothing here is imported at run time; `_fastpath` includes it when it is compiled.
"""
