"""Text from models, made storable and made whole again: Postgres takes neither NUL nor lone surrogates."""

import re

MARK = "\ufdd0"  # a Unicode noncharacter, so it stands in no ordinary text
_UNSTORABLE = re.compile("[\x00\ud800-\udfff" + MARK + "]")
_STORED = re.compile(MARK + "([0-9a-f]{4})")


def storable(text: str) -> str:
    """Escape what Postgres refuses; `restored` undoes it exactly, and ordinary text is unchanged."""
    return _UNSTORABLE.sub(lambda found: f"{MARK}{ord(found.group()):04x}", text)


def restored(text: str) -> str:
    """Undo `storable`."""
    return _STORED.sub(lambda found: chr(int(found.group(1), 16)), text)


def showable(text: str) -> str:
    """Replace what no UTF-8 response can carry by visible signs: NUL by U+2400, lone surrogates by U+FFFD."""
    return re.sub("[\ud800-\udfff]", "\ufffd", restored(text)).replace("\x00", "\u2400")
