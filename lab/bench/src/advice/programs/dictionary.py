"""A dictionary is built, and read in order and at random, over and over."""
import random

random.seed(1)
COUNT = 300_000
table = {}
for number in range(COUNT):
    table["key%d" % number] = (number, str(number))
total = 0
keys = list(table)
for turn in range(6):
    for key in keys:
        total += table[key][0]
    for _ in range(COUNT // 2):
        total += table["key%d" % random.randrange(COUNT)][0]
print(total)
