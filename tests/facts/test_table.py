"""Facts as CSV: every row read or none, every mistake told by line and column, and what is written can be read."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.facts import table
from app.facts.cells import COLUMNS, FACT_COLUMNS, REQUIRED, VALUE_COLUMNS, plans, value_columns
from app.facts.fact import Fact
from app.facts.kinds import FORMS, KINDS, HostedPrice, OwnedPrice, RentedPrice, TimeOfUseTariff
from app.facts.table import MAX_FINDINGS, FactTable
from app.facts.template import template
from app.reference.grid import grid_factor
from tests.conftest import ROOT
from tests.facts.builders import by_clock, fact, flat, owned, rented, t

NOW = t(6)
HEAD = "kind,subject,valid_from,source,"


def no_zone_problem(zone: str) -> str | None:
    return None


def read(text: str) -> FactTable:
    return table.read(text, NOW, lambda zone: None if zone == "EU27" else "a grid zone: no such")


def one(columns: str, row: str) -> Fact:
    found = read(f"{HEAD}{columns}\n{row}\n")
    assert found.findings == []
    return found.facts[0]


def told(columns: str, *rows: str) -> list[str]:
    found = read("\n".join([f"{HEAD}{columns}", *rows, ""]))
    assert found.findings
    return found.told("f.csv").splitlines()


def test_a_row_is_a_fact_known_from_its_import_on() -> None:
    found = one("plan,per_gpu_hour,billing_increment_s", "price,h100,2026-03-01T13:37+01:00,contract 17,rented,2.5,60")
    assert found == Fact(
        "price", "h100", t(3, 1, 12, 37), NOW, "contract 17", RentedPrice(per_gpu_hour=2.5, billing_increment_s=60.0)
    )


def test_what_is_left_out_has_its_default() -> None:
    found = one("plan,currency,purchase,life_years,retired", "price,home,2026-03-01,bill,owned,EUR,900,3,")
    assert found.value == OwnedPrice(currency="EUR", purchase=900.0, life_years=3.0)
    assert found.valid_from == t(3)


def test_rules_are_read_from_one_cell() -> None:
    found = one(
        "plan,currency,per_kwh,tz,rules",
        "tariff,home,2026-03-01,x,time-of-use,EUR,0.18,Europe/Madrid,mon-fri 18:00-22:00 0.32;all  23:00-07:00 -1e-2",
    )
    content = by_clock(0.18, ("mon-fri", "18:00", "22:00", 0.32), ("all", "23:00", "07:00", -0.01))
    assert found == fact("tariff", "home", content | {"currency": "EUR"}, t(3), NOW, "x")
    assert isinstance(found.value, TimeOfUseTariff)


def test_a_row_may_end_what_held_before() -> None:
    assert one("ends,pue", "pue,h100,2026-03-01,moved,yes,") == fact("pue", "h100", None, t(3), NOW, "moved")


def test_blank_lines_a_byte_order_mark_and_spaces_around_cells_do_not_matter() -> None:
    found = read(f"\ufeff{HEAD}pue\n\n pue , h100 ,2026-03-01, x , 1.2 \n,,,,\n")
    assert found.findings == []
    assert found.facts == [fact("pue", "h100", {"pue": 1.2}, t(3), NOW, "x")]


PRICE = "plan,per_gpu_hour,currency,pue,ends"


@pytest.mark.parametrize(
    ("columns", "row", "line"),
    [
        (PRICE, "prise,h100,2026-01-01,x,rented,1,,,",
         "column `kind`: given 'prise'; accepted: one of membership, price, tariff, tariff_hour, pue, zone, "
         "market_factor, embodied, exchange_rate, hosted_price, slo (did you mean price?)"),
        ("method", "embodied,a,2026-01-01,x,user", "column `kg_per_gpu`: given ''; accepted: kg_per_gpu beside method"),
        ("method", "embodied,a,2026-01-01,x,guess", "column `method`: given 'guess'; accepted: 'pcf', 'boavizta' or"),
        ("kg_low,kg_per_gpu", "embodied,a,2026-01-01,x,9,8", "given '8'; accepted: kg_low <= kg_per_gpu <= kg_high"),
        ("kg_high", "embodied,a,2026-01-01,x,9", "accepted: kg_per_gpu beside kg_low and kg_high"),
        ("life_years", "embodied,a,2026-01-01,x,0", "column `life_years`: given '0'; accepted: a number > 0"),
        ("g_per_kwh", "market_factor,*,2026-01-01,x,9", "column `subject`: given '*'; accepted: a fleet; * is for"),
        ("g_per_kwh", "market_factor,a,2026-01-01,x,", "column `g_per_kwh`: given ''; accepted: grams of CO2e per kWh"),
        ("g_per_kwh", "market_factor,a,2026-01-01,x,-1", "column `g_per_kwh`: given '-1'; accepted: a number >= 0"),
        (PRICE, "price,,2026-01-01,x,rented,1,,,", "column `subject`: given ''; accepted: a fleet: 1 to 200 printable"),
        (PRICE, "price,*,2026-01-01,x,rented,1,,,", "column `subject`: given '*'; accepted: a fleet; * is for"),
        (PRICE, "price,h100,soon,x,rented,1,,,",
         "column `valid_from`: given 'soon'; accepted: a date (midnight in UTC) or a moment with its time zone, such"),
        (PRICE, "price,h100,2026-01-01T12:00,x,rented,1,,,", "column `valid_from`: given '2026-01-01T12:00'; "),
        (PRICE, "price,h100,1969-12-31,x,rented,1,,,",
         "column `valid_from`: given '1969-12-31'; accepted: a moment from 1970 to 2199"),
        (PRICE, "price,h100,,x,rented,1,,,", "column `valid_from`: given ''; accepted: a date"),
        (PRICE, "price,h100,2026-01-01,,rented,1,,,", "column `source`: given ''; accepted: where the fact is from"),
        (PRICE, "price,h100,2026-01-01,x,,1,,,", "column `plan`: given ''; accepted: rented or owned for kind price"),
        (PRICE, "price,h100,2026-01-01,x,spot,1,,,", "column `plan`: given 'spot'; accepted: rented or owned"),
        (PRICE, "price,h100,2026-01-01,x,rented,,,,",
         "column `per_gpu_hour`: given ''; accepted: price of one GPU for one hour"),
        (PRICE, "price,h100,2026-01-01,x,rented,\"1,25\",,,",
         "column `per_gpu_hour`: given '1,25'; accepted: a number such as 0.25, without separators of thousands"),
        (PRICE, "price,h100,2026-01-01,x,rented,nan,,,", "column `per_gpu_hour`: given 'nan'; accepted: a number such"),
        (PRICE, "price,h100,2026-01-01,x,rented,-1,,,", "column `per_gpu_hour`: given '-1'; accepted: a number >= 0"),
        (PRICE, "price,h100,2026-01-01,x,rented,1,euro,,",
         "column `currency`: given 'euro'; accepted: a currency's code (ISO 4217), such as USD, EUR or CNY"),
        (PRICE, "price,h100,2026-01-01,x,rented,1,,1.2,",
         "column `pue`: given '1.2'; accepted: empty for kind price with plan rented"),
        (PRICE, "price,h100,2026-01-01,x,,,,,no", "column `ends`: given 'no'; accepted: yes, or empty"),
        (PRICE, "price,h100,2026-01-01,x,rented,,,,yes",
         "column `plan`: given 'rented'; accepted: empty in a row with ends = yes"),
        (PRICE, "pue,h100,2026-01-01,x,,,,0.9,", "column `pue`: given '0.9'; accepted: a number >= 1"),
        (PRICE, "pue,h100,2026-01-01,x,rented,,,1.2,", "column `plan`: given 'rented'; accepted: empty for kind pue"),
        ("zone", "zone,h100,2026-01-01,x,Mars", "column `zone`: given 'Mars'; accepted: a grid zone: no such"),
        ("per_kwh", "tariff_hour,h100,2026-01-01T13:30Z,x,0.1",
         "column `valid_from`: given '2026-01-01T13:30Z'; accepted: the start of a whole hour in UTC"),
        ("usd_per_unit", "exchange_rate,USD,2026-01-01,x,1",
         "column `subject`: given 'USD'; accepted: the code (ISO 4217) of a currency other than USD, such as EUR"),
        ("usd_per_unit", "exchange_rate,EUR,2026-01-01,x,0", "column `usd_per_unit`: given '0'; accepted: a number >"),
        ("input_usd_per_mtok,output_usd_per_mtok", "hosted_price,llama,2026-01-01,x,1,1",
         "column `subject`: given 'llama'; accepted: provider/model, such as"),
        ("metric,max_ms", "slo,m,2026-01-01,x,ttl,1",
         "column `metric`: given 'ttl'; accepted: 'ttft', 'itl' or 'e2e'"),
        ("plan,purchase,life_years,in_service,retired", "price,a,2026-01-01,x,owned,1,1,2026-02-01,2026-01-01",
         "column `retired`: given '2026-01-01'; accepted: retired after in_service"),
        ("plan,per_kwh,tz,rules", "tariff,a,2026-01-01,x,time-of-use,1,Madrid,all 00:00-07:00 1",
         "column `tz`: given 'Madrid'; accepted: an IANA time zone such as Europe/Madrid"),
        ("plan,per_kwh,tz,rules", "tariff,a,2026-01-01,x,time-of-use,1,UTC,all 00:00-07:00 1; mon 7:30-08:00 2",
         "column `rules`: given 'all 00:00-07:00 1; mon 7:30-08:00 2'; accepted: a local clock time from 00:00 to "
         "24:00, such as 07:30 (rule 2, from)"),
        ("plan,per_kwh,tz,rules", "tariff,a,2026-01-01,x,time-of-use,1,UTC,monday 00:00-07:00 1",
         "accepted: days such as mon-fri, sat,sun or all, of mon, tue, wed, thu, fri, sat, sun (rule 1, days)"),
        ("plan,per_kwh,tz,rules", "tariff,a,2026-01-01,x,time-of-use,1,UTC,mon 07:00-07:00 1",
         "accepted: `from` and `to` that differ; a whole day is 00:00 to 24:00 (rule 1)"),
        ("plan,per_kwh,tz,rules", "tariff,a,2026-01-01,x,time-of-use,1,UTC,mon 07:00-08:00",
         "accepted: hours with another price: `mon-fri 17:00-21:00 0.42; all 23:00-07:00 0.08`"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_line_column_value_and_what_is_accepted(columns: str, row: str, line: str) -> None:
    [finding] = told(columns, row)
    assert finding.startswith("f.csv: line 2, column `")
    assert line in finding


def test_every_mistake_of_every_row_is_told() -> None:
    lines = told(PRICE, "price,,soon,,rented,x,,9,", "pue,h100,2026-01-01,x,,,,1.2,", "pue,h100,2026-01-01,x,,,,0.2,")
    assert [line.split(":")[1].split(",")[0] for line in lines] == [" line 2"] * 5 + [" line 4"]
    assert [line.split("`")[1] for line in lines] == [
        "valid_from", "subject", "source", "pue", "per_gpu_hour", "pue",
    ]  # fmt: skip


def test_two_rows_that_contradict_each_other_are_told() -> None:
    [finding] = told("pue", "pue,a,2026-01-01,x,1.2", "pue,b,2026-01-01,x,1.3", "pue,a,2026-01-01T01:00+01:00,y,1.3")
    assert finding == (
        "f.csv: line 4, column `valid_from`: given '2026-01-01T00:00:00+00:00'; accepted: one row for each kind, "
        "subject and valid_from; line 2 says otherwise"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "f.csv: line 1: given ''; accepted: a header with kind, subject, valid_from, source, separated by commas"),
        (f"{HEAD}pue\n", "f.csv: line 1: given ''; accepted: rows below the header"),
        (f"{HEAD}peu\nx", "f.csv: line 1, column `peu`: given 'peu'; accepted: the columns kind, subject,"),
        (f"{HEAD}pue,pue\nx", "f.csv: line 1, column `pue`: given 'pue'; accepted: each column once"),
        ("kind;subject;valid_from;source\nx", "f.csv: line 1, column `kind;subject;valid_from;source`"),
        (f"{HEAD}pue\npue,a,2026-01-01,x\n", "f.csv: line 2: given 'pue,a,2026-01-01,x'; accepted: 5 cells, as in the"),
        (f'{HEAD}pue\npue,"a\nb",2026-01-01,x,1.2\npue,a,soon,x,1.2', "f.csv: line 4, column `valid_from`"),
        (f"{HEAD}pue\npue,a\0,2026-01-01,x,1.2", "f.csv: line 2, column `subject`: given 'a\\x00'; accepted: a fleet"),
    ],
)
def test_a_file_of_another_form_is_told(text: str, line: str) -> None:
    assert line in read(text).told("f.csv")


def test_many_mistakes_are_told_by_their_number() -> None:
    rows = [f"pue,a,2026-01-01,x,{number / 1000}" for number in range(MAX_FINDINGS + 7)]
    lines = told("pue", *rows)
    assert len(lines) == MAX_FINDINGS + 1
    assert lines[-1] == "... and 7 more"


# Writing

FACTS = [
    fact("membership", "rack1-node7", {"fleet": "h100"}, t(1), NOW, "list"),
    fact("membership", "=cmd|' /C calc'!A0", None, t(1, 2, 3, 4), NOW, "-moved, it's \"out\""),
    fact("price", "h100", rented(2.0, billing_increment_s=60.0), t(1), NOW, "contract"),
    fact("price", "home", owned(currency="EUR", retired="2026-05-01T12:00Z"), t(1), NOW, "bill"),
    fact("tariff", "home", by_clock(0.1 + 0.2, ("mon,wed", "22:00", "06:00", -1e-7)), t(1), NOW, "bill"),
    fact("tariff", "rack", flat(1 / 3), t(1), NOW, "bill"),
    fact("tariff_hour", "home", {"per_kwh": -0.004, "currency": "EUR"}, t(1, 1, 13), NOW, "market"),
    fact("pue", "*", {"pue": 1.2}, t(1), NOW, "report"),
    fact("zone", "h100", {"zone": "EU27"}, t(1), NOW, "address"),
    fact("market_factor", "h100", {"g_per_kwh": 1 / 3}, t(1), NOW, "supplier"),
    fact("embodied", "*", {"method": "pcf"}, t(1), NOW, "choice"),
    fact("embodied", "home", {"method": "user", "policy": "sunk", "kg_low": 0.5, "kg_per_gpu": 1.5, "life_years": 6.0},
         t(1), NOW, "choice"),
    fact("exchange_rate", "EUR", {"usd_per_unit": 1.08}, t(1), NOW, "ECB"),
    fact("hosted_price", "a/b", {"input_usd_per_mtok": 0.1, "output_usd_per_mtok": 0.2}, t(1), NOW, "list"),
    fact("slo", "org/model", {"metric": "itl", "percentile": 95.0, "max_ms": 50.0}, t(1), NOW, "team"),
]  # fmt: skip


def test_what_is_written_is_read_as_it_was() -> None:
    assert {one.kind for one in FACTS} == set(KINDS)
    found = read(table.write(FACTS))
    assert found.findings == []
    assert sorted(found.facts, key=lambda one: (one.kind, *one.order)) == sorted(
        FACTS, key=lambda one: (one.kind, *one.order)
    )


def test_no_cell_is_run_by_a_spreadsheet() -> None:
    cells = [cell for row in csv.reader(io.StringIO(table.write(FACTS))) for cell in row]
    assert "'=cmd|' /C calc'!A0" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+"))]


@given(st.text("abc=+-@' ,;\"", min_size=1, max_size=12).filter(str.strip), st.floats(1, 10))
def test_any_subject_and_number_come_back(subject: str, pue: float) -> None:
    written = fact("pue", subject.strip(), {"pue": pue}, t(1), NOW, "x")
    found = table.read(table.write([written]), NOW, no_zone_problem)
    assert found.facts == [written]


def test_the_template_has_every_column_and_every_form_and_is_accepted() -> None:
    text = template(NOW)
    assert text.splitlines()[0].split(",") == list(COLUMNS)
    found = table.read(text, NOW, lambda zone: None if grid_factor(zone) else "")
    assert found.findings == []
    forms = {(one.kind, getattr(one.value, "plan", None)) for one in found.facts}
    assert forms == {(kind, plan) for kind in KINDS for plan in plans(kind) or [None]}
    rows = list(csv.DictReader(io.StringIO(text)))
    assert all(any(row[name] for row in rows) for name in COLUMNS)


def test_every_field_of_every_value_has_a_column_and_each_column_is_one() -> None:
    fields = {field.alias or name for form in FORMS.values() for model in form.values
              for name, field in model.model_fields.items()}  # fmt: skip
    assert fields == set(VALUE_COLUMNS)
    assert set(REQUIRED) < set(FACT_COLUMNS)
    assert value_columns("price", "rented") == ["plan", "currency", "per_gpu_hour", "billing_increment_s"]
    assert value_columns("pue") == ["pue"]


def test_ten_thousand_hours_are_read() -> None:
    hours = [t(1) + timedelta(hours=number) for number in range(10_000)]
    facts = [fact("tariff_hour", "home", {"per_kwh": number / 1e4}, hour, NOW) for number, hour in enumerate(hours)]
    assert read(table.write(facts)).facts == facts


def test_hosted_prices_are_dollars_per_million_tokens() -> None:
    found = one("input_usd_per_mtok,output_usd_per_mtok", "hosted_price,a/b,2026-01-01,x,0.1,0.2")
    assert found.value == HostedPrice(input_usd_per_mtok=0.1, output_usd_per_mtok=0.2)


def test_the_documentation_names_every_kind_and_every_column() -> None:
    text = (ROOT / "docs" / "facts.md").read_text(encoding="utf-8")
    tables = [line for line in text.splitlines() if line.startswith("| `")]
    assert {line.split("`")[1] for line in tables} >= set(KINDS)
    for name in COLUMNS:
        assert any(f"`{name}`" in line.split("|")[1] for line in tables), name
