"""A page that fails leaves its reason in the log of the web process, and no secret with it."""

import logging
from collections.abc import Iterator
from io import StringIO

import pytest
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path


@login_not_required
def broken(request: HttpRequest, token: str, pk: int) -> HttpResponse:
    raise RuntimeError("the shelf is gone")


urlpatterns = [path("enter/<str:token>/<int:pk>/", broken)]


@pytest.fixture
def stderr() -> Iterator[StringIO]:
    """What the handler of Django's own complaints writes."""
    handler = next(one for one in logging.getLogger("django").handlers if isinstance(one, logging.StreamHandler))
    before, handler.stream = handler.stream, StringIO()  # not setStream: it flushes, and what was there may be closed
    yield handler.stream
    handler.stream = before


@override_settings(ROOT_URLCONF=__name__, DEBUG=False)
def test_a_page_that_fails_says_why_in_the_log_and_keeps_its_token(stderr: StringIO) -> None:
    answer = Client(raise_request_exception=False).get("/enter/s3cret/12/?password=hidden")
    assert answer.status_code == 500
    text = stderr.getvalue()
    assert "Internal Server Error: /enter/…/12/" in text
    assert "RuntimeError: the shelf is gone" in text
    assert "s3cret" not in text
    assert "hidden" not in text


@override_settings(ROOT_URLCONF=__name__, DEBUG=False)
def test_a_page_that_is_not_there_is_no_complaint(stderr: StringIO) -> None:
    assert Client(raise_request_exception=False).get("/nowhere/").status_code in (302, 404)
    assert stderr.getvalue() == ""
