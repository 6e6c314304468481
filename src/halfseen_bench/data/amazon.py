"""Amazon reviews (Blitzer and others, 2007): positive or negative, four kinds of product.

What the target lacks is decided by a named rule, because the paper's own rule ("the first half of
the PCA dimensions") leaves almost nothing to predict from; see :data:`Rule`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.decomposition import PCA

from halfseen.blocks import Blocks
from halfseen.errors import InputError, OptionError
from halfseen.splitting import held_out_share
from halfseen_bench.data.ceiling import ceiling as ceiling_of
from halfseen_bench.data.natural import evaluation_note, make_pair
from halfseen_bench.data.official import OfficialFile
from halfseen_bench.data.pairs import Card, DomainPair, Inputs, Labelled
from halfseen_bench.data.reviews import (
    Weighting,
    counts_matrix,
    most_frequent,
    mutual_information,
    read_domain,
    weighted,
)
from halfseen_bench.data.splitting import (
    Evaluation,
    check_choice,
    check_domains,
    target_rows,
)

__all__ = ["DOMAINS", "FILES", "FitRows", "Rule", "load_pair"]

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

Rule = Literal["words", "informative", "leading"]
"""What is missing on the target.

``words``: a seeded half of the vocabulary is never observed, and each half is projected on its
own: what a missing source of text looks like. ``informative``: the words of highest mutual
information with the source labels, a seeded half of them missing. ``leading``: the paper to the
letter, one projection of which the first half is missing.
"""
FitRows = Literal["both", "source"]
"""Rows that fix vocabulary, document frequencies and projection: of both domains' training parts
(no label is used), or of the source's alone."""


def load_pair(
    root: Path,
    source: str,
    target: str,
    *,
    rule: Rule = "words",
    weighting: Weighting = "binary",
    fit_rows: FitRows = "both",
    vocabulary: int = 5000,
    dimensions: int = 400,
    evaluation: Evaluation = "transductive",
    test_fraction: float = 0.2,
    seed: int = 0,
    ceiling: bool = False,
) -> DomainPair:
    """Read two kinds of product as one problem.

    Parameters
    ----------
    root
        The data folder; the files lie under it as :data:`FILES` names them.
    source, target
        Two of :data:`DOMAINS`.
    rule
        What the target lacks.
    weighting
        What stands for a word in a review.
    fit_rows
        Rows on which vocabulary and projection are fitted.
    vocabulary
        How many of the most frequent unigrams and bigrams are used.
    dimensions
        How many inputs result; half of them are missing on the target.
    evaluation
        ``transductive``, as the paper: all 2,000 target reviews are adapted on and predicted;
        ``split``: a seeded half each.
    test_fraction
        Share of the source held out as its test part, the same in each class.
    seed
        Fixes the splits and the words that are missing.
    ceiling
        Whether the card states the accuracy that the target's own labels give on x1.
    """
    check_domains(source, target, DOMAINS)
    check_choice("rule", rule, get_args(Rule))
    check_choice("weighting", weighting, get_args(Weighting))
    check_choice("fit_rows", fit_rows, get_args(FitRows))
    if dimensions < 2 or dimensions % 2:
        raise OptionError(f"dimensions={dimensions} must be even: half of them are missing.")
    source_reviews, source_labels = read_domain(root, source)
    target_reviews, target_labels = read_domain(root, target)
    reviews, start = source_reviews + target_reviews, len(source_reviews)
    train, test = held_out_share(source_labels, test_fraction, seed)
    adapted, predicted = target_rows(len(target_reviews), evaluation, seed)
    fitted = np.concatenate([train, start + adapted]) if fit_rows == "both" else train

    words = most_frequent([reviews[row] for row in fitted], vocabulary)
    matrix = weighted(counts_matrix(reviews, words), weighting, fitted)
    generator = np.random.default_rng(seed)
    if rule == "words":
        columns = _half_of_the_words(matrix, fitted, dimensions, generator)
    elif rule == "leading":
        columns = _leading(matrix, fitted, dimensions, generator)
    else:
        columns = _informative(matrix, words, train, source_labels[train], dimensions, generator)

    blocks = Blocks.columns(columns.names, columns.missing)
    counts = {
        f"{source} train": len(train),
        f"{source} test": len(test),
        f"{target} train": len(adapted),
        f"{target} test": len(predicted),
    }
    pair = make_pair(
        source,
        target,
        source_part=Labelled(columns.inputs[:start], source_labels),
        target_part=Labelled(columns.inputs[start:], target_labels),
        blocks=blocks,
        classes=("negative", "positive"),
        card=Card(
            what=f"Positive or negative review, learned on {source}, predicted on {target}.",
            origin="Multi-Domain Sentiment Dataset, Blitzer, Dredze and Pereira (2007), "
            "processed_acl, www.cs.jhu.edu/~mdredze/datasets/sentiment",
            licence="research use",
            counts=counts,
            missing=columns.description,
            notes=(
                f"{len(words)} most frequent unigrams and bigrams of the pair, weighting "
                f"{weighting}; vocabulary and projection fitted on the training rows of "
                f"{'both domains' if fit_rows == 'both' else 'the source alone'}.",
                evaluation_note(evaluation),
            ),
        ),
        evaluation=evaluation,
        test_fraction=test_fraction,
        seed=seed,
        is_complete=True,
    )
    return _with_ceiling(pair) if ceiling else pair


