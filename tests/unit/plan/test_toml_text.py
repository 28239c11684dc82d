"""Plans from Python as TOML: what is written is read back as it was."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.model.errors import PlanError
from pgdyno.plan.schema.toml_text import toml_text

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)  # no surrogates
SCALARS = st.one_of(
    TEXTS, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_any_document_is_read_back_as_it_was(document: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text(document)) == document


def test_stages_are_tables_of_their_own() -> None:
    document = {
        "name": "x",
        "protocol": {"rounds": 3},
        "stage": [{"name": "a", "settings": {"pg_stat_statements.max": 5}}, {"name": "b"}],
    }

    text = toml_text(document)

    assert text.count("[[stage]]") == 2
    assert '"pg_stat_statements.max" = 5' in text
    assert tomllib.loads(text) == document


@pytest.mark.parametrize("value", [None, object(), {1, 2}])
def test_what_toml_cannot_hold_is_named(value: object) -> None:
    with pytest.raises(PlanError, match=r"a\.b is a "):
        toml_text({"a": {"b": value}})
