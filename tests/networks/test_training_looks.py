"""How often training is interrupted to look at an epoch."""

from __future__ import annotations

import pytest

from halfseen.networks.loop import is_looked_at


@pytest.mark.parametrize("epochs", [1, 2, 7, 20, 333])
@pytest.mark.parametrize("looks", [1, 3, 8])
def test_never_more_looks_than_asked_and_always_the_last(epochs: int, looks: int) -> None:
    seen = [epoch for epoch in range(epochs) if is_looked_at(epoch, epochs, looks)]
    assert 1 <= len(seen) <= looks
    assert seen[-1] == epochs - 1


def test_every_epoch_unless_asked() -> None:
    assert all(is_looked_at(epoch, 5, None) for epoch in range(5))
