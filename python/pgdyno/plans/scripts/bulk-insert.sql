\set bid random(1, 1 * :scale)
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime, filler) SELECT 1, :bid, number, 0, CURRENT_TIMESTAMP, 'loaded' FROM generate_series(1, 10000) AS number;
