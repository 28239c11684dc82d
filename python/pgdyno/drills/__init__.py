"""Drills: a load recorded, disks made of the record, servers started on them and looked at."""
