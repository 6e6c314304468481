"""Rows of several small requests, scored at once: those that came while others were scored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

from halfseen_serve.scorer import Answer, Scorer

LARGEST_BATCH = 64
"""Requests that are scored at once."""


class MicroBatcher:
    """Scores small requests, as many at once as wait."""

    def __init__(self, scorer: Scorer, executor: Executor) -> None:
        self._scorer, self._executor = scorer, executor
        self._waiting: list[tuple[Any, asyncio.Future[Answer]]] = []
        self._task: asyncio.Task[None] | None = None

    async def answer(self, table: Any) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((table, future))
        if self._task is None:
            self._task = asyncio.create_task(self._answer_all())
        return await future

    async def _answer_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                batch = [(t, f) for t, f in self._waiting[:LARGEST_BATCH] if not f.done()]
                self._waiting = self._waiting[LARGEST_BATCH:]
                tables, futures = [table for table, _ in batch], [future for _, future in batch]

                def is_over(futures: Sequence[asyncio.Future[Answer]] = futures) -> bool:
                    return all(future.done() for future in futures)

                found = await loop.run_in_executor(self._executor, self._answers, tables, is_over)
                for future, answer in zip(futures, found, strict=True):
                    if future.done():  # its deadline is over
                        continue
                    if isinstance(answer, Exception):
                        future.set_exception(answer)
                    else:
                        future.set_result(answer)
        finally:
            self._task = None

    def _answers(
        self, tables: Sequence[Any], is_over: Callable[[], bool]
    ) -> Sequence[Answer | Exception]:
        """Return the answer to each request; what is wrong with one is said to that one alone."""
        if not tables:
            return []
        try:
            return self._scorer.answer(tables, is_over)
        except Exception as error:
            if len(tables) == 1:
                return [error]
            half = len(tables) // 2  # one that is wrong shall not cost the others their company
            return [*self._answers(tables[:half], is_over), *self._answers(tables[half:], is_over)]
