"""What a fit found, in sentences: the same on the screen, in `inspect` and in the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from halfseen.members import SIMPLE, words_of
from halfseen.targets import ClassTarget, TargetType, target_type_of

AS_WELL = 1.01
"""A single member whose loss is at most this many times the model's does as well."""


def held_out_rows(metrics: Mapping[str, Any]) -> list[tuple[str, float | None, dict[str, Any]]]:
    """Return who was measured on held-out source rows, with which weight: the answer, members."""
    held_out, weights = metrics.get("held_out_source", {}), metrics.get("weights", {})
    members, kind = metrics.get("members", {}), target_type_of(metrics)
    heaviest = sorted(members, key=lambda name: -float(weights.get(name, 0.0)))
    entries = [
        ("the answer, missing block hidden as on the target", None, "without_missing_block"),
        *[(member_words(n, kind), weights.get(n), n) for n in heaviest if len(members) > 1],
        ("with the missing block shown", None, "with_missing_block"),
    ]
    return [(w, s, m) for w, s, name in entries if (m := {**members, **held_out}.get(name))]


def time_sentence(metrics: Mapping[str, Any]) -> str:
    """Say what a time limit left out."""
    limit, kind = metrics["time_limit"], target_type_of(metrics)
    if not limit["left_out"]:
        return ""
    words = ", ".join(member_words(name, kind) for name in limit["left_out"])
    return f"Left out, to keep to {limit['seconds']:g} s: {words}."


def seeds_sentence(metrics: Mapping[str, Any]) -> str:
    """Say how many seeds answer together."""
    seeds = metrics["seeds"]
    return f"Members that depend on a seed were trained with {seeds}, which answer together."


def weights_sentence(metrics: Mapping[str, Any]) -> str:
    """Say which members carried the answer, the heaviest first."""
    heaviest = sorted(metrics["weights"].items(), key=lambda entry: -entry[1])
    kind = target_type_of(metrics)
    shown = ", ".join(f"{member_words(name, kind)} {weight:.2f}" for name, weight in heaviest)
    why = "as held-out rows advise"
    if metrics.get("target_labels", {}).get("used_for", "nothing") != "nothing":
        why = "as labelled target rows advise"
    elif "alignment" in metrics:
        why = "fixed where columns have drifted"
    return f"Weights of the members, {why}: {shown}."


def member_words(name: str, target_type: type[TargetType] = ClassTarget) -> str:
    """Return how a member is called in a sentence; behind maps, with what it learned from."""
    kind, _, values = name.partition(", ")
    words = words_of(kind, target_type)
    if values == "target labels":
        return f"{words} with target labels"
    if values == "distilled":
        return f"{words} with soft labels"
    return f"{words} of {values}" if values else words


def alignment_sentence(metrics: Mapping[str, Any]) -> str:
    """Say which maps of drifted columns were chosen, and why."""
    drift = metrics["alignment"]
    maps = sorted(drift["maps"], key=lambda entry: -entry["weight"])
    counted = "; ".join(f"{m['values']} on {m['scale']} {m['weight']:.0%}" for m in maps)
    return (
        f"Drift: target rows are {drift['drift']:.1f} times as far from source rows as those are "
        f"from each other, so {drift['columns']} columns are mapped, each way counting by how "
        f"plausible its answer is: {counted}."
    )


def teaching_sentence(metrics: Mapping[str, Any]) -> str:
    """Say what the columns that only the source has brought; of few labels there is more to say."""
    if "labels_alone" in metrics.get("few_labels", {}):
        return ""
    kind, teaching = target_type_of(metrics), metrics["teaching"]
    gain, error = teaching["gain"], 2 * teaching["standard_error"]
    verdict = (
        "the missing columns taught the trees something"
        if gain > error
        else "nothing that can be told from chance"
    )
    return (
        f"What the missing columns brought: {verdict} ({kind.row_loss_words} {gain:+.4f}"
        f"{kind.unit} lower, ± {error:.4f}, than with teachers that saw the observed columns "
        "alone)."
    )


def few_labels_sentence(metrics: Mapping[str, Any]) -> str:
    """Say what complete rows without a label brought, and what more labels would bring.

    Examples
    --------
    >>> few = {"labelled": 100, "unlabelled": 1_628, "lead": 4.3, "believed": 0.96}
    >>> print(few_labels_sentence({"few_labels": few}))
    100 rows have a label and teachers label 1,628 more; students of these have 96% of the answer. \
Teachers that see the missing columns are 4.3 standard errors ahead of teachers that do not.
    """
    few, kind = metrics["few_labels"], target_type_of(metrics)
    if "believed" not in few:
        return f"{few['unlabelled']:,} complete rows without a label teach nothing here."
    lead = few["lead"]
    sentence = (
        f"{few['labelled']:,} rows have a label and teachers label {few['unlabelled']:,} more; "
        f"students of these have {few['believed']:.0%} of the answer. Teachers that see the "
        f"missing columns are {abs(lead):.1f} standard errors "
        f"{'ahead of' if lead > 0 else 'behind'} teachers that do not."
    )
    if "labels_alone" not in few:
        return sentence

    def gain(of: Mapping[str, float]) -> str:
        return f"{of['gain']:+.3f} ± {2 * of['standard_error']:.3f}"

    sentence += (
        f" What taught a student, in {kind.row_loss_words} of held-out rows{kind.unit and ','}"
        f"{kind.unit}: rows without a label {gain(few['labels_alone'])} (against labels alone), of "
        f"it the missing columns {gain(metrics['teaching'])} (against teachers that see the "
        "observed columns alone)"
    )
    if "half_the_labels" in few:
        sentence += (
            f"; the second half of the labels {gain(few['half_the_labels'])}, and as many again "
            "would hardly bring as much"
        )
    return f"{sentence}."


