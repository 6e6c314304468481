"""What differs between the domains, and what that allows: plain functions on arrays."""

from __future__ import annotations

from halfseen.evidence.calibration import Calibration, fit_bias_corrected_temperature
from halfseen.evidence.density_ratio import (
    DensityRatio,
    clip_weights,
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
from halfseen.evidence.labels import PriorEstimate, correct_probabilities, estimate_target_prior
from halfseen.metrics import expected_calibration_error

__all__ = [
    "Calibration",
    "DensityRatio",
    "DomainSeparation",
    "FeatureShift",
    "PriorEstimate",
    "category_shift",
    "clip_weights",
    "correct_probabilities",
    "default_domain_classifier",
    "domain_separation",
    "effective_sample_size",
    "estimate_target_prior",
    "expected_calibration_error",
    "feature_shift",
    "fit_bias_corrected_temperature",
    "fit_density_ratio",
    "overlap",
    "population_stability",
]
