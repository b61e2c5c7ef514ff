"""Quantiles of sqrt(n) times the dip of n uniform values, by simulation: the table in src/dip.rs.

Needs numpy and diptest (pip install numpy diptest). Prints one line a sample size, in the form of that table. Takes a few
minutes. The seed is fixed; another seed changes the third digit of the outermost column.
"""

import diptest
import numpy

CHANCES = [0.5, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002]
SIZES = [4, 6, 9, 15, 30, 60, 120, 250, 500, 1000, 4000]

generator = numpy.random.default_rng(20000220)
for n in SIZES:
    repeats = 200_000 if n <= 120 else 100_000 if n <= 1000 else 40_000
    dips = numpy.array([diptest.dipstat(numpy.sort(generator.random(n)), sort_x=False) for _ in range(repeats)])
    row = numpy.quantile(numpy.sqrt(n) * dips, [1 - chance for chance in CHANCES])
    print(f"    ({n}, [{', '.join(f'{value:.4f}' for value in row)}]),", flush=True)
