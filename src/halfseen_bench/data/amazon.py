"""Amazon reviews (Blitzer and others, 2007): positive or negative, four kinds of product.

What the target lacks is decided by a named rule, because the paper's own rule ("the first half of
the PCA dimensions") leaves almost nothing to predict from; see :data:`Rule`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.feature_extraction import DictVectorizer

from halfseen.blocks import Blocks
from halfseen.errors import InputError, OptionError
from halfseen.splitting import held_out_share
from halfseen_bench.data.natural import make_pair
from halfseen_bench.data.official import OfficialFile, content, locate
from halfseen_bench.data.pairs import Card, DomainPair, Inputs, Labelled, Labels
from halfseen_bench.data.splitting import Evaluation, check_choice, check_domains, target_rows

DOMAINS = ("books", "dvd", "electronics", "kitchen")
_HASHES = {
    "books/negative": "42e4d7e63f429e396de0db87b814f8c6a4b4948d34c94524725b0fe2944a0ff4",
    "books/positive": "d27a35a59e99b2c2d56731cad8d63870f8a3b9063a70bf8c18862e0a107cdd02",
    "dvd/negative": "9f0c977cf863f361f1f9961dc9e8c2b88630902da3eb5fd880146445144c355d",
    "dvd/positive": "7e3a2655f9afd141bba569d0df6a4444f6bfa3c28daf243f21125c757940b563",
    "electronics/negative": "497d95c1ce079d2db672f9d2efa9cc02ba4ebd2a525f7b2495233305def11616",
    "electronics/positive": "38d0ee5fd4147cfaff427b7f8c1ea9aacbb1fd383d51676288b7af5947fe039f",
    "kitchen/negative": "674510d22f8f0b27790d323ef8633408777e92c122e801ee4ba02bb001d1d798",
    "kitchen/positive": "30fd84894433ee9dd7f7aa3da6f858811104e364528719be2d77372295c7d3b3",
}
FILES = tuple(
    OfficialFile(f"amazon/processed_acl/{name}.review.gz", sha256)
    for name, sha256 in _HASHES.items()
)

Rule = Literal["words", "leading"]
"""What is missing on the target.

