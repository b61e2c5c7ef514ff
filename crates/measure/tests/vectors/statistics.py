"""Makes statistics.json: small series and what numpy, scipy and others compute of them.

Needs numpy, scipy, diptest, ruptures and astropy (pip install numpy scipy diptest ruptures astropy); run it in this directory.
The seed is fixed, and values are rounded before anything is computed of them, so that the file is the same everywhere.
"""

import json

import astropy.stats
import diptest
import numpy
import ruptures
import scipy.signal
import scipy.stats

generator = numpy.random.default_rng(19990303)


def rounded(values):
    return numpy.round(values, 4)


def autoregressive(n, follow):
    return scipy.signal.lfilter([1.0], [1.0, -follow], generator.standard_normal(n))


SERIES = {
    "white": rounded(generator.standard_normal(150)),
    "following": rounded(autoregressive(180, 0.8)),
    "heavy": rounded(100 + generator.pareto(1.1, 160)),
    "two levels": rounded(numpy.concatenate([generator.normal(20, 1, 70), generator.normal(26, 1.5, 50)])),
    "three levels": rounded(numpy.concatenate([generator.normal(m, 1, 40) for m in (0, 5, 12)])),
    "steps of a clock": rounded(generator.choice([20.0, 30.0, 40.0, 900.0], 120, p=[0.6, 0.3, 0.08, 0.02])),
    "short": rounded(generator.random(5)),
}


def layers(values, most):
    layer_of = numpy.zeros(len(values), dtype=int)
    bounds = []
    for layer in range(1, most + 1):
        kept = values[layer_of == 0]
        mean, std = kept.mean(), kept.std(ddof=1)
        beyond = (layer_of == 0) & (numpy.abs(values - mean) > 2 * std)
        if not beyond.any():
            break
        layer_of[beyond] = layer
        bounds.append([mean, std, int(beyond.sum())])
    return {"layer_of": layer_of.tolist(), "bounds": bounds}


def autocorrelation(values, lags):
    n, x = len(values), values - values.mean()
    full = scipy.signal.correlate(x, x, method="direct")[n - 1:]
    r = full[:lags + 1] / full[0]
    return {"r": r.tolist()}


def schuster(events, frequencies):
    return [float(abs(numpy.exp(-2j * numpy.pi * f * events).sum()) ** 2 / len(events)) for f in frequencies]


def changes(values, penalty, shortest):
    found = ruptures.Pelt(model="l2", min_size=shortest, jump=1).fit(values).predict(pen=penalty)
    return {"penalty": penalty, "shortest": shortest, "at": [int(end) for end in found[:-1]]}


series = []
for name, values in SERIES.items():
    lags = min(20, len(values) - 1)
    series.append({
        "name": name,
        "values": values.tolist(),
        "rank_shares": ((scipy.stats.rankdata(values) - 0.5) / len(values)).tolist(),
        "layers": layers(values, 5),
        "autocorrelation": autocorrelation(values, lags),
        "dip": float(diptest.dipstat(values)),
        "changes": changes(values, 3 * float(numpy.var(values)), 3),
    })

FREQUENCIES = [0.5, 3.0, 9.7, 25.0, 50.0, 97.0, 194.0, 333.3]
events = []
for name, times in {
    "random": generator.random(200) * 2,
    "beat": numpy.arange(194) / 97 + 0.0005 * generator.random(194),
    "beat among random": numpy.concatenate([numpy.arange(97) / 48.5, generator.random(150) * 2]),
}.items():
    times = numpy.sort(rounded(times))
    # A whole number of events in bins of a tenth of a millisecond is also an evenly sampled signal.
    counts = numpy.bincount(numpy.round(times * 1e4).astype(int), minlength=20_000)[:20_000].astype(float)
    even, power = scipy.signal.periodogram(counts, fs=1e4, detrend=False, scaling="spectrum", return_onesided=False)
    power = power * len(counts) ** 2 / len(times)
    folded = times * 97 % 1
    events.append({
        "name": name,
        "times": times.tolist(),
        "frequencies": FREQUENCIES,
        "power": schuster(times, FREQUENCIES),
        "even_step": float(even[1]),
        "even_power": power[: 400].tolist(),
        "kuiper_at_97": float(astropy.stats.kuiper(folded, lambda x: x)[0]),
    })

with open("statistics.json", "w") as out:
    json.dump({"series": series, "events": events}, out, indent=None, separators=(",", ":"))
    out.write("\n")
