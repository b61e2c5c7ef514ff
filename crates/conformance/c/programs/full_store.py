import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
kept = []
try:
    while len(kept) < 100: kept.append(bytearray(b"x") * 1000000)
    print("no end")
except MemoryError: print("refused", 5 < len(kept) < 20)
print(all(block == b"x" * 1000000 for block in kept[:3]))
