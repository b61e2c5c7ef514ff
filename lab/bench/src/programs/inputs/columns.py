# Tables in polars: rows are made, joined, grouped and sorted, on two threads.
import os
os.environ["POLARS_MAX_THREADS"] = "2"
import polars
count = 1_500_000
rows = polars.DataFrame({"number": polars.int_range(0, count, eager=True)}).with_columns(
    key=(polars.col("number") * 7919) % 20_011,
    value=((polars.col("number") * 104_729) % 1_000_003) / 1_000_003,
    name=polars.format("name {}", polars.col("number") % 5_000),
)
keys = polars.DataFrame({"key": polars.int_range(0, 20_011, eager=True)}).with_columns(weight=polars.col("key") / 20_011)
for turn in range(3):
    joined = rows.join(keys, on="key").with_columns(product=polars.col("value") * polars.col("weight"))
    groups = joined.group_by("name").agg(polars.col("product").sum(), polars.len())
    ordered = joined.sort(["name", "value", "number"])
print(len(groups), ordered["number"][0], round(groups["product"].sum(), 3))
