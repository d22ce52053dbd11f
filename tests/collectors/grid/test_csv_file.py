"""A person's own file: every line right, or nothing of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from collectors.grid.csv_file import CsvFile, read_csv
from collectors.http.problem import SourceProblem
from tests.collectors.http.clocks import NOW, Clock, utc

HEAD = "zone,start,end,g_per_kwh,basis\n"
GOOD = (
    HEAD
    + "DE,2026-11-30T09:00Z,2026-11-30T10:00Z,401,lifecycle\n"
    + "DE,2026-11-30T11:00+01:00,2026-11-30T12:00+01:00,0,direct\n"
)


def wrong(text: str) -> str:
    with pytest.raises(ValueError) as raised:
        read_csv(text, fetched_at=NOW)
    return str(raised.value)


def test_rows_are_points() -> None:
    first, second = read_csv(GOOD, fetched_at=NOW)
    assert (first.zone, first.start, first.end, first.g_per_kwh) == ("DE", utc("09:00"), utc("10:00"), 401)
    assert (second.start, second.g_per_kwh, second.basis, second.kind) == (utc("10:00"), 0, "direct", "average")
    assert (first.provider, first.estimated) == ("csv_file", False)


def test_average_and_marginal_rows_of_one_hour_are_both_kept(tmp_path: Path) -> None:
    rows = "".join(
        f"DE,2026-11-30T09:00Z,2026-11-30T10:00Z,{g},lifecycle,{kind}\n"
        for g, kind in ((401, "average"), (700, "marginal"))
    )
    file = tmp_path / "grid.csv"
    file.write_text(HEAD.replace("basis", "basis,kind") + rows, encoding="utf-8")
    found = CsvFile(file, utc_now=Clock().utc_now).history("DE", utc("09:00"), utc("10:00")).points
    assert {(point.kind, point.g_per_kwh) for point in found} == {("average", 401), ("marginal", 700)}


def test_kind_and_source_may_be_told_and_columns_stand_in_any_order() -> None:
    columns = "source,kind,basis,g_per_kwh,end,start,zone"
    text = f"{columns}\nour meter,marginal,provider,1e2,2026-11-30T10:00Z,2026-11-30T09:00Z,X\n"
    (point,) = read_csv(text, fetched_at=NOW)
    assert (point.provider, point.kind, point.g_per_kwh) == ("csv_file: our meter", "marginal", 100)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("DE,2026-11-30T09:00,2026-11-30T10:00Z,1,direct", "`start` is a time with its offset such as"),
        ("DE,2026-11-30T09:00Z,30.11.2026,1,direct", "`end` is a time with its offset"),
        ("DE,2026-11-30T09:00Z,2026-11-30T09:00Z,1,direct", "`end` is after `start`"),
        ("DE,2026-11-30T09:00Z,2026-11-30T10:00Z,-1,direct", "`g_per_kwh` is a number from 0 to 3000, not '-1'"),
        ("DE,2026-11-30T09:00Z,2026-11-30T10:00Z,3001,direct", "from 0 to 3000"),
        ("DE,2026-11-30T09:00Z,2026-11-30T10:00Z,,direct", "from 0 to 3000, not ''"),
        ("DE,2026-11-30T09:00Z,2026-11-30T10:00Z,nan,direct", "from 0 to 3000"),
        ("DE,2026-11-30T09:00Z,2026-11-30T10:00Z,1_0,direct", "from 0 to 3000"),
        ('DE,2026-11-30T09:00Z,2026-11-30T10:00Z,"1,5",direct', "from 0 to 3000"),
        ("DE,2026-11-30T09:00Z,2026-11-30T10:00Z,1,green", "`basis` is lifecycle, direct or provider, not 'green'"),
        (",2026-11-30T09:00Z,2026-11-30T10:00Z,1,direct", "`zone` is a name"),
        ("DE,2026-11-30T09:00Z,2026-11-30T10:00Z,1", "more or fewer cells"),
        ("DE,2026-11-30T09:00Z,2026-11-30T10:00Z,1,direct,x", "more or fewer cells"),
    ],
)
def test_a_bad_row_is_named_by_its_line(row: str, words: str) -> None:
    told = wrong(f"{GOOD}{row}\n")
    assert told.startswith("line 4: ")
    assert words in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: zone, start, end, g_per_kwh, basis is missing"),
        (GOOD.replace(",", ";"), "is missing; the columns are zone, start"),
        (HEAD.replace("basis", "basis,note"), "line 1: 'note' is no column here"),
        (HEAD.replace("basis", "basis,zone"), "a name that stands twice"),
        (HEAD, "there are no rows"),
        (GOOD + 'DE,"x', "line 4: "),
    ],
)
def test_a_file_of_another_form_is_refused(text: str, words: str) -> None:
    assert words in wrong(text)


def test_all_bad_lines_are_told_up_to_ten() -> None:
    told = wrong(HEAD + "DE,x,y,1,direct\n" * 12)
    assert "line 2: " in told and "line 11: " in told and "line 12: " not in told
    assert told.endswith("; and 2 more")


def test_rows_that_overlap_are_refused_whatever_their_basis() -> None:
    told = wrong(GOOD + "DE,2026-11-30T09:30Z,2026-11-30T09:45Z,1,direct\n")
    assert told == "line 4: it overlaps line 2 of the same zone and kind"
    other = (
        GOOD.replace("basis\n", "basis,kind\n")
        .replace("lifecycle\n", "lifecycle,average\n")
        .replace("direct\n", "direct,\n")
    )
    assert len(read_csv(other + "DE,2026-11-30T09:30Z,2026-11-30T09:45Z,1,direct,marginal\n", fetched_at=NOW)) == 3


def test_the_file_as_a_provider(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "grid.csv"
    path.write_text("\ufeff" + GOOD, encoding="utf-8")
    file = CsvFile(path, zones={"here": "DE"}, utc_now=clock.utc_now)
    (latest,) = file.latest("here").points
    assert (latest.zone, latest.g_per_kwh, latest.start) == ("here", 0, utc("10:00"))
    assert [point.g_per_kwh for point in file.history("DE", utc("09:00"), utc("10:00")).points] == [401]
    with pytest.raises(SourceProblem, match=r"zone FR: not a zone of this provider; zones of grid\.csv: DE"):
        file.latest("FR")
    with pytest.raises(SourceProblem, match="a file has no forecasts"):
        file.forecast("DE")


def test_a_changed_file_is_read_again_and_a_broken_one_gives_nothing(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "grid.csv"
    path.write_text(GOOD, encoding="utf-8")
    file = CsvFile(path, utc_now=clock.utc_now)
    file.latest("DE")
    path.write_text(GOOD.replace(",0,direct", ",222,direct"), encoding="utf-8")
    os.utime(path, ns=(1, 1))
    assert file.latest("DE").points[0].g_per_kwh == 222
    path.write_text(GOOD + "DE,x,y,1,direct\n", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(SourceProblem, match=r"grid\.csv: line 4: .*; mend these lines"):
            file.latest("DE")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceProblem, match="cannot be read: No such file"):
        CsvFile(tmp_path / "none.csv").latest("DE")
    (tmp_path / "latin.csv").write_bytes(GOOD.encode() + b"\xff")
    with pytest.raises(SourceProblem, match="is not UTF-8"):
        CsvFile(tmp_path / "latin.csv").latest("DE")
