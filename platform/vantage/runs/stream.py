"""The one event stream of a browser: it says which runs have news, never what they are."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from django.db import connections
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from vantage.numbers import whole
from vantage.runs.hub import Hub, Reader
from vantage.runs.news import News, news_since
from vantage.teams.access import reader as person

QUIET_SECONDS = 15.0  # a comment that often keeps proxies from closing the stream
_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


@require_GET
async def stream(request: HttpRequest) -> StreamingHttpResponse:
    """Tell runs under way at once, then every run with news; `Last-Event-ID` is the time until which all was told."""
    admitted = await sync_to_async(_admit)(request)
    await sync_to_async(connections.close_all)()  # a stream holds no connection to Postgres
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(_events(admitted, _since(request)), headers=headers)


def _admit(request: HttpRequest) -> Reader:
    user = person(request)
    teams = set(user.visible_teams().values_list("pk", flat=True))
    return Reader(user.pk, request.session.session_key or "", teams)


def _since(request: HttpRequest) -> datetime:
    told = whole(request.headers.get("Last-Event-ID", ""), int(1000 * timezone.now().timestamp()))
    return timezone.now() if told is None else _time(told)


def _time(milliseconds: int) -> datetime:
    oldest = timezone.now() - timedelta(days=7)
    return oldest + max(timedelta(), timedelta(milliseconds=milliseconds - 1000 * oldest.timestamp()))


async def _events(reader: Reader, since: datetime) -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    hub = _hubs[loop] = _hubs.get(loop) or Hub()
    hub.join(reader)
    try:
        yield "retry: 2000\n: open\n\n"
        standing = await hub.ask(lambda: news_since(since, []))
        hub.tell(standing, but=reader)
        for news in standing:
            if news.team in reader.teams:
                yield _event(news)
        while True:
            try:
                told = await asyncio.wait_for(reader.news.get(), QUIET_SECONDS)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if told is None:
                return
            yield _event(told)
    finally:
        hub.leave(reader)


def _event(news: News) -> str:
    return f"id: {int(1000 * time.time())}\ndata: {json.dumps(news.as_json())}\n\n"
