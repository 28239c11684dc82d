-- A hundred accounts of pgbench's tables in one question, all over the table.
\set first random(0, 100000 * :scale - 1)
\set step random(1, 100000 * :scale - 1)
SELECT sum(abalance) FROM pgbench_accounts WHERE aid = ANY (ARRAY(
  SELECT 1 + ((:first + n::bigint * :step) % (100000 * :scale))::int
  FROM generate_series(1, 100) AS n));
