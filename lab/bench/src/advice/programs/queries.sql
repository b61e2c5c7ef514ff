-- A table is filled, then joined with random keys, grouped and sorted. SQLite's page cache holds all of it.
PRAGMA cache_size = -65536;
CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER, c TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
INSERT INTO t SELECT i, (i * 7919) % 1000003, hex(i * 2654435761) || hex(i * 40503) || 'some text' FROM n;
SELECT count(*), sum(b), max(c) FROM t;
SELECT count(*) FROM t JOIN (SELECT (abs(random()) % 300000) + 1 AS k FROM t) r ON t.a = r.k;
SELECT count(*) FROM t JOIN (SELECT (abs(random()) % 300000) + 1 AS k FROM t) r ON t.a = r.k;
SELECT b % 1000 AS g, count(*), sum(length(c)) FROM t GROUP BY g ORDER BY 2 LIMIT 3;
SELECT count(*) FROM t JOIN (SELECT (abs(random()) % 300000) + 1 AS k FROM t) r ON t.a = r.k;
SELECT c FROM t ORDER BY c LIMIT 5;
SELECT count(*) FROM t JOIN (SELECT (abs(random()) % 300000) + 1 AS k FROM t) r ON t.a = r.k;
