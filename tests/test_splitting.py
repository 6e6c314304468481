"""Rows held out class by class: shares, counts and folds."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from halfseen import OptionError
from halfseen.splitting import folds, held_out_count, held_out_share

LABELS = np.array([0] * 30 + [1] * 10 + [2])


def test_a_share_of_every_class_is_held_out_and_one_row_stays():
    train, held_out = held_out_share(LABELS, 0.9, seed=4)
    assert np.array_equal(np.sort(np.concatenate([train, held_out])), np.arange(len(LABELS)))
    assert np.bincount(LABELS[held_out], minlength=3).tolist() == [27, 9, 0]
    assert not np.array_equal(held_out, held_out_share(LABELS, 0.9, seed=5)[1])


@pytest.mark.parametrize("share", [0.0, 1.0, -0.2, float("nan")])
def test_a_share_that_leaves_one_side_empty_is_refused(share):
    with pytest.raises(OptionError, match="strictly between 0 and 1"):
        held_out_share(LABELS, share)


def test_a_count_is_exact_and_in_proportion():
    train, held_out = held_out_count(LABELS[:40], 8, seed=1)
    assert len(held_out) == 8
    assert np.bincount(LABELS[held_out]).tolist() == [6, 2]
    assert not set(train) & set(held_out)


def test_folds_are_no_more_than_the_rarest_class_has_rows():
    labels = LABELS[:33]  # three rows of the second class
    expected = StratifiedKFold(3, shuffle=True, random_state=7).split(labels, labels)
    for ours, theirs in zip(folds(labels, 5, 7).split(labels, labels), expected, strict=True):
        assert np.array_equal(ours[1], theirs[1])
