from __future__ import annotations

import numpy as np
import pytest
import torch

from halfseen.arrays import labels, matrix, normalized, probabilities, same_length, vector
from halfseen.errors import InputError


@pytest.mark.parametrize("shape", [(5, 1), (1, 5), (5, 2), ()])
def test_only_a_vector_is_a_vector(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="loss must be a vector"):
        vector("loss", np.ones(shape))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_names_its_first_number_that_is_not_finite(value: float) -> None:
    with pytest.raises(InputError, match=r"at position \(2\)"):
        vector("loss", [0.0, 1.0, value])


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: vector("loss", []), "loss is empty"),
        (lambda: vector("loss", ["a"]), "loss does not hold numbers"),
        (lambda: matrix("inputs", [1.0]), "must be a matrix"),
        (lambda: matrix("inputs", [[np.nan]]), r"holds nan at position \(0, 0\)"),
        (lambda: probabilities("p", [[1.0], [1.0]]), "one column per class"),
        (lambda: probabilities("p", [[1.2, -0.2]]), "Row 0 of p holds -0.2"),
        (lambda: probabilities("p", [[0.9, 0.3]]), r"sums to 1.2 where .* softmax, not logits"),
        (lambda: vector("loss", [[1.0]]), "a column times a vector would be an outer product"),
        (lambda: matrix("inputs", np.empty((0, 3))), "inputs is empty"),
        (lambda: labels("y", [[0]], 2), "vector of labels"),
        (lambda: labels("y", [0, 1, 2], 2), "Row 2 of y holds 2, .* a position from 0 to 1"),
        (lambda: labels("y", [0.5], 2), "Row 0 of y holds 0.5"),
        (lambda: labels("y", [0, -1], 2), "Row 1 of y holds -1"),
        (lambda: same_length(x=[1, 2, 3], y=[1]), "x has 3 rows and y has 1"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(check, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check()


def test_images_are_flattened_and_rows_sum_to_one() -> None:
    assert matrix("inputs", np.zeros((5, 1, 2, 2))).shape == (5, 4)
    assert normalized([[1.0, 3.0], [2.0, 2.0]]).tolist() == [[0.25, 0.75], [0.5, 0.5]]


def test_single_precision_probabilities_are_taken_and_made_exact() -> None:
    given = np.array([[1 / 3, 1 / 3, 1 / 3]], dtype=np.float32)
    assert probabilities("p", given).sum() == pytest.approx(1.0, abs=1e-15)


def test_the_given_array_is_left_as_it_was() -> None:
    given = np.array([[0.5, 0.5004]])
    probabilities("p", given)
    assert given.tolist() == [[0.5, 0.5004]]


def test_a_tensor_that_still_has_a_gradient_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="loss does not hold numbers"):
        vector("loss", torch.ones(3, requires_grad=True))
