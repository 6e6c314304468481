"""Small table models with random weights, for tests of what is made from a model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from halfseen.data import CategoryColumn, NumberColumn, TableSchema
from halfseen.data.preprocessors import TablePreprocessor
from halfseen.members import NetworksMember
from halfseen.model.model import Model
from halfseen.networks.modules import build_networks
from halfseen.networks.variants import variant_named
from halfseen.options import make_options
from halfseen.presets import preset
from halfseen.weights import Weights
from tiny import NETWORKS

LEARNS_FAST = {
    "tables.latent_size": 128,
    "networks.classifier_widths": (128,),
    "networks.classifier_dropout": 0.5,
    "tables.dropout": 0.3,
    "training.augmentation": "none",
    "training.balanced": True,
}
"""Options of networks that a handful of epochs change; the defaults learn slowly and surely."""


def number(name, *, kind="numeric", role="observed", indicator=False, log=False, mean=0.0):
    return NumberColumn(
        kind=kind,
        name=name,
        role=role,
        fill=1.5 if kind != "boolean" else 1.0,
        indicator=indicator,
        log=log,
        mean=mean,
        scale=2.0,
    )


def category(name, *, role="observed", values="text", categories=("a", "b", "ç 😀"), **given):
    settings = {"indicator": False, "other": True, "fill": categories[0]} | given
    return CategoryColumn(
        kind="categorical",
        name=name,
        role=role,
        categories=categories,
        values=values,
        **settings,
    )


NUMERIC = (
    number("age", mean=50.0),
    number("hidden", role="missing"),
    number("visits", kind="count", log=True, indicator=True),
    number("time", mean=1.7e9, indicator=True),
    number("smoker", kind="boolean"),
)
CATEGORICAL = (
    category("shop", indicator=True),
    category("secret", role="missing"),
    category("grade", values="number", categories=("1", "2", "0.5"), other=False),
    category("member", values="boolean", categories=("false", "true"), fill="rare one"),
)
MIXED = (*NUMERIC[:2], *CATEGORICAL[:2], *NUMERIC[2:], *CATEGORICAL[2:])
COLUMNS = {"numeric": NUMERIC, "categorical": CATEGORICAL, "mixed": MIXED}


def table_model(
    columns=MIXED, classes=("no", "yes"), method="Adaptation-Imputation", seed=0, options=()
) -> Model:
    """Return a model with random weights; so are batch statistics."""
    schema = TableSchema(columns=columns, label="sick", classes=classes)
    settings = make_options(NETWORKS | dict(options), preset("default", inputs="table"))
    torch.manual_seed(seed)
    networks = build_networks(schema.blocks, variant_named(method), len(classes), settings).eval()
    with torch.no_grad():
        for name, tensor in networks.state_dict().items():
            if name.endswith(("running_var", "scale")):
                tensor.uniform_(0.5, 2.0)
            elif name.endswith(("running_mean", "mean")):
                tensor.normal_()
            elif tensor.ndim == 2:  # as initialised, rows hardly differ and some paths are 0
                tensor.normal_(0.0, 2.0 / tensor.shape[1] ** 0.5)
    shares = {"class_prior": [1 / len(classes)] * len(classes)}
    member = NetworksMember(networks, settings)
    return Model(TablePreprocessor(schema), (member,), Weights((1.0,)), seed, shares)


def rows_of(model: Model, rows: int = 200, seed: int = 0) -> pd.DataFrame:
    """Return rows as a user would have them: gaps, outliers, unseen categories."""
    random = np.random.default_rng(seed)
    frame = {}
    for column in model.schema.observed:
        if isinstance(column, NumberColumn):
            values = column.mean + 3 * random.standard_cauchy(rows)
            if column.kind == "boolean":
                values = random.integers(0, 2, rows).astype(float)
            if column.kind == "count":
                values = np.floor(np.abs(values))
            frame[column.name] = np.where(random.random(rows) < 0.1, np.nan, values)
        elif column.values == "text":
            choices = np.array([*column.categories, "unseen", None], dtype=object)
            frame[column.name] = random.choice(choices, rows)
        elif column.values == "number":
            frame[column.name] = random.choice([1.0, 2.0, 0.5, 77.0, np.nan], rows)
        else:
            frame[column.name] = random.choice(np.array([True, False, None], dtype=object), rows)
    return pd.DataFrame(frame)
