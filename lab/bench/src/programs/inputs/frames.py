# Tables of pandas: made, joined, grouped, sorted, written as text and read again.
import io
import numpy, pandas
random = numpy.random.default_rng(1)
count = 300_000
rows = pandas.DataFrame({
    "key": random.integers(0, 20_000, count),
    "value": random.random(count),
    "name": [f"name {number % 5000}" for number in range(count)],
})
keys = pandas.DataFrame({"key": numpy.arange(20_000), "weight": random.random(20_000)})
for turn in range(3):
    joined = rows.merge(keys, on="key")
    joined["product"] = joined["value"] * joined["weight"]
    groups = joined.groupby("name")["product"].agg(["sum", "mean", "count"])
    ordered = joined.sort_values(["name", "value"])
text = ordered.head(100_000).to_csv(index=False)
again = pandas.read_csv(io.StringIO(text))
print(len(groups), len(again), round(float(groups["sum"].sum()), 3))
