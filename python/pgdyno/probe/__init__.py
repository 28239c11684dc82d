"""Programs that ask storage and clock what they can do: pg_test_fsync, pg_test_timing, fio."""