``words``: a seeded half of the vocabulary is never observed, and each half is projected on its
own: what a missing source of text looks like. ``leading``: the paper to the letter, one projection
of which the first half is missing.
"""
Review = dict[str, int]
Matrix: TypeAlias = Any
"""A sparse one of scipy, which has no types."""
CLASSES = ("negative", "positive")


def load_pair(
    root: Path,
    source: str,
    target: str,
    *,
    rule: Rule = "words",
    weighting: Literal["binary"] = "binary",
    vocabulary: int = 5000,
    dimensions: int = 400,
    evaluation: Evaluation = "transductive",
    test_fraction: float = 0.2,
    seed: int = 0,
) -> DomainPair:
    """Read two kinds of product as one problem: is a word in a review, then projections.

    `vocabulary` is how many of the most frequent unigrams and bigrams of both domains' training
    rows are used, `dimensions` how many inputs result; half of them are missing on the target.
    `weighting` is there because logs name it. The other options are those of
    :func:`halfseen_bench.data.heart.load_pair`; the seed draws the missing words, too.
    """
    check_domains(source, target, DOMAINS)
    check_choice("rule", rule, get_args(Rule))
    check_choice("weighting", weighting, ("binary",))
    if dimensions < 2 or dimensions % 2:
        raise OptionError(f"dimensions={dimensions} must be even: half of them are missing.")
    source_reviews, source_labels = read_domain(root, source)
    target_reviews, target_labels = read_domain(root, target)
    start, half = len(source_reviews), dimensions // 2
    train, test = held_out_share(source_labels, test_fraction, seed)
    adapted, predicted = target_rows(len(target_reviews), evaluation, seed)
    fitted = np.concatenate([train, start + adapted])
    counts = word_counts(source_reviews + target_reviews, fitted, vocabulary)
    matrix = (counts > 0).astype(np.float32)
    generator = np.random.default_rng(seed)
    if rule == "words":
        inputs = _by_halves(matrix, fitted, half, generator)
        names = [f"{block}_{i + 1:03d}" for block in ("seen", "unseen") for i in range(half)]
        missing = range(half, dimensions)
        words = (
            f"A seeded half of the vocabulary ({matrix.shape[1] // 2} words) is never observed; "
            f"PCA to {half} dimensions inside each half (rule 'words')."
        )
    else:
        inputs = _projected(matrix, fitted, dimensions, generator)
        names, missing = [f"pc_{i + 1:03d}" for i in range(dimensions)], range(half)
        words = (
            f"The first {half} of {dimensions} PCA dimensions (rule 'leading'): what remains says "
            "little about the label."
        )
    return make_pair(
        f"{source}->{target}",
        (Labelled(inputs[:start], source_labels), Labelled(inputs[start:], target_labels)),
        blocks=Blocks.columns(names, missing),
        classes=CLASSES,
        card=Card(
            what=f"Positive or negative review, learned on {source}, predicted on {target}.",
            origin="Multi-Domain Sentiment Dataset, Blitzer, Dredze and Pereira (2007), "
            "processed_acl, www.cs.jhu.edu/~mdredze/datasets/sentiment",
            licence="research use",
            counts={
                f"{source} train": len(train),
                f"{source} test": len(test),
                f"{target} train": len(adapted),
                f"{target} test": len(predicted),
            },
            missing=words,
        ),
        split=(evaluation, test_fraction, seed),
        is_complete=True,
    )


def _by_halves(
    matrix: Matrix, fitted: npt.NDArray[np.int64], half: int, generator: np.random.Generator
) -> Inputs:
    """Return each half of the words, a seeded choice, projected on its own."""
    halves = np.array_split(generator.permutation(matrix.shape[1]), 2)
    parts = [_projected(matrix[:, np.sort(n)], fitted, half, generator) for n in halves]
    return np.concatenate(parts, axis=1)


def _projected(
    matrix: Matrix, fitted: npt.NDArray[np.int64], dimensions: int, generator: np.random.Generator
) -> Inputs:
    """Return every row on the leading principal axes of the fitted rows.

    The exact solver for sparse matrices: a randomised one mixes the axes at the far end.
    """
    most = max(min(len(fitted), matrix.shape[1]) - 1, 0)
    if most < dimensions:
        raise InputError(
            f"The reviews give at most {most} dimensions, and {dimensions} are wanted; "
            "lower `dimensions`, or check that the files are complete."
        )
    projection = PCA(dimensions, svd_solver="arpack", random_state=int(generator.integers(2**31)))
    return np.asarray(projection.fit(matrix[fitted]).transform(matrix), dtype=np.float32)


def read_domain(root: Path, domain: str) -> tuple[list[Review], Labels]:
    """Return a domain's labelled reviews as word counts, and their labels (1 is positive)."""
    reviews: list[Review] = []
    labels: list[int] = []
    for sentiment in CLASSES:
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


def word_counts(
    reviews: Sequence[Review], fitted: npt.NDArray[np.int64], vocabulary: int
) -> Matrix:
    """Return how often each word is in a review: of the words that occur most often in some rows.

    Ties are in alphabetical order, the one that scikit-learn gives its columns.
    """
    counts = DictVectorizer(dtype=np.float32).fit_transform(reviews).tocsc()
    total = np.asarray(counts.tocsr()[fitted].sum(axis=0)).ravel()
    most = np.argsort(-total, kind="stable")[: min(vocabulary, np.count_nonzero(total))]
    return counts[:, most].tocsr()


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
    if label not in CLASSES:
        raise InputError(
            f"{where}: the review needs a label, '#label#:positive' or negative, and has {label!r}."
        )
    return review, CLASSES.index(label)
