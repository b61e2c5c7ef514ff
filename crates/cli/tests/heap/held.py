"""What a script of Python holds, line by line."""
import json

kept = []


class Store:
    def fill(self):
        for number in range(400_000):
            kept.append(str(number) * 12)  # kept


def large():
    block = bytearray(64 << 20)  # large
    return len(block)


def decoded():
    text = '[' + ','.join('{"a": %d, "b": "x%d"}' % (i, i) for i in range(150_000)) + ']'
    return json.loads(text)  # decoded


def grün(имя):
    return [bytearray(1 << 20) for _ in имя]  # unicode


def main():
    Store().fill()
    large()
    data = decoded()
    more = grün("0123456789abcdef")
    print(len(kept), len(data), len(more))


main()
