"""Blocks of 100,000 bytes: marks behind lines say how many."""

import copy
import threading


def made(count):
    for _ in range(count):
        yield bytearray(100_000)  # //= malloc=700


class Store:
    def fill(self):
        self.kept = [bytearray(100_000) for _ in range(300)]  # //= malloc=300


def copied(block, count):
    for _ in range(count):
        bytearray(block)  # //= malloc=1200


def main():
    store = Store()
    store.fill()
    for _ in made(700):
        pass
    threads = [threading.Thread(target=copied, args=(store.kept[0], 300)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(50):
        exec("bytearray(100_000)", {})
    small = [str(number) * 9 for number in range(300_000)]
    copies = copy.deepcopy([[store.kept[0]]])
    print(len(store.kept), len(copies), len(small))


main()
