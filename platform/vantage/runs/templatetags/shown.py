"""How pages write numbers, spans of time and text of any content."""

import json
import math
from datetime import UTC, datetime

from django import template

from vantage.runs.configuration import Missing
from vantage.text import showable

register = template.Library()
BYTES = ("B", "kB", "MB", "GB", "TB")
YEAR_5138 = 1e11  # seconds since 1970


@register.filter
def number(told: object, digits: int = 4) -> str:
    """Write a number with the digits that matter; NaN and infinities by name; what is no number as it was told."""
    value = _float(told)
    if value is None:
        return text(told) or "–"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.{digits}g}"


@register.filter
def share(told: object) -> str:
    """Write a fraction to three places."""
    value = _float(told)
    return f"{value:.3f}" if value is not None and math.isfinite(value) else number(told)


@register.filter
def span(told: object) -> str:
    """Write a span of time in its two largest units."""
    seconds = _float(told)
    if seconds is None or not math.isfinite(seconds):
        return number(told)
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole // 60 % 60:02} min"
    return f"{whole // 86400} d {whole // 3600 % 24} h"


@register.filter
def about(told: object) -> str:
    """Say in how long something is expected, as roughly as it is known."""
    seconds = _float(told)
    if seconds is None or not math.isfinite(seconds):
        return "not known yet"
    if seconds < 60:
        return "in a minute" if seconds >= 5 else "any moment"
    if seconds < 5400:
        return f"in about {round(seconds / 60)} min"
    return f"in about {round(seconds / 3600)} h" if seconds < 172800 else f"in about {round(seconds / 86400)} d"


@register.filter
def size(told: object) -> str:
    """Write a number of bytes."""
    num_bytes = _float(told)
    if num_bytes is None or not math.isfinite(num_bytes):
        return number(told)
    power = min(len(BYTES) - 1, int(math.log(max(1, num_bytes), 1000)))
    return f"{num_bytes / 1000**power:.3g} {BYTES[power]}"


@register.filter
def moment(told: object) -> datetime | None:
    """Turn seconds since 1970 into a time; None where they tell none."""
    seconds = _float(told)
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None and 0 <= seconds <= YEAR_5138 else None


@register.filter
def text(value: object) -> str:
    """Make anything showable text: NUL and lone surrogates become visible signs."""
    return "" if value is None else showable(str(value))


@register.filter
def pairs(value: object) -> list[tuple[object, object]]:
    """The keys and values of a mapping, whatever its keys are called; none of anything else."""
    return list(value.items()) if isinstance(value, dict) else []


@register.filter
def words(name: object) -> str:
    """Write a name from the journal as words."""
    return text(name).replace("_", " ")


@register.filter
def pretty(value: object) -> str:
    """Write a value as indented JSON."""
    return showable(json.dumps(value, indent=2, ensure_ascii=False))


@register.simple_tag(takes_context=True)
def query(context: template.Context, **changes: object) -> str:
    """The present address' query with some of it changed; empty values drop out."""
    wanted = context["request"].GET.copy()
    for name, value in changes.items():
        wanted.pop(name, None)
        if value not in ("", None):
            wanted[name] = str(value)
    return f"?{wanted.urlencode()}" if wanted else "?"


@register.filter
def plain(value: object) -> str:
    """Write a value of a spec: text as it is, lists with commas, numbers exactly, a dash for what is not there."""
    if isinstance(value, Missing):
        return "–"
    if isinstance(value, list):
        return ", ".join(plain(item) for item in value) or "none"
    if isinstance(value, float) and not math.isfinite(value):
        return number(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and value == int(value):
        return f"{int(value):,}"
    return showable(value) if isinstance(value, str) else json.dumps(value)


def _float(value: object) -> float | None:
    """Read a number; None: it is none. Values come from journals, so they may be anything."""
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return math.inf
