"""Profiles in a run file: each a text of its trial, compressed."""

from __future__ import annotations

import base64
import zlib

from pgdyno.model.errors import StoreError
from pgdyno.model.profile import Profile
from pgdyno.model.record_json import from_json, to_json
from pgdyno.store.run_file import NOT_AS_WRITTEN, RunFile
from pgdyno.store.series_bytes import inflate

_NAME = "profile"


def put_profile(run: RunFile, profile: Profile, trial: int) -> None:
    """Keep the profile of a trial."""
    packed = zlib.compress(to_json(profile).encode(), 9)
    run.put_log(_NAME, base64.b85encode(packed).decode("ascii"), trial)


def profile_of(run: RunFile, trial: int) -> Profile | None:
    """The profile of a trial; None: it has none.

    Raises:
        StoreError: What is there is no profile.
    """
    text = run.logs(trial).get(_NAME)
    if text is None:
        return None
    try:
        profile = from_json(Profile, inflate(base64.b85decode(text)).decode())
        _require_tree(profile)
    except (zlib.error, *NOT_AS_WRITTEN) as error:
        raise StoreError(
            f"run file {run.path} is damaged: profile of trial {trial}: {error}",
            "Copy it anew from where it was written.",
        ) from error
    return profile


def _require_tree(profile: Profile) -> None:
    """Refuse numbers that point nowhere: readers follow them."""
    if len(profile.transactions) != profile.seconds:
        raise ValueError("it has not as many counts of transactions as seconds")
    for stacks in (profile.cpu, profile.waiting):
        if stacks is None:
            continue
        if len(stacks.parents) != len(stacks.names) or len(stacks.seconds) != profile.seconds:
            raise ValueError("its tree is not whole")
        for node, (parent, name) in enumerate(zip(stacks.parents, stacks.names, strict=True)):
            if not (-1 <= parent < node and 0 <= name < len(stacks.functions)):
                raise ValueError(f"node {node} of its tree points nowhere")
        if stacks.hz <= 0:
            raise ValueError(f"its samples come {stacks.hz} times a second")
        for second in stacks.seconds:
            if any(not 0 <= node < len(stacks.parents) or count < 0 for node, count in second):
                raise ValueError("it counts what its tree has not")
