"""What a plan needs of memory, disk and time, before anything is touched."""
