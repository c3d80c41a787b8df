"""One Valkey subscription and one Postgres connection per web process, however many streams are open."""

import asyncio
import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

import redis.asyncio
from django.conf import settings
from django.db import close_old_connections
from django.utils import timezone

from vantage.runs.announce import CHANNEL
from vantage.runs.news import News, admitted, news_of, news_since

GATHER_SECONDS = 0.05  # news of one run within this time are told once
CHECK_SECONDS = 5.0  # a look into Postgres itself: Valkey may be away
MOST_WAITING = 1000  # news a slow reader may leave unread; then it is told to look for itself
logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(eq=False)
class Reader:
    """One open stream."""

    user: int
    session: str
    teams: set[int]
    news: asyncio.Queue[News | None] = field(default_factory=lambda: asyncio.Queue(MOST_WAITING))  # None: it is over

    def tell(self, news: News | None) -> None:
        if self.news.full():
            self.close()
        else:
            self.news.put_nowait(news)

    def close(self) -> None:
        """End the stream; a browser opens it again and reads what it missed."""
        while not self.news.empty():
            self.news.get_nowait()
        self.news.put_nowait(None)


class Hub:
    def __init__(self) -> None:
        self.readers: set[Reader] = set()
        self.known: dict[int, News] = {}
        self._pending: set[int] = set()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._thread = ThreadPoolExecutor(1, "vantage-hub")

    def join(self, reader: Reader) -> None:
        self.readers.add(reader)
        if not self._tasks:
            self._tasks = [asyncio.create_task(work()) for work in (self._listen, self._gather, self._check)]

    def leave(self, reader: Reader) -> None:
        self.readers.discard(reader)
        if not self.readers:
            for task in self._tasks:
                task.cancel()
            self._tasks = []
            self.known = {}

    async def ask(self, question: Callable[[], T]) -> T:
        """Ask Postgres on the hub's one connection."""

        def asked() -> T:
            close_old_connections()
            return question()

        return await asyncio.get_running_loop().run_in_executor(self._thread, asked)

    async def _listen(self) -> None:
        """Hear of runs with news; while Valkey is away the check makes do."""
        while True:
            client = redis.asyncio.Redis.from_url(settings.BROKER_URL, socket_connect_timeout=1)
            try:
                async with client, client.pubsub() as channel:
                    await channel.subscribe(CHANNEL)
                    async for message in channel.listen():
                        if message["type"] == "message":
                            self._pending.add(json.loads(message["data"])["run"])
                            self._wake.set()
            except (redis.RedisError, OSError, ValueError) as error:
                logger.warning("Valkey is away: %s", error)
                await asyncio.sleep(1)

    async def _gather(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._wake.clear()
            runs, self._pending = self._pending, set()
            await self._attempt(lambda runs=runs: news_of(runs))  # type: ignore[misc]

    async def _check(self) -> None:
        """Look for what no message told, and for who may no longer read."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            since = timezone.now() - timedelta(seconds=10 * CHECK_SECONDS)
            await self._attempt(lambda: news_since(since, list(self.known)))  # noqa: B023 awaited at once
            await self._admit()

    async def _attempt(self, question: Callable[[], list[News]]) -> None:
        try:
            self.tell(await self.ask(question))
        except Exception as error:  # whatever keeps Postgres from answering, the stream stays open and asks again
            logger.warning("Postgres does not answer: %s", error)

    def tell(self, found: list[News], *, but: Reader | None = None) -> None:
        """Tell what has changed to all who may see it, but to one who learns it anyway."""
        changed = [news for news in found if self.known.get(news.run) != news]
        self.known |= {news.run: news for news in changed}
        for reader in self.readers - {but}:
            for news in changed:
                if news.team in reader.teams:
                    reader.tell(news)

    async def _admit(self) -> None:
        readers = list(self.readers)
        try:
            teams = await self.ask(lambda: admitted({(reader.user, reader.session) for reader in readers}))
        except Exception as error:  # as above; who was admitted before stays so
            logger.warning("Postgres does not answer: %s", error)
            return
        for reader in readers:
            reader.teams = teams.get((reader.user, reader.session), set())
            if not reader.teams:
                reader.close()
