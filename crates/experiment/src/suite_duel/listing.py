"""Leaves the one benchmark that is to run, or writes down which benchmarks there are."""

import json
import os

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    benchmarks = [item for item in items if "benchmark" in getattr(item, "fixturenames", ())]
    only = os.environ.get("VELLUM_BENCHMARK")
    if only is None:
        with open(os.environ["VELLUM_BENCHMARKS"], "w") as names:
            json.dump([item.nodeid for item in benchmarks], names)
    items[:] = [item for item in benchmarks if only in (None, item.nodeid)]
