"""A small shop's evening: orders are read, grouped and priced. It makes the pictures in docs/heap.md."""
import json
import random
from collections import defaultdict

random.seed(7)


def orders(count):
    for number in range(count):
        lines = [{"item": f"item {random.randrange(5000)}", "pieces": random.randrange(1, 9)} for _ in range(3)]
        yield {"order": number, "customer": f"customer {number % 9000}", "lines": lines}


def written(count):
    return "\n".join(json.dumps(order) for order in orders(count))


def read(text):
    return [json.loads(line) for line in text.split("\n")]


def grouped(all_orders):
    by_customer = defaultdict(list)
    for order in all_orders:
        by_customer[order["customer"]].append(order)
    return by_customer


def index(all_orders):
    by_item = defaultdict(set)
    for order in all_orders:
        for line in order["lines"]:
            by_item[line["item"]].add(order["order"])
    return by_item


def receipts(by_customer):
    receipts = {}
    for customer, theirs in by_customer.items():
        pieces = sum(line["pieces"] for order in theirs for line in order["lines"])
        receipts[customer] = f"{customer}: {pieces} pieces in {len(theirs)} orders\n" * 12
    return receipts


def thumbnails(count):
    return [bytearray(48_000 + number * 97 % 9000) for number in range(count)]


def main():
    all_orders = read(written(60_000))
    by_customer, by_item = grouped(all_orders), index(all_orders)
    page = thumbnails(300)
    bills = receipts(by_customer)
    del all_orders, by_customer, by_item
    print(len(bills), len(page))


main()
