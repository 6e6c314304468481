import numpy as np
import ot
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from halfseen import InputError
from halfseen.networks.divergences import squared_distances, transport_cost


def clouds(rows, columns, seed=0):
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(rows, 3, generator=generator, dtype=torch.float64)
    return first, torch.randn(columns, 3, generator=generator, dtype=torch.float64) + 1


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(1, 15), seed=st.integers(0, 1000))
def test_cost_agrees_with_pot(rows, seed):
    first, second = clouds(rows, rows, seed)
    matrix = ot.dist(first.numpy(), second.numpy())  # squared Euclidean
    assert np.allclose(squared_distances(first, second), matrix)
    expected = ot.emd2(ot.unif(rows), ot.unif(rows), matrix)
    assert transport_cost(first, second).item() == pytest.approx(expected, rel=1e-9)


def test_gradient_is_that_of_the_cost_with_the_plan_fixed():
    first, second = clouds(6, 6)
    first.requires_grad_(True)
    second.requires_grad_(True)
    transport_cost(first, second).backward()
    with torch.no_grad():
        cost = squared_distances(first, second).numpy()
        plan = torch.tensor(ot.emd(ot.unif(6), ot.unif(6), cost))
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


def test_batches_of_different_sizes_get_a_sentence():
    with pytest.raises(InputError, match="the batches have 3 and 4"):
        transport_cost(*clouds(3, 4))
