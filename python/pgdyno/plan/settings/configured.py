"""What a server runs with under some settings: what is set, else what it has by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.model.settings import ServerFacts
from pgdyno.plan.settings.values import BadValue, base_units, canonical, number_of, show


@dataclass(frozen=True, slots=True)
class Configured:
    """A server's settings; values that cannot be read count as unknown (None)."""

    server: ServerFacts
    values: Mapping[str, str]  # what is set, as in the plan

    def word(self, name: str) -> str | None:
        """The value in one spelling, see `values.canonical`."""
        knob, text = self.server.knobs.get(name), self._text(name)
        if knob is None or text is None:
            return None
        try:
            return canonical(knob, text)
        except BadValue:
            return None

    def number(self, name: str) -> float | None:
        """The value in the setting's own unit."""
        knob, text = self.server.knobs.get(name), self._text(name)
        if knob is None or text is None:
            return None
        try:
            return float(number_of(knob, text))
        except BadValue:
            return None

    def size(self, name: str) -> int | None:
        """The value in bytes, or microseconds."""
        knob, text = self.server.knobs.get(name), self._text(name)
        if knob is None or text is None:
            return None
        try:
            return base_units(knob, text)
        except BadValue:
            return None

    def shown(self, name: str) -> str:
        """The value for people, marked where nothing was set."""
        word = self.word(name)
        if word is None:
            return "unknown"
        text = show(self.server.knobs[name], word)
        return text if name in self.values else f"{text} (as the server has it)"

    def _text(self, name: str) -> str | None:
        if name in self.values:
            return self.values[name]
        knob = self.server.knobs.get(name)
        return knob.default if knob else None
