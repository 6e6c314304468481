import numpy as np
import ot
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from halfseen import InputError
from halfseen.networks.divergences import squared_distances, transport_cost, transport_plan


def clouds(rows, columns, seed=0):
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(rows, 3, generator=generator, dtype=torch.float64)
    return first, torch.randn(columns, 3, generator=generator, dtype=torch.float64) + 1


def masses(size, seed):
    weight = np.random.default_rng(seed).uniform(0.1, 1.0, size)
    return torch.tensor(weight / weight.sum())


@pytest.mark.parametrize(("rows", "columns"), [(12, 12), (12, 7), (1, 5), (9, 1)])
@pytest.mark.parametrize("weighted", [False, True])
def test_cost_and_plan_agree_with_pot(rows, columns, weighted):
    first, second = clouds(rows, columns)
    weights = (masses(rows, 1), masses(columns, 2)) if weighted else (None, None)
    matrix = ot.dist(first.numpy(), second.numpy())  # squared Euclidean
    a = ot.unif(rows) if not weighted else weights[0].numpy()
    b = ot.unif(columns) if not weighted else weights[1].numpy()
    cost = squared_distances(first, second)
    assert np.allclose(cost, matrix)
    plan = transport_plan(cost, *weights).numpy()
    assert np.allclose(plan.sum(1), a)
    assert np.allclose(plan.sum(0), b)
    assert (plan * matrix).sum() == pytest.approx(ot.emd2(a, b, matrix), rel=1e-9)
    assert transport_cost(first, second, *weights).item() == pytest.approx(
        ot.emd2(a, b, matrix), rel=1e-9
    )


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(2, 15), seed=st.integers(0, 1000))
def test_assignment_is_the_general_solution(rows, seed):
    first, second = clouds(rows, rows, seed)
    uniform = torch.full((rows,), 1.0 / rows, dtype=torch.float64)
    by_assignment = transport_cost(first, second)
    by_simplex = transport_cost(first, second, uniform, uniform)
    assert by_assignment.item() == pytest.approx(by_simplex.item(), rel=1e-9)


@pytest.mark.parametrize("columns", [6, 4])
def test_gradient_is_that_of_the_cost_with_the_plan_fixed(columns):
    first, second = clouds(6, columns)
    first.requires_grad_(True)
    second.requires_grad_(True)
    transport_cost(first, second).backward()
    with torch.no_grad():
        plan = transport_plan(squared_distances(first, second))
        expected = 2 * (plan.sum(1, keepdim=True) * first - plan @ second)
    assert torch.allclose(first.grad, expected, atol=1e-12)
    assert torch.allclose(second.grad.sum(0), -first.grad.sum(0), atol=1e-12)


def test_transport_moves_one_cloud_onto_the_other():
    first, second = clouds(32, 32)
    moved = first.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([moved], lr=0.1)
    for _ in range(200):
        loss = transport_cost(moved, second)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3 * transport_cost(first, second).item()


def test_wrong_weights_get_a_sentence():
    cost = torch.ones(3, 4)
    with pytest.raises(InputError, match=r"weight vector of shape \(4,\) came with 3 rows"):
        transport_plan(cost, torch.ones(4) / 4, None)
    with pytest.raises(InputError, match="hold masses 1 and 2; they must be equal"):
        transport_plan(cost, torch.ones(3) / 3, torch.ones(4) / 2)
