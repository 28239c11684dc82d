"""What pgdyno knows of PostgreSQL's settings, as data: TOML under `data/`, and its readers."""

from pgdyno.catalog.knobs import Fall, Knob, Note, knobs
from pgdyno.catalog.postgres import KnownSetting, known_settings
from pgdyno.catalog.profiles import Profile, ProfileSetting, profile, profile_names
from pgdyno.catalog.workloads import WorkloadProfile, workload_profile, workload_profile_names

__all__ = [
    "Fall",
    "Knob",
    "KnownSetting",
    "Note",
    "Profile",
    "ProfileSetting",
    "WorkloadProfile",
    "knobs",
    "known_settings",
    "profile",
    "profile_names",
    "workload_profile",
    "workload_profile_names",
]
