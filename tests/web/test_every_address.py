"""Whatever address is added: without a login it shows nothing."""

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.converters import IntConverter, UUIDConverter

OPEN = {"login", "login_link", "logout"}
SAMPLES = {IntConverter: "1", UUIDConverter: "00000000-0000-0000-0000-000000000000"}


def addresses(patterns: list[URLPattern | URLResolver], before: str = "/") -> Iterator[tuple[str, str]]:
    """(name, path) of every address, its parameters filled with samples."""
    for entry in patterns:
        path = str(entry.pattern)
        for name, converter in entry.pattern.converters.items():
            prefix = path.split(f":{name}>")[0].rpartition("<")[2]
            path = path.replace(f"<{prefix}:{name}>", SAMPLES.get(type(converter), "x"))
        if isinstance(entry, URLResolver):
            yield from addresses(entry.url_patterns, before + path)
        else:
            yield entry.name or before + path, before + path


@pytest.mark.django_db
def test_every_address_asks_for_a_login() -> None:
    checked = [(name, path) for name, path in addresses(get_resolver().url_patterns) if name not in OPEN]
    assert len(checked) > 25
    for name, path in checked:
        for answer in (Client().get(path), Client().post(path)):
            assert answer.status_code == 302, (name, path)
            assert answer["Location"].startswith("/login/"), (name, path)
