"""pydantic's findings as lines that a person can act on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from app.validation import Strict, describe


class Inner(Strict):
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    mode: Literal["on", "off"] = "on"


class Outer(Strict):
    name: str
    count: Annotated[int, Field(ge=1, le=9)] = 1
    ready: bool = False
    parts: tuple[Inner, ...] = ()
    inner: Inner = Inner()
    table: dict[str, float] = Field(default_factory=dict)


def told(content: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as problem:
        Outer.model_validate(content)
    return describe(problem.value, "a.toml")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"name": 7}, "a.toml: `name`: given 7; accepted: text"),
        ({"nmae": 7}, "a.toml: `nmae`: no such key (a misspelling?)"),
        ({"count": 0}, "a.toml: `count`: given 0; accepted: a number >= 1"),
        ({"count": 10}, "a.toml: `count`: given 10; accepted: a number <= 9"),
        ({"count": 1.5}, "a.toml: `count`: given 1.5; accepted: a whole number"),
        ({"count": "many"}, "a.toml: `count`: given 'many'; accepted: a whole number"),
        ({"count": []}, "a.toml: `count`: given []; accepted: a whole number"),
        ({"ready": "perhaps"}, "a.toml: `ready`: given 'perhaps'; accepted: true or false"),
        ({"inner": 3}, "a.toml: `inner`: given 3; accepted: a table of keys"),
        ({"inner": {"share": 0}}, "a.toml: `inner.share`: given 0; accepted: a number > 0"),
        ({"inner": {"share": 1}}, "a.toml: `inner.share`: given 1; accepted: a number < 1"),
        ({"inner": {"share": "half"}}, "a.toml: `inner.share`: given 'half'; accepted: a number"),
        ({"inner": {"share": None}}, "a.toml: `inner.share`: given None; accepted: a number"),
        ({"inner": {"share": float("nan")}}, "a.toml: `inner.share`: given nan; accepted: a finite number"),
        ({"inner": {"mode": "of"}}, "a.toml: `inner.mode`: given 'of'; accepted: 'on' or 'off'"),
        ({"table": []}, "a.toml: `table`: given []; accepted: a table of keys"),
        ({"table": {"x": "y"}}, "a.toml: `table.x`: given 'y'; accepted: a number"),
        ({"parts": [{}, {"share": 2}]}, "a.toml: `parts[2].share`: given 2; accepted: a number < 1"),
        ({"parts": [3]}, "a.toml: `parts[1]`: given 3; accepted: a table of keys"),
        ({"parts": 3}, "a.toml: `parts`: given 3; accepted: a list"),
    ],
)
def test_a_finding_is_one_line_with_key_value_and_what_is_accepted(changes: dict[str, Any], line: str) -> None:
    assert told({"name": "x"} | changes) == line


def test_a_missing_key_is_named() -> None:
    assert told({}) == "a.toml: `name`: the key is missing"


def test_each_finding_has_its_line() -> None:
    assert told({"count": 0, "x": 1}).splitlines() == [
        "a.toml: `name`: the key is missing",
        "a.toml: `count`: given 0; accepted: a number >= 1",
        "a.toml: `x`: no such key (a misspelling?)",
    ]


def test_a_long_value_is_cut() -> None:
    assert told({"name": ["x" * 5000]}) == f"a.toml: `name`: given ['{'x' * 55}...; accepted: text"


def test_what_is_given_never_makes_a_second_line() -> None:
    assert len(told({"name": "x", "count": "a\nb\r\nc\u2028d"}).splitlines()) == 1


def test_a_key_never_makes_a_second_line() -> None:
    assert len(told({"name": "x", "a\nb.toml: `hub`: fine": 1}).splitlines()) == 1


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(content=st.dictionaries(st.sampled_from(list(Outer.model_fields)) | st.text("abc"), _ANY, max_size=4))
def test_any_content_is_accepted_or_described(content: dict[str, Any]) -> None:
    try:
        Outer.model_validate(content)
    except ValidationError as problem:
        lines = describe(problem, "a.toml").split("\na.toml: ")
        assert len(lines) == problem.error_count()
        assert all(("accepted: " in line and "given " in line) or "key" in line for line in lines)


def test_what_was_read_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Outer(name="x").name = "y"