@dataclass(frozen=True)
class _Columns:
    """The inputs that a rule makes of the words, and which of them the target lacks."""

    inputs: Inputs
    names: list[str]
    missing: list[int]
    description: str


def _half_of_the_words(
    matrix: scipy.sparse.csr_matrix,
    fitted: npt.NDArray[np.int64],
    dimensions: int,
    generator: np.random.Generator,
) -> _Columns:
    shuffled = generator.permutation(matrix.shape[1])
    halves = np.array_split(shuffled, 2)
    half = dimensions // 2
    blocks = [_projected(matrix[:, np.sort(words)], fitted, half, generator) for words in halves]
    names = [f"{block}_{i + 1:03d}" for block in ("seen", "unseen") for i in range(half)]
    return _Columns(
        np.concatenate(blocks, axis=1),
        names,
        list(range(half, dimensions)),
        f"A seeded half of the vocabulary ({len(halves[1])} words) is never observed; PCA to "
        f"{half} dimensions inside each half (rule 'words').",
    )


def _leading(
    matrix: scipy.sparse.csr_matrix,
    fitted: npt.NDArray[np.int64],
    dimensions: int,
    generator: np.random.Generator,
) -> _Columns:
    return _Columns(
        _projected(matrix, fitted, dimensions, generator),
        [f"pc_{i + 1:03d}" for i in range(dimensions)],
        list(range(dimensions // 2)),
        f"The first {dimensions // 2} of {dimensions} PCA dimensions (rule 'leading'): what "
        "remains says little about the label.",
    )


def _informative(
    matrix: scipy.sparse.csr_matrix,
    words: list[str],
    train: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int64],
    dimensions: int,
    generator: np.random.Generator,
) -> _Columns:
    _check_width(matrix.shape[1], dimensions, "words")
    information = mutual_information((matrix[train] > 0).astype(np.float64), labels)
    best = np.argsort(-information, kind="stable")[:dimensions]
    missing = generator.choice(dimensions, dimensions // 2, replace=False)
    return _Columns(
        matrix[:, best].toarray(),
        [words[column] for column in best],
        missing.tolist(),
        f"A seeded {dimensions // 2} of the {dimensions} words of highest mutual information "
        "with the source labels (rule 'informative').",
    )


def _projected(
    matrix: scipy.sparse.csr_matrix,
    fitted: npt.NDArray[np.int64],
    dimensions: int,
    generator: np.random.Generator,
) -> Inputs:
    """Return every row on the leading principal axes of the fitted rows.

    The exact solver for sparse matrices: a randomised one mixes the axes at the far end.
    """
    _check_width(min(len(fitted), matrix.shape[1]) - 1, dimensions, "dimensions")
    projection = PCA(dimensions, svd_solver="arpack", random_state=int(generator.integers(2**31)))
    return np.asarray(projection.fit(matrix[fitted]).transform(matrix), dtype=np.float32)


def _check_width(available: int, wanted: int, what: str) -> None:
    if available < wanted:
        raise InputError(
            f"The reviews give at most {max(available, 0)} {what}, and {wanted} are wanted; "
            "lower `dimensions`, or check that the files are complete."
        )


def _with_ceiling(pair: DomainPair) -> DomainPair:
    note = (
        f"Ceiling: {ceiling_of(pair):.1%} accuracy for a logistic regression on x1 that is given "
        "the target's own labels (five-fold)."
    )
    return replace(pair, card=replace(pair.card, notes=(*pair.card.notes, note)))
