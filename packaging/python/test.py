"""Uses an installed wheel: runs that are served, how they end, timings, duels, errors."""

import importlib.util
import os
import subprocess
import sys
import tempfile

import vellum

assert os.access(vellum.command(), os.X_OK) and os.path.isfile(vellum.library())

run = vellum.run(sys.executable, "-c", "print(len([str(i) for i in range(200000)]))", stdout=subprocess.PIPE, text=True)
assert (run.returncode, run.stdout) == (0, "200000\n"), run
assert run.on_vellum and run.reason is None and run.peak_bytes > 10 << 20, run.report["attachment"]
assert "on Vellum: exit status 0" in repr(run), run
with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
    script.write("import sys; sys.exit(int(sys.argv[1]))")
    script.flush()
    assert vellum.run(script.name, "3").returncode == 3
    try:
        vellum.run(script.name, "4", check=True)
        raise SystemExit("a failed program is no error")
    except subprocess.CalledProcessError as error:
        assert error.returncode == 4
try:
    vellum.run("no-such-program", stderr=subprocess.PIPE, text=True)
    raise SystemExit("a program that is not there ran")
except vellum.VellumError as error:
    assert "no-such-program" in str(error), error


def short():
    return sum(range(300))


def long():
    return sum(range(3000))


timing = vellum.measure.time(short, observations=200)
assert 0 < timing.min <= timing.median <= timing.max and timing.n == 200 == len(timing.times), timing
assert timing.name == "short" and repr(timing).startswith("short: median "), timing
assert vellum.measure.time(lambda: None, observations=50).min < timing.min
duel = vellum.measure.duel(short, long, seconds=0.3)
assert duel.direction == 1 and 3 < duel.ratio.low <= duel.ratio.estimate <= duel.ratio.high, duel
assert "long is " in repr(duel) and " slower than short" in repr(duel), duel
assert 3 < duel.b.estimate / duel.a.estimate and len(duel.rounds) > 2, duel
# Pictures where they can be drawn, and text where not.
drawn = timing._repr_png_()
assert (drawn is None) == (importlib.util.find_spec("matplotlib") is None)

calls = 0


def fails_late():
    global calls
    calls += 1
    if calls > 10000:
        raise KeyError("late")


for times in (lambda: vellum.measure.time(fails_late), lambda: vellum.measure.duel(short, fails_late)):
    try:
        times()
        raise SystemExit("an exception was lost")
    except KeyError:
        pass
for wrong in (5, "sorted()"):
    try:
        vellum.measure.time(wrong)
        raise SystemExit("what is no function was timed")
    except TypeError as error:
        assert "lambda" in str(error)
print(repr(timing), repr(duel), sep="\n")
