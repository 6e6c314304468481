"""The paper's networks: modules, divergences, losses and the one training loop."""
