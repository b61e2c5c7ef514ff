# Eighteen numpy arrays, of which a third is used over and over.
import numpy
cold = [numpy.ones(1 << 20) for _ in range(12)]
hot = [numpy.arange(1 << 20, dtype=float) for _ in range(6)]
total = 0.0
for _ in range(400):
    for array in hot:
        array *= 1.0000001
        total += float(array.sum())
print(total, len(cold))
