from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from halfseen.errors import InputError, OptionError
from halfseen_bench.reverse import reverse_validation


def two_clusters(rows: int, moved: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % 2
    return rng.normal(size=(rows, 2)) + 3.0 * y[:, None] + moved, y


def plain(labelled, labels, unlabelled):
    """No adaptation."""
    return LogisticRegression().fit(labelled, labels).predict


def centred(labelled, labels, unlabelled):
    """Adapts by centring each domain."""
    model = LogisticRegression().fit(labelled - labelled.mean(axis=0), labels)
    places = [(labelled, labelled.mean(axis=0)), (unlabelled, unlabelled.mean(axis=0))]

    def predict(x):
        nearest = min(places, key=lambda place: np.square(x.mean(axis=0) - place[1]).sum())
        return model.predict(x - nearest[1])

    return predict


def test_the_method_that_adapts_wins_under_shift() -> None:
    source, y = two_clusters(400, 0.0, 0)
    target, _ = two_clusters(400, 4.0, 1)
    assert reverse_validation(centred, source, y, target) < 0.1
    assert reverse_validation(plain, source, y, target) > 0.3


def test_a_target_in_one_class_costs_that_constants_error_and_one_fit() -> None:
    source, y = two_clusters(200, 0.0, 2)
    calls = []

    def constant(labelled, labels, unlabelled):
        calls.append(len(labelled))
        return lambda x: np.zeros(len(x), dtype=int)

    assert reverse_validation(constant, source, y, source) == pytest.approx(0.5)
    assert calls == [180]


def test_the_way_back_can_have_its_own_fit_and_sees_no_validation_row() -> None:
    source, y = two_clusters(200, 0.0, 3)
    target = source[:, :1]  # the target lacks a column
    seen = []

    def out(labelled, labels, unlabelled):
        return LogisticRegression().fit(labelled[:, :1], labels).predict

    def back(labelled, labels, unlabelled):
        seen.append((labelled.shape, unlabelled.shape))
        model = LogisticRegression().fit(labelled, labels)
        return lambda x: model.predict(x[:, :1])

    error = reverse_validation(out, source, y, target, fit_back=back, validation_fraction=0.2)
    assert seen == [((200, 1), (160, 2))]
    assert error < 0.2


def test_labels_may_be_words() -> None:
    source, y = two_clusters(200, 0.0, 4)
    words = np.array(["healthy", "ill"])[y]
    assert reverse_validation(plain, source, words, source) < 0.1


def test_what_cannot_be_validated_is_refused() -> None:
    source, y = two_clusters(40, 0.0, 5)
    with pytest.raises(OptionError, match="validation_fraction=0"):
        reverse_validation(plain, source, y, source, validation_fraction=0)
    with pytest.raises(InputError, match="source has 40 rows and y_source has 39"):
        reverse_validation(plain, source, y[1:], source)
    with pytest.raises(InputError, match="vector of labels"):
        reverse_validation(plain, source, y[:, None], source)
    with pytest.raises(InputError, match="cannot be split class by class"):
        reverse_validation(plain, source, np.arange(40), source)
    with pytest.raises(InputError, match="labels, not probabilities"):
        reverse_validation(lambda a, b, c: lambda x: np.ones((len(x), 2)), source, y, source)
