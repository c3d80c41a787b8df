"""MathML by hand: small functions that return escaped markup, so that a formula can be selected, read aloud and styled.

Only elements of MathML Core, which browsers lay out by themselves.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import TypeAlias

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

TIMES = "\u2062"  # invisible: read as "times", not drawn
BAR = "‾"
THIN = SafeString('<mspace width="0.17em"/>')
SMALLEST_PLAIN = Decimal("0.001")
Math: TypeAlias = SafeString


def mi(name: str) -> Math:
    return format_html("<mi>{}</mi>", name)


def upright(name: str) -> Math:
    """A name of several letters, or one that is no variable."""
    return format_html('<mi mathvariant="normal">{}</mi>', name)


def mo(sign: str) -> Math:
    return format_html("<mo>{}</mo>", sign)


def words(text: str) -> Math:
    return format_html("<mtext>{}</mtext>", text)


def row(*parts: Math) -> Math:
    return format_html("<mrow>{}</mrow>", joined(parts))


def joined(parts: Sequence[Math]) -> Math:
    return format_html_join("", "{}", ((part,) for part in parts))


def frac(top: Math, bottom: Math) -> Math:
    return format_html("<mfrac>{}{}</mfrac>", top, bottom)


def sub(base: Math, index: Math) -> Math:
    return format_html("<msub>{}{}</msub>", base, index)


def sup(base: Math, power: Math) -> Math:
    return format_html("<msup>{}{}</msup>", base, power)


def subsup(base: Math, index: Math, power: Math) -> Math:
    return format_html("<msubsup>{}{}{}</msubsup>", base, index, power)


def root(inner: Math) -> Math:
    return format_html("<msqrt>{}</msqrt>", inner)


def over(base: Math, accent: str) -> Math:
    return format_html('<mover accent="true">{}{}</mover>', base, mo(accent))


def named(name: str, inner: Math) -> Math:
    """A function without brackets, as log π is written, with the space that sets them apart."""
    return row(upright(name), mo("\u2061"), THIN, inner)


def fenced(*parts: Math, left: str = "(", right: str = ")") -> Math:
    return row(format_html('<mo fence="true">{}</mo>', left), *parts, format_html('<mo fence="true">{}</mo>', right))


def call(name: str, *arguments: Math) -> Math:
    """min(a, b) and the like."""
    listed = [piece for argument in arguments for piece in (mo(","), argument)][1:]
    return row(upright(name), mo("\u2061"), fenced(*listed))


def big(sign: str, below: Math, above: Math | None = None) -> Math:
    """A sum or product with its bounds."""
    drawn = format_html('<mo largeop="true" movablelimits="false">{}</mo>', sign)
    if above is None:
        return format_html("<munder>{}{}</munder>", drawn, below)
    return format_html("<munderover>{}{}{}</munderover>", drawn, below, above)


def product(*factors: Math) -> Math:
    return row(*[piece for factor in factors for piece in (mo(TIMES), THIN, factor)][2:])


def equation(left: Math, right: Math, sign: str = "=") -> Math:
    return row(left, mo(sign), right)


def minus(left: Math, right: Math) -> Math:
    return row(left, mo("−"), right)


def plus(left: Math, right: Math) -> Math:
    return row(left, mo("+"), right)


def cases(*branches: tuple[Math, Math]) -> Math:
    """Values with their conditions below one another."""
    lines = format_html_join("", "<mtr><mtd>{}</mtd><mtd>{}</mtd></mtr>", branches)
    return row(format_html('<mo fence="true" stretchy="true">{}</mo>', "{"), format_html("<mtable>{}</mtable>", lines))


def indicator(condition: Math) -> Math:
    """1 where the condition holds, else 0."""
    return row(upright("1"), fenced(condition, left="[", right="]"))


def num(value: float) -> Math:
    """A number as it was configured, exactly: 0.28, 3 × 10^-4."""
    return exact(Decimal(repr(value)))


def exact(value: Decimal) -> Math:
    if value and abs(value) < SMALLEST_PLAIN:
        return scientific(value)
    text = f"{value:f}"
    plain = text.rstrip("0").rstrip(".") if "." in text else text
    return format_html("<mn>{}</mn>", plain.replace("-", "−"))


def scientific(value: Decimal) -> Math:
    exponent = value.adjusted()
    power = sup(exact(Decimal(10)), format_html("<mn>{}</mn>", f"−{-exponent}"))
    mantissa = value.scaleb(-exponent).normalize()
    return power if mantissa == 1 else row(exact(mantissa), mo("×"), power)
