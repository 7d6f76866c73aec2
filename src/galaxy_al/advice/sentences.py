"""What is known of a project's progress, in one sentence that is true."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10

from galaxy_al.advice.left import Left
from galaxy_al.advice.proof import Proof
from galaxy_al.advice.stopping import StopAdvice
from galaxy_al.models.estimates import Interval

_DIGITS = 2  # that are shown of an estimate
_MOST_OF = 0.5  # of all examples without a label: as good as not known
_SURE = 0.995


@dataclass(frozen=True)
class Progress:
    """What a sentence may say; what is None is left out.

    Parameters
    ----------
    n_found, n_free
        The rare examples with a label, and all examples without one.
    n_labels
        All labels so far.
    class_name
        The class that all numbers are about; empty for all rare classes together.
    last
        How many questions were asked last, and how many rare examples they found.
    bound
        What random labels say where ``left`` is the model's estimate.
    audit
        How many draws of a running audit have an answer, and how many are wanted.
    """

    n_found: int
    n_free: int
    n_labels: int
    class_name: str = ""
    last: tuple[int, int] | None = None
    left: Left | None = None
    proof: Proof | None = None
    stop: StopAdvice | None = None
    audit: tuple[int, int] | None = None
    bound: Left | None = None


def advice_sentence(progress: Progress) -> str:
    """How many were found, how many are left, and what would prove it.

    Examples
    --------
    >>> left, proof = Left(4.2, 1, 19, "audit", 80), Proof(150, 10, 600, True)
    >>> print(advice_sentence(Progress(42, 600, 700, last=(100, 1), left=left, proof=proof)))
    42 found, about 4 left (1 to 19) by the audit; the last 100 questions found 1; 150 more random \
