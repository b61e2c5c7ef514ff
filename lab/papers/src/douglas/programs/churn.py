# Builds dictionaries, lists, strings and tuples by the number given, drops parts of them, and does so again.
import sys

count, rounds = int(sys.argv[1]), int(sys.argv[2])
total = 0
for turn in range(rounds):
    table = {i: [turn, str(i * 7919), (i, -i)] for i in range(count)}
    words = [f"word {i % 1000} of {i}" for i in range(count)]
    squares = [i * i for i in range(count)]
    for i in range(0, count, 3):
        del table[i]
    text = ",".join(words)
    parts = text.split(",")
    order = sorted(table, key=lambda i: (i * 7919) % 1000003)
    total += len(table) + len(text) + len(parts) + sum(squares) % 97 + len(order)
print(total)
