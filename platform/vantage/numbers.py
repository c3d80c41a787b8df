"""Numbers that people and programs write into addresses, headers and forms."""

LARGEST = 2**63 - 1  # that Postgres' bigint holds


def whole(text: str, most: int = LARGEST) -> int | None:
    """Read digits as a whole number up to `most`; None for signs, other scripts, five thousand digits."""
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(LARGEST)):
        return None
    number = int(text)
    return number if number <= most else None
