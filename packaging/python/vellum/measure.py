"""Timings and duels of Python functions, by Vellum's measuring library.

    >>> import vellum
    >>> vellum.measure.time(lambda: sorted(range(1000)))
    >>> vellum.measure.duel(lambda: sum(range(100)), lambda: sum(list(range(100))))

A function that is too short for the clock is called many times in each observation. The call from the library into
Python, which each observation pays once, is measured, and subtracted with the clock's own cost.
"""

import ctypes
import itertools
import os
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

from ._run import VellumError

__all__ = ["Duel", "Interval", "Timing", "duel", "time"]

_BEST, _STAMPS, _AUTO = -1, 0, -1
# An observation takes at least so long, in which the call into Python, of less than 1 us, is little.
_OBSERVATION_NS = 50_000


class _Stat(Structure):
    _fields_ = [("n", c_uint64), ("mean", c_double), ("min", c_double), ("max", c_double), ("std", c_double)]


class _Base(Structure):
    _fields_ = [*_Stat._fields_, ("step", c_double)]


class _Observation(Structure):
    _fields_ = [
        ("start_ns", c_uint64),
        ("wall_ns", c_double),
        ("cpu_ns", c_double),
        ("steal_ns", c_double),
        ("minor_faults", c_uint32),
        ("major_faults", c_uint32),
        ("voluntary_switches", c_uint32),
        ("involuntary_switches", c_uint32),
    ]


class _SuiteOptions(Structure):
    _fields_ = [
        ("clock_kind", c_int),
        ("detail", c_int),
        ("observations", c_size_t),
        ("seconds", c_double),
        ("warm_up_seconds", c_double),
        ("batching", c_int64),
        ("only", c_char_p),
        ("hold_collectors", c_int),
        ("reserved", c_int),
    ]


class _DuelOptions(Structure):
    _fields_ = [
        ("clock_kind", c_int),
        ("order", c_int),
        ("seconds", c_double),
        ("warm_up_seconds", c_double),
        ("rounds_max", c_size_t),
        ("batching", c_int64),
        ("seed", c_uint64),
    ]


class _Interval(Structure):
    _fields_ = [("estimate", c_double), ("low", c_double), ("high", c_double)]


class _Comparison(Structure):
    _fields_ = [
        ("rounds", c_uint64),
        ("ratio", _Interval),
        ("control", _Interval),
        ("a", _Interval),
        ("b", _Interval),
        ("direction", c_int),
        ("reserved", c_int),
    ]


_Operation = ctypes.PYFUNCTYPE(None, c_void_p)


