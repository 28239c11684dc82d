"""What shapes the data of a fixture, and nothing else: fixtures of one shape are the same one."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.workload import Blocks, Order, Partitions, Schema


@dataclass(frozen=True, slots=True)
class FixtureShape:
    """A key that is None does not shape these data; a key that came later is None where it did not.

    A fixture is named by a hash of the others, so that those of earlier versions are still found.
    """

    workload: str | None = None  # the kind; select-only has the data of tpcb
    seed: int | None = None
    schema: Schema | None = None
    warehouses: int | None = None
    scale: int | None = None  # branches of pgbench
    foreign_keys: bool | None = None
    partitions: Partitions | None = None
    order: Order | None = None  # None: by warehouse
    blocks: Blocks | None = None  # None: all warehouses are in it
    setup: str | None = None  # SHA-256 of the script that made them
    databases: int | None = None  # None: one
    unlogged: bool | None = None  # None: tables are logged
    rows_version: int | None = None  # of the core's rows; None: none are loaded
    wal_block_size: int | None = None  # this and the next five: of a server unlike the releases
    segment_size: int | None = None
    max_index_keys: int | None = None
    max_identifier_length: int | None = None
    catalog_version: int | None = None
    control_version: int | None = None
    postgres_major: int | None = None
    block_size: int | None = None  # bytes
    checksums: bool | None = None
    initdb: tuple[str, ...] | None = None  # further arguments of it
