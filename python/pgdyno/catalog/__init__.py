"""What pgdyno knows of PostgreSQL's settings, as data: TOML under `data/`, and its readers."""

from pgdyno.catalog.knobs import Fall, Knob, Note, knobs
from pgdyno.catalog.postgres import KnownSetting, known_settings
from pgdyno.catalog.profiles import Profile, ProfileSetting, profile, profile_names

__all__ = [
    "Fall",
    "Knob",
    "KnownSetting",
    "Note",
    "Profile",
    "ProfileSetting",
    "knobs",
    "known_settings",
    "profile",
    "profile_names",
]
