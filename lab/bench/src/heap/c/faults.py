"""The faults of faults.c, in Python. Blocks exceed 512 bytes, so that Python gets each from malloc."""

import ctypes

kept = []
# Nobody gives this reference back, as where an extension has forgotten to: the interpreter would free all at its end.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


def leak():
    kept.append(bytes(1000))  # leak


def peak():
    block = bytearray(257_000_000)  # peak
    return len(block)


def temporary():
    bytes(1000)  # temporary


for _ in range(20_000):
    leak()
peak()
for _ in range(3_000_000):
    temporary()
