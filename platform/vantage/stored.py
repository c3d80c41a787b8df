"""Model fields for text and JSON of any content: what Postgres refuses is escaped going in and restored coming out."""

import json
import math
from collections.abc import Callable
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from vantage.text import MARK, restored, storable

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
DEEPEST = 100  # levels of lists and objects
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class StoredText(models.TextField):
    """Text of any content, NUL and lone surrogates included."""

    def get_prep_value(self, value: str | None) -> str | None:
        return None if value is None else storable(value)

    def from_db_value(self, value: str | None, expression: object, connection: BaseDatabaseWrapper) -> str | None:
        return None if value is None else restored(value)


class StoredJSON(models.JSONField):
    """JSON of any content, NaN and infinities included; give it no conditions on text that may be escaped."""

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        return super().get_db_prep_value(
            to_jsonb(value) if not hasattr(value, "as_sql") else value, connection, prepared
        )

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        found = super().from_db_value(value, expression, connection)
        return found if isinstance(value, str) and MARK not in value else from_jsonb(found)  # most hold no escape


def to_jsonb(value: Json) -> Json:
    """Return JSON that jsonb takes; `from_jsonb` undoes it exactly."""
    if isinstance(value, float) and not math.isfinite(value):
        return MARK + json.dumps(value)
    return _mapped(value, storable, to_jsonb)


def from_jsonb(value: Json) -> Json:
    """Undo `to_jsonb`."""
    if isinstance(value, str) and value[1:] in _WORDS and value[0] == MARK:
        return _WORDS[value[1:]]
    return _mapped(value, restored, from_jsonb)


def is_deep(value: Json) -> bool:
    """Whether a value has more than DEEPEST levels: too many for the stacks of who reads it later."""
    level = [value]
    for _ in range(DEEPEST):
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [one for part in inner for one in part]
        if not level:
            return False
    return any(isinstance(one, dict | list) for one in level)


def _mapped(value: Json, text: Callable[[str], str], inner: Callable[[Json], Json]) -> Json:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list | tuple):
        return [inner(item) for item in value]
    return {text(key): inner(item) for key, item in value.items()} if isinstance(value, dict) else value
