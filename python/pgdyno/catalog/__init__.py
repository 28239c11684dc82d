"""What pgdyno knows of settings, as data: TOML under `data/`, and its readers."""

from pgdyno.catalog.entries import Entry, entries
from pgdyno.catalog.knobs import Fall, Knob, Note, knobs
from pgdyno.catalog.machine import (
    RUNTIME_LAYERS,
    MachineKnob,
    file_of,
    layers,
    machine_knobs,
    meant_by,
)
from pgdyno.catalog.moves import NEEDED_PAGES, Move, moves
from pgdyno.catalog.postgres import KnownSetting, known_settings
from pgdyno.catalog.profiles import Profile, ProfileSetting, profile, profile_names
from pgdyno.catalog.workloads import WorkloadProfile, workload_profile, workload_profile_names

__all__ = [
    "NEEDED_PAGES",
    "RUNTIME_LAYERS",
    "Entry",
    "Fall",
    "Knob",
    "KnownSetting",
    "MachineKnob",
    "Move",
    "Note",
    "Profile",
    "ProfileSetting",
    "WorkloadProfile",
    "entries",
    "file_of",
    "knobs",
    "known_settings",
    "layers",
    "machine_knobs",
    "meant_by",
    "moves",
    "profile",
    "profile_names",
    "workload_profile",
    "workload_profile_names",
]