def _load():
    """The library with the types of what is used here. It runs what it calls in Python, so the lock stays held."""
    path = Path(__file__).with_name("libvelmeasure.so")
    try:
        library = ctypes.PyDLL(os.fspath(path))
    except OSError as error:
        raise VellumError(f"the measuring library cannot be loaded: {error}") from error
    signatures = {
        "vel_measure_error": (c_char_p, []),
        "vel_suite_new": (c_void_p, [c_char_p]),
        "vel_suite_case": (c_int, [c_void_p, c_char_p, _Operation, c_void_p]),
        "vel_suite_run": (c_void_p, [c_void_p, POINTER(_SuiteOptions)]),
        "vel_suite_free": (None, [c_void_p]),
        "vel_ran_series": (c_void_p, [c_void_p, c_size_t]),
        "vel_ran_refusal": (c_char_p, [c_void_p, c_size_t]),
        "vel_ran_free": (None, [c_void_p]),
        "vel_series_count": (c_size_t, [c_void_p]),
        "vel_series_get": (c_int, [c_void_p, c_size_t, POINTER(_Observation)]),
        "vel_series_batch": (c_uint64, [c_void_p]),
        "vel_series_base": (c_int, [c_void_p, POINTER(_Base)]),
        "vel_duel_run": (c_void_p, [_Operation, c_void_p, _Operation, c_void_p, POINTER(_DuelOptions)]),
        "vel_duel_rounds": (c_size_t, [c_void_p]),
        "vel_duel_round": (c_int, [c_void_p, c_size_t, POINTER(c_double * 3)]),
        "vel_duel_compare": (c_int, [c_void_p, POINTER(_Comparison)]),
        "vel_duel_free": (None, [c_void_p]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_library = _load()


def _error():
    return VellumError((_library.vel_measure_error() or b"the measuring library failed").decode())


def _checked(result):
    """A pointer that is not null, or a status of 0."""
    if result is None or result == -1:
        raise _error()
    return result


class _Calls:
    """A function, called `number` times by each call from the library. What it raises ends the calls."""

    def __init__(self, function, number):
        if not callable(function):
            raise TypeError(f"a function is timed, and not {function!r}: write `lambda: ...`")
        self.raised = None

        def call(_context):
            if self.raised is not None:
                return
            try:
                for _ in itertools.repeat(None, number):
                    function()
            except BaseException as error:  # raised again when the library has returned
                self.raised = error

        self.operation = _Operation(call)

    def check(self):
        if self.raised is not None:
            raise self.raised


def _number(function):
    """How many calls of `function` make an observation."""
    from time import perf_counter_ns

    if not callable(function):
        raise TypeError(f"a function is timed, and not {function!r}: write `lambda: ...`")
    number = 1
    while True:
        began = perf_counter_ns()
        for _ in itertools.repeat(None, number):
            function()
        took = perf_counter_ns() - began
        if took >= _OBSERVATION_NS or number >= 1 << 20:
            return number
        number = min(max(number * 2, number * _OBSERVATION_NS // max(took, 1)), 1 << 20)


def _ns(value):
    """A time in words, of three digits."""
    for unit, size in (("ns", 1), ("µs", 1e3), ("ms", 1e6)):
        if value < 999.5 * size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e9:.3g} s"


def _picture(draw):
    """A figure as PNG, by matplotlib; None where that is not installed, so that a notebook shows the text."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    import io

    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    draw(figure.subplots())
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=100)
    return file.getvalue()


class Timing:
    """Observations of one function; times in nanoseconds a call."""

    def __init__(self, name, times, number, overhead_ns):
        self.name = name
        #: Each observation's time, in order.
        self.times = times
        #: Calls in each observation.
        self.number = number
        #: What one observation paid beside its calls, and what was subtracted.
        self.overhead_ns = overhead_ns
        self.n = len(times)
        self.mean = sum(times) / self.n
        self.min, self.max = min(times), max(times)
        ordered = sorted(times)
        self.median = (ordered[(self.n - 1) // 2] + ordered[self.n // 2]) / 2
        squares = sum((time - self.mean) ** 2 for time in times)
        self.std = (squares / (self.n - 1)) ** 0.5 if self.n > 1 else 0.0

    def __repr__(self):
        calls = "" if self.number == 1 else f" of {self.number} calls"
        return (
            f"{self.name}: median {_ns(self.median)}, least {_ns(self.min)}, mean {_ns(self.mean)} "
            f"± {_ns(self.std)} ({self.n} observations{calls})"
        )

    def plot(self, axes):
        """Draws a histogram of the times on matplotlib's `axes`. The longest hundredth is cut off, and said."""
        ordered = sorted(self.times)
        most = ordered[max(0, len(ordered) - 1 - len(ordered) // 100)]
        shown = [time / 1e3 for time in self.times if time <= most]
        axes.hist(shown, bins=60)
        axes.set_xlabel("µs a call")
        axes.set_ylabel("observations")
        axes.set_title(f"{self.name} ({self.n - len(shown)} longer ones not shown)")
        return axes

    def _repr_png_(self):
        return _picture(self.plot)


class Interval:
    """An estimate with its 95 % interval."""

    def __init__(self, interval):
        self.estimate, self.low, self.high = interval.estimate, interval.low, interval.high

    def __repr__(self):
        return f"{self.estimate:.4g} ({self.low:.4g} to {self.high:.4g})"


class Duel:
    """Two functions that ran by turns in random order; times in nanoseconds a call."""

    def __init__(self, comparison, rounds, names):
        self.names = names
        #: B's time by A's: above 1 where B takes longer.
        self.ratio = Interval(comparison.ratio)
        #: A's by A's own, which this machine made of no difference.
        self.control = Interval(comparison.control)
        self.a, self.b = Interval(comparison.a), Interval(comparison.b)
        #: -1: B is faster; 1: B is slower; 0: no difference was shown.
        self.direction = comparison.direction
        #: Each round's times: A, A again, B.
        self.rounds = rounds

    def __repr__(self):
        a, b = self.names
        percent = abs(self.ratio.estimate - 1) * 100
        verdict = {
            -1: f"{b} is {percent:.2g} % faster than {a}",
            0: f"no difference between {a} and {b} was shown",
            1: f"{b} is {percent:.2g} % slower than {a}",
        }[self.direction]
        return f"{verdict}: ratio {self.ratio!r}, control {self.control!r} ({len(self.rounds)} rounds)"

    def plot(self, axes):
        """Draws the rounds' ratios, and those of the control, on matplotlib's `axes`."""
        for column, label in ((1, "control"), (2, f"{self.names[1]} / {self.names[0]}")):
            ratios = sorted(times[column] / times[0] for times in self.rounds if times[0] > 0)
            cut = len(ratios) // 50
            axes.hist(ratios[cut : len(ratios) - cut], bins=60, histtype="step", label=label)
        axes.axvline(1, linewidth=0.5, color="grey")
        axes.set_xlabel("ratio of times")
        axes.set_ylabel("rounds")
        axes.legend()
        return axes

    def _repr_png_(self):
        return _picture(self.plot)


def _name(function, otherwise):
    name = getattr(function, "__name__", otherwise)
    return otherwise if name == "<lambda>" else name


def _series(ran, index):
    series = _library.vel_ran_series(ran, index)
    if series is None:
        raise VellumError((_library.vel_ran_refusal(ran, index) or b"a case was refused").decode())
    observation, base = _Observation(), _Base()
    _checked(_library.vel_series_base(series, byref(base)))
    batch = _library.vel_series_batch(series)
    times = []
    for at in range(_library.vel_series_count(series)):
        _checked(_library.vel_series_get(series, at, byref(observation)))
        times.append((observation.wall_ns - base.min) / batch)
    return times


def time(function, *, name=None, observations=1000, seconds=3.0, warm_up_seconds=0.05, number=None):
    """Times a function without arguments, and returns a `Timing`.

    Ends after so many observations, or so many seconds with those that it has. `number` is how often the function is
    called in each; as often as the clock needs, if it is not given.
    """
    if observations < 1 or not seconds > 0 or (number is not None and number < 1):
        raise ValueError("observations, seconds and number must be more than 0")
    number = number or _number(function)
    calls, nothing = _Calls(function, number), _Calls(lambda: None, 0)
    name = name or _name(function, "function")
    suite = _checked(_library.vel_suite_new(name.encode()))
    ran = None
    try:
        _checked(_library.vel_suite_case(suite, b"nothing", nothing.operation, None))
        _checked(_library.vel_suite_case(suite, name.encode(), calls.operation, None))
        options = _SuiteOptions(_BEST, _STAMPS, observations, seconds, warm_up_seconds, _AUTO, None, 0, 0)
        ran = _library.vel_suite_run(suite, byref(options))
        calls.check()
        _checked(ran)
        overhead = min(_series(ran, 0))
        times = [(observed - overhead) / number for observed in _series(ran, 1)]
    finally:
        _library.vel_ran_free(ran)
        _library.vel_suite_free(suite)
    return Timing(name, times, number, overhead)


def duel(a, b, *, names=None, seconds=1.0, warm_up_seconds=0.05, rounds=1 << 20, seed=1):
    """Compares two functions without arguments, and returns a `Duel`.

    They run by turns, in random order from `seed`, A in two of three turns. A machine that drifts slows both.
    """
    if not seconds > 0 or rounds < 1:
        raise ValueError("seconds and rounds must be more than 0")
    number = max(_number(a), _number(b))
    first, second = _Calls(a, number), _Calls(b, number)
    options = _DuelOptions(_BEST, 0, seconds, warm_up_seconds, rounds, _AUTO, seed)
    held = _library.vel_duel_run(first.operation, None, second.operation, None, byref(options))
    try:
        first.check()
        second.check()
        _checked(held)
        comparison, three = _Comparison(), (c_double * 3)()
        _checked(_library.vel_duel_compare(held, byref(comparison)))
        for interval in (comparison.a, comparison.b):
            for part in ("estimate", "low", "high"):
                setattr(interval, part, getattr(interval, part) / number)
        times = []
        for at in range(_library.vel_duel_rounds(held)):
            _checked(_library.vel_duel_round(held, at, byref(three)))
            times.append(tuple(value / number for value in three))
    finally:
        _library.vel_duel_free(held)
    return Duel(comparison, times, names or (_name(a, "A"), _name(b, "B")))
