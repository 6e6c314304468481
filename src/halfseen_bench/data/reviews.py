"""Amazon reviews in the ``processed_acl`` format, and the words they are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse

from halfseen.errors import InputError
from halfseen_bench.data.official import content, locate

__all__ = [
    "Weighting",
    "counts_matrix",
    "most_frequent",
    "mutual_information",
    "read_domain",
    "weighted",
]

Weighting = Literal["count", "binary", "tfidf"]
"""What stands for a word in a review: how often, whether at all, or tf-idf (rows of length 1)."""
Review = dict[str, int]
Labels = npt.NDArray[np.int64]
_SENTIMENTS = ("negative", "positive")


def read_domain(root: Path, domain: str) -> tuple[list[Review], Labels]:
    """Return a domain's labelled reviews as word counts, and their labels (1 is positive)."""
    reviews: list[Review] = []
    labels: list[int] = []
    for sentiment in _SENTIMENTS:
        path = locate(root, f"amazon/processed_acl/{domain}/{sentiment}.review")
        text = content(path).decode("utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                review, label = _parsed(line, f"{path}, line {number}")
                reviews.append(review)
                labels.append(label)
    if not reviews:
        raise InputError(
            f"The domain {domain!r} is empty: its files in the data folder {root} hold no review."
        )
    return reviews, np.array(labels, dtype=np.int64)


def most_frequent(reviews: Sequence[Review], count: int) -> list[str]:
    """Return the `count` words that occur most often; ties in alphabetical order.

    Examples
    --------
    >>> most_frequent([{"good": 2, "bad": 1}, {"bad": 1, "not_bad": 1}], 2)
    ['bad', 'good']
    """
    total: Counter[str] = Counter()
    for review in reviews:
        total.update(review)
    return sorted(total, key=lambda word: (-total[word], word))[:count]


def counts_matrix(reviews: Sequence[Review], words: Sequence[str]) -> scipy.sparse.csr_matrix:
    """Return how often each word occurs in each review."""
    position = {word: column for column, word in enumerate(words)}
    columns: list[int] = []
    values: list[int] = []
    ends = [0]
    for review in reviews:
        for word, count in review.items():
            if word in position:
                columns.append(position[word])
                values.append(count)
        ends.append(len(columns))
    return scipy.sparse.csr_matrix(
        (np.array(values, dtype=np.float32), columns, ends), shape=(len(reviews), len(words))
    )


def weighted(
    counts: scipy.sparse.csr_matrix, weighting: Weighting, fitted: npt.NDArray[np.int64]
) -> scipy.sparse.csr_matrix:
    """Weight the counts; tf-idf takes its document frequencies from the `fitted` rows.

    tf-idf is ``count * (1 + log((1 + n) / (1 + documents)))``, each row then scaled to length 1.
    """
    if weighting == "count":
        return counts
    if weighting == "binary":
        return (counts > 0).astype(np.float32)
    documents = np.asarray((counts[fitted] > 0).sum(axis=0)).ravel()
    rarity = 1.0 + np.log((1 + len(fitted)) / (1 + documents))
    product = counts @ scipy.sparse.diags(rarity)
    length = np.sqrt(np.asarray(product.multiply(product).sum(axis=1)).ravel())
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return (scipy.sparse.diags(scale) @ product).astype(np.float32).tocsr()


def mutual_information(present: scipy.sparse.csr_matrix, labels: Labels) -> npt.NDArray[np.float64]:
    """Return I(word is present; label), in nats, for every column of a 0/1 matrix."""
    information = np.zeros(present.shape[1])
    share_present = np.asarray(present.mean(axis=0, dtype=np.float64)).ravel()
    for label in np.unique(labels):
        share_label = np.mean(labels == label)
        joint = np.asarray(present[labels == label].sum(axis=0)).ravel() / len(labels)
        for both, alone in ((joint, share_present), (share_label - joint, 1 - share_present)):
            independent = share_label * alone
            held = both > 0
            information[held] += both[held] * np.log(both[held] / independent[held])
    return information


def _parsed(line: str, where: str) -> tuple[Review, int]:
    """Return the word counts and the label of one line."""
    review: Review = {}
    label = None
    for entry in line.split():
        word, _, value = entry.rpartition(":")
        if word == "#label#":
            label = value
        elif not word or not value.isdecimal():
            raise InputError(f"{where}: {entry!r} is not 'word:count'.")
        else:
            review[word] = review.get(word, 0) + int(value)
    if label is None:
        raise InputError(f"{where}: the review has no label ('#label#:positive' or negative).")
    if label not in _SENTIMENTS:
        raise InputError(f"{where}: the label {label!r} is neither positive nor negative.")
    return review, _SENTIMENTS.index(label)
