"""The quarantine, and what words and text become."""

from __future__ import annotations

import pynvml
import pytest

from collectors.gpu.asking import text
from collectors.gpu.quarantine import Quarantine
from collectors.gpu.words import why_missing, why_no_start


def test_quarantine_doubles_up_to_ten_minutes():
    quarantine, now_s, waits = Quarantine(30), 0.0, []
    for _ in range(7):
        quarantine.put("a", "hung", now_s)
        began_s = now_s
        while not quarantine.release(now_s):
            now_s += 10
        waits.append(now_s - began_s)
    assert waits == [30, 60, 120, 240, 480, 600, 600]


def test_quarantine_forgives_after_ten_minutes_of_good_conduct():
    quarantine = Quarantine(30)
    quarantine.put("a", "hung", 0)
    assert quarantine.held() == {"a": "hung"}
    assert quarantine.release(30)
    assert quarantine.held() == {}
    quarantine.release(631)
    quarantine.put("a", "hung", 700)
    assert not quarantine.release(729)
    assert quarantine.release(730)


@pytest.mark.parametrize("code", [1, 2, 3, 4, 9, 12, 13, 15, 16, 18, 25, 999, 77])
def test_every_error_has_words(code: int):
    problem = pynvml.NVMLError(code)
    assert len(why_missing(problem)) > 20
    assert ": " in why_no_start(problem)


def test_text_is_taken_as_bytes_or_str_and_made_printable():
    assert [text(b"H100"), text("H100\n"), text(b"a\xf8"), text(""), text(None)] == ["H100", "H100?", "a�", None, None]
