"""The sentences say what is true, in plain English, without false precision."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from galaxy_al.advice.left import Left
from galaxy_al.advice.proof import Proof, plan_proof
from galaxy_al.advice.sentences import (
    Progress,
    advice_sentence,
    finds_clause,
    left_clause,
    recall_text,
    rise_clause,
    stop_sentence,
)
from galaxy_al.advice.stopping import advise_stop
from galaxy_al.models.estimates import Interval

AUDIT = Left(4.2, 1, 19, "audit", 80)
PROOF = Proof(150, 10, 600, True)
TABLE = {
    "the issue's example": (
        Progress(42, 600, 700, last=(100, 1), left=AUDIT, proof=PROOF),
        "42 found, about 4 left (1 to 19) by the audit; the last 100 questions found 1; 150 more "
        "random labels, none of them rare, would prove that at most 10 are left.",
    ),
    "by the model": (
        Progress(42, 600, 700, left=Left(4.2, 1, 19, "model")),
        "42 found, about 4 left (1 to 19) as the model estimates it.",
    ),
    "by the model, with a bound that is sure": (
        Progress(
            42,
            60_000,
            700,
            left=Left(4.2, 1, 19, "model"),
            bound=Left(0.0, 0, 4321, "random labels", 50),
        ),
        "42 found, about 4 left (1 to 19) as the model estimates it, and at most 4,400 by 50 "
        "random labels.",
    ),
    "by the model, with a bound that says nothing": (
        Progress(
            42,
            600,
            700,
            left=Left(4.2, 1, 19, "model"),
            bound=Left(0.0, 0, 432, "random labels", 5),
        ),
        "42 found, about 4 left (1 to 19) as the model estimates it.",
    ),
    "by one random label": (
        Progress(2, 9, 3, left=Left(3.0, 1, 4, "random labels", 1)),
        "2 found, about 3 left (1 to 4) by 1 random label.",
    ),
    "nothing found yet": (
        Progress(0, 500, 120, last=(100, 0)),
        "Nothing found yet in 120 labels, and how many are left cannot be estimated yet.",
    ),
    "nothing labelled": (Progress(0, 500, 0), "Nothing is labelled yet."),
    "nothing labelled of one class": (
        Progress(0, 500, 0, "dent"),
        "dent: nothing is labelled yet.",
    ),
    "nothing at all": (
        Progress(0, 500, 1),
        "Nothing found yet in 1 label, and how many are left cannot be estimated yet.",
    ),
    "random labels that say little": (
        Progress(3, 900, 20, left=Left(90.0, 0, 700, "random labels", 12)),
        "3 found, and 12 random labels do not tell yet how many are left.",
    ),
    "an audit that is running": (
        Progress(42, 600, 700, left=AUDIT, audit=(80, 150)),
        "42 found, about 4 left (1 to 19) by the audit; the audit has 80 of 150 labels.",
    ),
    "one class of several": (
        Progress(7, 600, 700, "dent", last=(1, 1), left=Left(0.3, 0, 2, "audit", 9)),
        "dent: 7 found, perhaps none left (at most 2) by the audit; the last question found 1.",
    ),
    "a class without an estimate": (
        Progress(1, 600, 700, "rust", last=(50, 0)),
        "rust: 1 found, and how many are left cannot be estimated yet; "
        "the last 50 questions found none.",
    ),
    "all labelled": (Progress(3, 0, 60), "All 60 examples have a label, and 3 are rare."),
    "all labelled and one is rare": (
        Progress(1, 0, 60),
        "All 60 examples have a label, and 1 is rare.",
    ),
    "a hopeless proof": (
        Progress(
            42, 10**6, 700, left=Left(4, 1, 90_001, "audit", 9), proof=plan_proof(10**6, 700, 9)
        ),
        "42 found, about 4 left (1 to 91,000) by the audit; to prove that at most 9 of 1,000,000 "
        "are left would take about 260,000 random labels.",
    ),
    "a proof by one label": (
        Progress(1, 2, 5, proof=Proof(1, 1, 2, True)),
        "1 found, and how many are left cannot be estimated yet; 1 more random label, if it is not "
        "rare, would prove that at most 1 is left.",
    ),
    "none left": (
        Progress(5, 20, 60, left=Left(0.0, 0, 0, "audit", 30)),
        "5 found, none left by the audit.",
    ),
    "the stop rule holds": (
        Progress(
            43, 600, 700, left=AUDIT, stop=advise_stop(0.95, 43, 600, 0, [Left(1.3, 0, 2, "audit")])
        ),
        "By the audit, at least 95% of the rare examples are found: 97% (95 to 100%). "
        "43 found, about 4 left (1 to 19) by the audit.",
    ),
    "the stop rule asks for random labels": (
        Progress(42, 600, 700, left=AUDIT, stop=advise_stop(0.9, 42, 600, 500), proof=PROOF),
        "42 found, about 4 left (1 to 19) by the audit; about 340 random labels of the 600 "
        "left, none of them rare, would prove that at least 90% are found.",
    ),
    "the stop rule, where a proof takes most of the pool": (
        Progress(5, 600, 700, left=AUDIT, stop=advise_stop(0.9, 5, 600, 500)),
        "5 found, about 4 left (1 to 19) by the audit; about 600 random labels of the 600 left, "
        "none of them rare, would prove that at least 90% are found.",
    ),
    "the stop rule has not begun": (
        Progress(42, 600, 700, left=AUDIT, stop=advise_stop(0.9, 42, 600, 5), proof=PROOF),
        "42 found, about 4 left (1 to 19) by the audit; 150 more random labels, none of them "
        "rare, would prove that at most 10 are left.",
    ),
}


@pytest.mark.parametrize(("progress", "said"), TABLE.values(), ids=TABLE)
def test_the_sentence_is(progress: Progress, said: str) -> None:
    assert advice_sentence(progress) == said


@pytest.mark.parametrize(
    ("recall", "said"),
    [
        (Interval(0.97, 0.95, 1.0), "97% (95 to 100%)"),
        (Interval(1.0, 1.0, 1.0), "100%"),
        (Interval(0.9996, 0.9991, 1.0), "99% (99 to 100%)"),
        (Interval(0.5, 0.1234, 0.6789), "50% (12 to 68%)"),
    ],
)
def test_shares_are_rounded_away_from_what_is_claimed(recall, said) -> None:
    assert recall_text(recall) == said


def test_without_evidence_nothing_is_said_to_be_found() -> None:
    assert stop_sentence(advise_stop(0.9, 42, 600, 0)) == (
        "It is not proven that at least 90% are found."
    )
    assert stop_sentence(advise_stop(0.9, 42, 0, 0)) == (
        "Every example has a label: all rare examples are found."
    )


def test_forecasts_are_said_in_words() -> None:
    assert finds_clause(Interval(0.0, 0.0, 0.0), 50) == "the next 50 questions may find none"
    assert finds_clause(Interval(0.2, 0.0, 3.0), 1) == "the next question may find none (at most 3)"
    assert rise_clause(None, 1) == "it is too early to tell what 1 more label will change"


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 1), st.integers(0, 10**7))
def test_the_interval_that_is_said_holds_what_is_known(low, width, place, more) -> None:
    n_free = low + width + more
    left = Left(low + place * width, low, low + width, "audit", 10)
    numbers = [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", left_clause(left, n_free))]
    if len(numbers) == 3:
        value, first, last = numbers
        assert first <= left.low <= left.high <= last <= n_free or last == n_free
        assert first <= value <= last


@given(st.integers(0, 10**4), st.integers(0, 10**6), st.integers(1, 10**4), st.integers(0, 600))
def test_every_sentence_is_one_line_that_ends_with_a_period(n_found, n_free, more, dry) -> None:
    stop = advise_stop(0.9, n_found, n_free, dry)
    proof = plan_proof(n_free, n_found + more)
    said = advice_sentence(Progress(n_found, n_free, n_found + more, stop=stop, proof=proof))
    assert said.endswith(".")
    assert "\n" not in said
    assert not re.search(r"\b1 (labels|examples|are)\b", said)