def few_images_sentence(metrics: Mapping[str, Any]) -> str:
    """Say what images without a label brought, and how sure that is.

    Examples
    --------
    >>> few = {"labelled": 100, "unlabelled": 900, "held_out": 20, "lead": 2.5}
    >>> print(few_images_sentence({"few_images": few | {"right": 0.95, "right_alone": 0.8}}))
    100 images have a label, and a teacher that sees whole images labels 900 more. On 20 labelled \
images held out it is right about 95%, and one that sees what the target shows about 80%: it is \
2.5 standard errors ahead.
    """
    few = metrics["few_images"]
    found = (
        f"{few['labelled']:,} images have a label, and a teacher that sees whole images labels "
        f"{few['unlabelled']:,} more."
    )
    if "lead" not in few:
        return found
    lead = few["lead"]
    return (
        f"{found} On {few['held_out']} labelled images held out it is right about "
        f"{few['right']:.0%}, and one that sees what the target shows about "
        f"{few['right_alone']:.0%}: it is {abs(lead):.1f} standard errors "
        f"{'ahead' if lead > 0 else 'behind'}."
    )


TOLD = ("accuracy", "auc", "rmse", "r2", "coverage")
"""What is told of labelled target rows."""
USES = {
    "nothing": "nothing, because neither lowered the loss of rows that had no part in it",
    "weights": "weighing and calibrating the members",
    "training": "training, weighing and calibrating the members",
}
"""What labelled target rows are used for, in a sentence."""


def labels_sentence(metrics: Mapping[str, Any]) -> str:
    """Say what labelled target rows were used for, and what was measured on them."""
    labelled, kind = metrics["target_labels"], target_type_of(metrics)
    losses = labelled["losses"]
    tried = [f"{losses['nothing']:.3f} without them", f"{losses['weights']:.3f} weighed by them"]
    tried += [f"{losses['training']:.3f} trained on them too"] if "training" in losses else []
    shown = "; ".join(
        f"{words} {measured['value']:.3f} ({measured['interval'][0]:.3f} to "
        f"{measured['interval'][1]:.3f})"
        for name, (words, _) in kind.measures.items()
        if name in TOLD
        and (measured := labelled["measured"]["metrics"].get(name, {})).get("interval") is not None
    )
    return (
        f"{labelled['rows']:,} labelled target rows were used for {USES[labelled['used_for']]}. "
        f"{_interval_words(metrics)}Measured on them by cross-validation, {kind.row_loss_words} "
        f"{', '.join(tried)}; {shown}."
    )


def _interval_words(metrics: Mapping[str, Any]) -> str:
    scale = metrics.get("interval_scale")
    if scale is None:
        return ""
    return f"They make intervals {scale:.2f} times as wide as held-out source rows did. "


def advice(metrics: Mapping[str, Any]) -> str:
    """Say so where a simple tool would do as well.

    Source rows tell that where no column has drifted beyond them.
    """
    measured = metrics.get("held_out_source", {}).get("without_missing_block")
    members = metrics["members"]
    if not measured or len(members) < 2 or {"alignment", "target_labels"} & set(metrics):
        return ""
    kind = target_type_of(metrics)
    loss, ours = kind.measures[kind.loss].words, measured[kind.loss]
    for name in SIMPLE:
        alone = members.get(name, {}).get(kind.loss)
        if alone is not None and alone <= AS_WELL * ours:
            return (
                f"On held-out source rows {member_words(name, kind)} alone does as well ({loss} "
                f"{alone:.5g}, the model {ours:.5g}): the simpler one may be the better choice."
            )
    return ""


def unmeasured_sentence(metrics: Mapping[str, Any]) -> str:
    """Say why nothing was measured."""
    return f"{metrics['unmeasured']} has too few labelled rows to measure on: label more of it."


TOLD_OF: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "time_limit": time_sentence,
    "seeds": seeds_sentence,
    "weights": weights_sentence,
    "alignment": alignment_sentence,
    "few_labels": few_labels_sentence,
    "few_images": few_images_sentence,
    "teaching": teaching_sentence,
    "target_labels": labels_sentence,
    "members": advice,
    "unmeasured": unmeasured_sentence,
}


def told(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Give every sentence that there are metrics for."""
    yield from filter(None, (tell(metrics) for name, tell in TOLD_OF.items() if metrics.get(name)))