labels, none of them rare, would prove that at most 10 are left.
    """
    name = f"{progress.class_name}: " if progress.class_name else ""
    if not progress.n_free:
        labeled = plural(progress.n_labels, "example has", "examples have", of="All")
        return f"{name}{labeled} a label, and {count_are(progress.n_found, 'rare')}."
    if not progress.n_labels:
        return f"{name}nothing is labelled yet." if name else "Nothing is labelled yet."
    parts = [found_and_left(progress), _last(progress), _audit(progress)]
    if progress.stop is not None:
        parts.append(_not_proven(progress.stop))
    if progress.proof is not None and (progress.stop is None or progress.stop.state == "ask"):
        parts.append(proof_clause(progress.proof))
    said = "; ".join(part for part in parts if part) + "."
    if progress.stop is not None and progress.stop.state == "holds":
        return f"{stop_sentence(progress.stop, progress.class_name)} {name}{said}"
    return name + (said if name else said[0].upper() + said[1:])


def stop_sentence(stop: StopAdvice, class_name: str = "") -> str:
    """That the wanted share is found, or that it is not proven.

    Examples
    --------
    >>> from galaxy_al.advice.stopping import advise_stop
    >>> left = Left(1.3, 0, 2, "audit", 200)
    >>> print(stop_sentence(advise_stop(0.95, 43, 600, 80, [left]), "dent"))
    By the audit, at least 95% of the examples of dent are found: 97% (95 to 100%).
    """
    examples = f"examples of {class_name}" if class_name else "rare examples"
    if stop.state == "complete":
        return f"Every example has a label: all {examples} are found."
    if stop.state != "holds" or stop.evidence is None or stop.recall is None:
        said = (
            _not_proven(stop) or f"it is not proven that at least {percent(stop.target)} are found"
        )
        return said[0].upper() + said[1:] + "."
    return (
        f"{by(stop.evidence)[0].upper()}{by(stop.evidence)[1:]}, at least {percent(stop.target)} "
        f"of the {examples} are found: {recall_text(stop.recall)}."
    )


def found_and_left(progress: Progress) -> str:
    """How many were found and how many are left.

    Examples
    --------
    >>> found_and_left(Progress(1, 50, 60))
    '1 found, and how many are left cannot be estimated yet'
    """
    found = f"{progress.n_found:,} found"
    if not progress.n_found:
        found = f"nothing found yet in {plural(progress.n_labels, 'label', 'labels')}"
    if not progress.n_labels:
        found = "nothing is labelled yet"
    if progress.left is None:
        return f"{found}, and how many are left cannot be estimated yet"
    return f"{found}, {left_clause(progress.left, progress.n_free)}{_bound(progress)}"


def left_clause(left: Left, n_free: int) -> str:
    """How many are left, and how that is known.

    Examples
    --------
    >>> left_clause(Left(0.2, 0, 3, "model"), 100)
    'perhaps none left (at most 3) as the model estimates it'
    """
    low, high = _rounded(left.low, floor), min(_rounded(left.high, ceil), n_free)
    if left.low == left.high:
        return f"{f'{left.low:,}' if left.low else 'none'} left {by(left)}"
    if left.low == 0 and left.high > _MOST_OF * n_free:
        if left.source == "random labels":
            tell = "does" if left.n_random == 1 else "do"
            labels = plural(left.n_random, "random label", "random labels")
            return f"and {labels} {tell} not tell yet how many are left"
        return f"and how many are left is not known yet {by(left)}"
    if round(left.value) == 0:
        return f"perhaps none left (at most {high:,}) {by(left)}"
    value = min(max(_rounded(left.value, round), low), high)
    return f"about {value:,} left ({low:,} to {high:,}) {by(left)}"


def by(left: Left) -> str:
    """How it is known how many are left."""
    if left.source == "audit":
        return "by the audit"
    if left.source == "random labels":
        return f"by {plural(left.n_random, 'random label', 'random labels')}"
    return "as the model estimates it"


def proof_clause(proof: Proof) -> str:
    """What a proof takes.

    Examples
    --------
    >>> proof_clause(Proof(258_865, 9, 1_000_000, False))
    'to prove that at most 9 of 1,000,000 are left would take about 260,000 random labels'
    """
    are = "is" if proof.limit == 1 else "are"
    if not proof.is_cheap:
        n_labels = min(_rounded(proof.n_labels, ceil), proof.n_free)
        return (
            f"to prove that at most {proof.limit:,} of {proof.n_free:,} {are} left would take "
            f"about {n_labels:,} random labels"
        )
    labels = plural(proof.n_labels, "more random label", "more random labels")
    none = "if it is not rare" if proof.n_labels == 1 else "none of them rare"
    return f"{labels}, {none}, would prove that at most {proof.limit:,} {are} left"


def finds_clause(forecast: Interval | None, n: int) -> str:
    """What the next questions may find.

    Examples
    --------
    >>> finds_clause(Interval(7.1, 0.0, 34.0), 100)
    'the next 100 questions may find about 7 (0 to 34)'
    >>> finds_clause(None, 100)
    'it is too early to tell what the next 100 questions will find'
    """
    questions = "the next question" if n == 1 else f"the next {n:,} questions"
    if forecast is None:
        return f"it is too early to tell what {questions} will find"
    low, high = floor(forecast.low), ceil(forecast.high)
    if low == high:
        return f"{questions} may find {low or 'none'}"
    if round(forecast.value) == 0:
        return f"{questions} may find none (at most {high:,})"
    value = min(max(_rounded(forecast.value, round), low), high)
    return f"{questions} may find about {value:,} ({low:,} to {high:,})"


def rise_clause(rise: Interval | None, n: int) -> str:
    """What more labels may do to the average precision.

    Examples
    --------
    >>> rise_clause(Interval(0.0, -0.02, 0.081), 100)
    '100 more labels may change the average precision by -0.02 to +0.09'
    """
    labels = plural(n, "more label", "more labels")
    if rise is None:
        return f"it is too early to tell what {labels} will change"
    low, high = floor(100 * rise.low + 1e-9) / 100, ceil(100 * rise.high - 1e-9) / 100
    return f"{labels} may change the average precision by {low:.2f} to +{high:.2f}"


def recall_text(recall: Interval) -> str:
    """A share and its interval in percent; 100% is only said of what is complete.

    Examples
    --------
    >>> recall_text(Interval(0.999, 0.952, 1.0))
    '99% (95 to 100%)'
    """
    low, high = floor(100 * recall.low + 1e-9), ceil(100 * recall.high - 1e-9)
    value = 100 if recall.low == 1 else min(round(100 * recall.value), 99)
    return f"{value}%" if low == high else f"{max(value, low)}% ({low} to {high}%)"


def percent(share: float) -> str:
    """A share in percent, without zeros.

    Examples
    --------
    >>> percent(0.95), percent(0.995)
    ('95%', '99.5%')
    """
    return f"{100 * share:.4g}%"


def plural(n: int, one: str, many: str, of: str = "") -> str:
    """A number and what is counted.

    Examples
    --------
    >>> plural(1, "label", "labels"), plural(1200, "label", "labels")
    ('1 label', '1,200 labels')
    """
    words = f"{n:,} {one if n == 1 else many}"
    return words if not of else f"The only {one}" if n == 1 else f"{of} {words}"


def count_are(n: int, what: str) -> str:
    """How many of some examples are something.

    Examples
    --------
    >>> count_are(0, "rare"), count_are(1, "rare"), count_are(2, "rare")
    ('none is rare', '1 is rare', '2 are rare')
    """
    return f"none is {what}" if not n else f"{n:,} {'is' if n == 1 else 'are'} {what}"


def _last(progress: Progress) -> str:
    if progress.last is None or not progress.last[0] or not progress.n_found:
        return ""
    n, found = progress.last
    questions = "the last question" if n == 1 else f"the last {n:,} questions"
    return f"{questions} found {f'{found:,}' if found else 'none'}"


def _bound(progress: Progress) -> str:
    """What is sure, beside an estimate, if that is worth a word."""
    bound = progress.bound
    if bound is None or progress.left is None or progress.left.source != "model":
        return ""
    if bound.high > _MOST_OF * progress.n_free:
        return ""
    high = min(_rounded(bound.high, ceil), progress.n_free)
    return f", and at most {high:,} {by(bound)}"


def _audit(progress: Progress) -> str:
    if progress.audit is None:
        return ""
    n, wanted = progress.audit
    return f"the audit has {n:,} of {plural(wanted, 'label', 'labels')}"


def _not_proven(stop: StopAdvice) -> str:
    """What would prove that the target is reached, where it is time for that."""
    if stop.state != "sample":
        return ""
    labels = plural(_rounded(stop.proof, ceil), "random label", "random labels")
    none = "if it is not rare" if stop.proof == 1 else "none of them rare"
    labels += f" of the {stop.n_free:,} left" if 2 * stop.proof > stop.n_free else ""
    return f"about {labels}, {none}, would prove that at least {percent(stop.target)} are found"


def _rounded(value: float, rounding: object) -> int:
    """A number with few digits, so that it is not read as exact."""
    assert callable(rounding)
    size = 10 ** max(floor(log10(value)) - _DIGITS + 1, 0) if value >= 1 else 1
    return int(rounding(value / size)) * size
