"""Rows of several small requests, scored at once: those that came while others were scored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.serve.json_body import Values, as_table
from halfseen.serve.scorer import Scorer

Scores = tuple[npt.NDArray[np.float64], npt.NDArray[Any]]
MOST = 64
"""Requests that are scored at once."""


class Together:
    """Scores a few rows of JSON values, as many requests at once as wait."""

    def __init__(self, scorer: Scorer, executor: Executor) -> None:
        self._scorer, self._executor = scorer, executor
        self._waiting: list[tuple[Values, asyncio.Future[Scores]]] = []
        self._work: asyncio.Task[None] | None = None

    async def score(self, values: Values) -> Scores:
        answer: asyncio.Future[Scores] = asyncio.get_running_loop().create_future()
        self._waiting.append((values, answer))
        if self._work is None:
            self._work = asyncio.create_task(self._score_all())
        return await answer

    async def _score_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                taken, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                taken = [(values, answer) for values, answer in taken if not answer.done()]
                asked, answers = [v for v, _ in taken], [a for _, a in taken]
                is_over = partial(_nobody_waits, answers)
                found = await loop.run_in_executor(self._executor, self._scores, asked, is_over)
                for answer, scores in zip(answers, found, strict=True):
                    if answer.done():  # its deadline is over
                        continue
                    if isinstance(scores, Exception):
                        answer.set_exception(scores)
                    else:
                        answer.set_result(scores)
        finally:
            self._work = None

    def _scores(self, asked: list[Values], is_over: Callable[[], bool]) -> list[Scores | Exception]:
        """Return the scores of each request; what is wrong with one is said to that one alone."""
        if not asked:
            return []
        try:
            columns = self._scorer.columns
            joined = {c.name: [v for values in asked for v in values[c.name]] for c in columns}
            read = self._scorer.read(as_table(joined, columns))
            scores = self._scorer.score(read, is_over)
        except Exception as error:
            if len(asked) == 1:
                return [error]
            half = len(asked) // 2  # one that is wrong shall not cost the others their company
            return self._scores(asked[:half], is_over) + self._scores(asked[half:], is_over)
        ends = np.cumsum([len(values[columns[0].name]) for values in asked])[:-1]
        return list(zip(*(np.split(part, ends) for part in scores), strict=True))


def _nobody_waits(answers: list[asyncio.Future[Scores]]) -> bool:
    return all(answer.done() for answer in answers)
