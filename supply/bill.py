"""The bill of materials of this environment, as CycloneDX JSON: what is installed, and its hashes.

Hashes are those of requirements.lock: of the files that the registry has for a version.

    python supply/bill.py > bill.json
"""

from __future__ import annotations

import json
import re
import uuid
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
OURS = ("halfseen", "halfseen-bench", "halfseen-serve")


def plain(name: str) -> str:
    """Return the name of a distribution in its normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked_hashes() -> dict[tuple[str, str], list[str]]:
    """Return the hashes of each name and version in the lock."""
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition("==")
        if rest:
            version = re.split(r"[ ;]", rest, maxsplit=1)[0]
            found[plain(name), version] = re.findall(r"sha256:([0-9a-f]{64})", rest)
    return found


def bill_of_materials() -> dict[str, Any]:
    """Return the bill; the same environment has the same bill."""
    found = {plain(d.metadata["Name"]): d for d in distributions()}
    hashes = locked_hashes()
    components = [component(name, d, hashes) for name, d in sorted(found.items())]
    content = json.dumps(components)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "halfseen", "bom-ref": "halfseen"}},
        "components": components,
        "dependencies": [
            {"ref": name, "dependsOn": sorted(needed(d) & set(found) - {name})}
            for name, d in sorted(found.items())
        ],
    }


def component(
    name: str, distribution: Distribution, hashes: dict[tuple[str, str], list[str]]
) -> dict[str, Any]:
    """Return one entry."""
    version = distribution.version
    entry: dict[str, Any] = {"type": "library", "bom-ref": name, "name": name, "version": version}
    if name not in OURS:
        entry["purl"] = f"pkg:pypi/{name}@{version}"
    if licence := distribution.metadata.get("License-Expression"):
        entry["licenses"] = [{"expression": licence}]
    files = hashes.get((name, version.partition("+")[0]), [])
    if files:
        # Many files of one version: a component has the hashes of one, so each is a reference.
        entry["externalReferences"] = [
            {
                "type": "distribution",
                "url": f"pkg:pypi/{name}@{version}",
                "hashes": [{"alg": "SHA-256", "content": content} for content in files],
            }
        ]
    return entry


def needed(distribution: Distribution) -> set[str]:
    """Return what a distribution needs here, extras of its own left out."""
    requirements = map(Requirement, distribution.requires or [])
    return {
        plain(r.name) for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})
    }


if __name__ == "__main__":
    print(json.dumps(bill_of_materials(), indent=1))
