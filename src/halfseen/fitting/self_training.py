"""Self-training where columns have drifted: classes as the target's own rows have them."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from halfseen.arrays import Floats, Matrix
from halfseen.blocks import Blocks
from halfseen.column_maps import ColumnMap
from halfseen.members import Aligned, Mapped
from halfseen.members.linear import Regression
from halfseen.targets import ClassTarget

SELF_TRAINED = "self-trained discriminant"
"""What the member is called beside the others."""
SHARE = 0.5
"""How much the discriminant counts in the answer; the rest stays with those that taught it."""
TURNS = 2
"""More turns follow the target's clusters farther from what the source says of them."""
COMPONENTS = 8
ROWS_PER_COMPONENT = 5
SURE = 0.5
"""Share of the largest entropy that answers may have: unsure ones have no clusters to follow."""
SHRINKAGE, SMALLEST = 0.1, 1e-6
FEWEST_SHARE = 1e-4


def self_trained(
    answer: Floats, rows: Matrix, home: ColumnMap, own: ColumnMap, blocks: Blocks
) -> Aligned | None:
    """Return a linear discriminant of prepared target rows, taught by the answer about them.

    None where the answer, their log-probabilities, is too unsure to teach, or rows are too few.
    `home` and `own` map source rows and target rows, each on its own scale.
    """
    classes = answer.shape[1]
    entropy = -(np.exp(answer) * answer).sum(axis=1).mean()
    kept = min(COMPONENTS, len(own.positions), len(rows) // (ROWS_PER_COMPONENT * classes))
    if entropy > SURE * np.log(classes) or kept < 1:
        return None
    values = own(rows)[:, own.positions].astype(np.float64)
    axes = np.linalg.svd(values, full_matrices=False)[2][:kept].T
    taught = answer
    for _ in range(TURNS):
        slopes, bias = discriminant(values @ axes, np.exp(taught))
        said = log_softmax(values @ axes @ slopes.T + bias, axis=1)
        taught = log_softmax((1.0 - SHARE) * answer + SHARE * said, axis=1)
    weight = np.zeros((classes, len(blocks.observed)))
    place = {position: k for k, position in enumerate(blocks.observed)}
    weight[:, [place[position] for position in own.positions.tolist()]] = slopes @ axes.T
    learned = Regression(weight, bias, blocks, ClassTarget.of(classes))
    return Aligned((Mapped(learned, home, (own,), (1.0,)),))


def discriminant(points: Floats, shares: Floats) -> tuple[Floats, Floats]:
    r"""Return slopes and intercepts of linear discriminant analysis with soft labels.

    .. math:: \log p(c | z) = \mu_c^T \Sigma^{-1} z - \tfrac12 \mu_c^T \Sigma^{-1} \mu_c
        + \log \pi_c + const

    with means, proportions and one covariance, a tenth of it its diagonal, of rows that count for
    each class by their share of it.

    Examples
    --------
    >>> points = np.array([[-1.0], [-0.8], [0.9], [1.1]])
    >>> slopes, bias = discriminant(points, np.eye(2)[[0, 0, 1, 1]])
    >>> (points @ slopes.T + bias).argmax(axis=1)
    array([0, 0, 1, 1])
    """
    counts = np.maximum(shares.sum(axis=0), SMALLEST)
    means = shares.T @ points / counts[:, None]
    within = (points.T * shares.sum(axis=1)) @ points - (means.T * counts) @ means
    within /= counts.sum()
    within = (1.0 - SHRINKAGE) * within + SHRINKAGE * np.diag(np.diag(within))
    within += SMALLEST * np.eye(len(within))
    slopes: Floats = np.linalg.solve(within, means.T).T
    proportions = np.maximum(counts / counts.sum(), FEWEST_SHARE)
    bias: Floats = np.log(proportions) - 0.5 * (slopes * means).sum(axis=1)
    return slopes, bias
