# A database of columns in memory: rows are made, joined, grouped and sorted, on two threads.
import duckdb
database = duckdb.connect()
database.execute("SET threads = 2")
database.execute("CREATE TABLE rows AS SELECT (i * 7919) % 20011 AS key, (i * 104729) % 1000003 AS value, "
                 "'name ' || (i % 5000) AS name FROM range(1500000) t(i)")
database.execute("CREATE TABLE keys AS SELECT i AS key, i / 20011.0 AS weight FROM range(20011) t(i)")
for turn in range(3):
    found = database.execute("SELECT name, sum(value * weight) AS product, count(*), count(DISTINCT value) FROM rows JOIN keys "
                             "USING (key) GROUP BY name ORDER BY product DESC, name").fetchall()
    ordered = database.execute("SELECT name, value FROM rows ORDER BY name, value LIMIT 5 OFFSET 900000").fetchall()
print(len(found), ordered[0])
