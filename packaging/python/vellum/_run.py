"""Runs programs by the command `vellum`, which was installed with this package."""

import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


class VellumError(Exception):
    """What Vellum could not do, and the cure."""


def _installed(end):
    """The file of this installation whose path ends so."""
    try:
        files = importlib.metadata.files("vellum") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        found = str(Path(file.locate()).resolve())
        if found.endswith("/" + end) and os.path.isfile(found):
            return found
    raise VellumError(f"{end} is not there: install the package `vellum` by pip")


def command():
    """The path of the command `vellum`."""
    return _installed("bin/vellum")


def library():
    """The path of `libvellum.so`, which can be preloaded (`LD_PRELOAD`) without `vellum run`."""
    return _installed("lib/vellum/libvellum.so")


class Run:
    """A program's run on Vellum: how it ended, and the report of `vellum run --json` (docs/run-schema.md)."""

    def __init__(self, completed, report):
        self.args = completed.args
        #: As of `subprocess.run`: negative for the number of a signal.
        self.returncode = completed.returncode
        self.stdout = completed.stdout
        self.stderr = completed.stderr
        #: The whole report, as a dictionary.
        self.report = report
        self.wall_seconds = report["time"]["wall_ns"] / 1e9
        self.user_seconds = report["time"]["user_ns"] / 1e9
        self.system_seconds = report["time"]["system_ns"] / 1e9
        self.peak_bytes = report["memory"]["peak_bytes"]
        #: Whether the program ran on Vellum's memory.
        self.on_vellum = report["attachment"]["program"] == "serving"
        #: Why not, in words; None if it did.
        self.reason = report["attachment"].get("reason")

    def __repr__(self):
        peak = "" if self.peak_bytes is None else f", peak {self.peak_bytes / 2**20:.1f} MiB"
        where = "on Vellum" if self.on_vellum else f"without Vellum ({self.reason})"
        return f"<Run {where}: exit status {self.returncode}, {self.wall_seconds:.3f} s{peak}>"


def run(program, *arguments, options=(), check=False, **others):
    """Runs a program on Vellum and returns a `Run`.

    `program` is a path or a name to be found; a path that ends in `.py` is run by this Python. `options` go to
    `vellum run` (`["--frames", "512M"]`); what else is given by name goes to `subprocess.run` (`cwd`, `env`, `input`,
    `stdout`, `timeout`). With `check` a program that fails is an error.
    """
    words = [os.fspath(program), *map(os.fspath, arguments)]
    if words[0].endswith(".py"):
        words.insert(0, sys.executable)
    with tempfile.TemporaryDirectory(prefix="vellum-python-") as folder:
        file = Path(folder, "report.json")
        line = [command(), "run", "--quiet", "--json", str(file), *options, "--", *words]
        completed = subprocess.run(line, check=False, **others)
        if not file.is_file():
            said = completed.stderr if isinstance(completed.stderr, str) else ""
            raise VellumError(f"`vellum run` did not run {words[0]} (exit status {completed.returncode}) {said}".strip())
        report = json.loads(file.read_text())
    if check and completed.returncode != 0:
        raise subprocess.CalledProcessError(completed.returncode, words, completed.stdout, completed.stderr)
    return Run(completed, report)
