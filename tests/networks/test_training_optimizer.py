"""The one optimiser."""

import torch

from halfseen.networks.loop import Adam, ParameterGroup
from halfseen.networks.terms import Part


def test_adam_is_torchs():
    torch.manual_seed(0)
    ours, theirs = (torch.nn.Linear(3, 2) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    adam = Adam([ParameterGroup(Part("", ours), 0.1, list(ours.parameters()))], (0.8, 0.9), 0.1)
    other = torch.optim.AdamW(theirs.parameters(), 0.1, (0.8, 0.9), weight_decay=0.1)
    for _ in range(3):
        rows = torch.randn(4, 3)
        for module, optimizer in ((ours, adam), (theirs, other)):
            module.zero_grad()
            module(rows).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(ours.weight, theirs.weight)
