-- Every page of pgbench's largest table is read, in sequence.
VACUUM (DISABLE_PAGE_SKIPPING, INDEX_CLEANUP OFF, TRUNCATE OFF) pgbench_accounts;
