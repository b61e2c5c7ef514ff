"""Something for Vellum to do: builds, grows and drops tables of some hundred MiB."""


def table(rows):
    return {row: (str(row), row * 0.5) for row in range(rows)}


total = 0
for turn in range(3):
    rows = table(400_000 * (turn + 1))
    words = [name for name, _ in rows.values()]
    words.sort()
    total += len(" ".join(words))
    del rows
print(f"{total:,} characters")
