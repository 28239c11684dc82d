-- An index of pgbench's largest table is built anew: the table is read in sequence, and sorted.
REINDEX INDEX pgbench_accounts_pkey;
