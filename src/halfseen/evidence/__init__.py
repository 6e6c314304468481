"""What differs between the domains, and what that allows: plain functions on arrays."""

from __future__ import annotations

from halfseen.evidence.density_ratio import (
    DensityRatio,
    clip_weights,
    correct_probabilities,
    default_domain_classifier,
    effective_sample_size,
    fit_density_ratio,
    overlap,
)
from halfseen.evidence.features import (
    DomainSeparation,
    FeatureShift,
    category_shift,
    domain_separation,
    feature_shift,
    population_stability,
)

__all__ = [
    "DensityRatio",
    "DomainSeparation",
    "FeatureShift",
    "category_shift",
    "clip_weights",
    "correct_probabilities",
    "default_domain_classifier",
    "domain_separation",
    "effective_sample_size",
    "feature_shift",
    "fit_density_ratio",
    "overlap",
    "population_stability",
]
