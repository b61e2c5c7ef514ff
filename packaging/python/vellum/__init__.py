"""Vellum from Python: programs on Vellum's memory (`run`), and timings that can be trusted (`vellum.measure`).

The command `vellum` comes with this package: `vellum run -- python3 script.py` in a shell does what `run` does here.
"""

from ._run import Run, VellumError, command, library, run

__all__ = ["Run", "VellumError", "command", "library", "measure", "run"]


def __getattr__(name):
    # The measuring library is loaded when it is first asked for.
    if name == "measure":
        import importlib

        return importlib.import_module(".measure", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
