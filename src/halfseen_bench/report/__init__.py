"""Pages and figures of sweeps and of the demo."""
