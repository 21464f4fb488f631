"""Add up the margins of California's rating areas from Census tables, and print the module that holds them.

    python tools/make_california.py FOLDER > src/shoal/datasets/_california.py

The folder has acs5_2010_B01001_age_sex_county.csv, acs5_2017_B15002_edu_sex_25plus_county.csv,
county_poverty_income.csv and covered_california_region_profile.csv. Los Angeles County holds areas 15 and 16, so that
these are one area here, as in the paper.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

AGES = {
    "under 18": ["under_5", "5_to_9", "10_to_14", "15_to_17"],
    "18-24": ["18_to_19", "20", "21", "22_to_24"],
    "25-34": ["25_to_29", "30_to_34"],
    "35-44": ["35_to_39", "40_to_44"],
    "45-54": ["45_to_49", "50_to_54"],
    "55-64": ["55_to_59", "60_to_61", "62_to_64"],
    "65-74": ["65_to_66", "67_to_69", "70_to_74"],
    "75-84": ["75_to_79", "80_to_84"],
    "85+": ["85_and_over"],
}
EDUCATION = {
    "below grade 9": ["no_schooling", "nursery_to_4th_grade", "5th_and_6th_grade", "7th_and_8th_grade"],
    "no diploma": ["9th_grade", "10th_grade", "11th_grade", "12th_grade_no_diploma"],
    "high school": ["high_school_graduate"],
    "some college": ["less_than_1_year_college", "1_or_more_years_college", "associates_degree"],
    "college": ["bachelors_degree"],
    "graduate": ["masters_degree", "professional_school_degree", "doctorate_degree"],
}
HEAD = """Figures of California's rating areas: written by tools/make_california.py, not by hand.

Age by sex: American Community Survey 2006-2010, table B01001. Education by sex of people of 25 and over: ACS
2013-2017, table B15002. Per cent of people below the poverty line: ACS 2017; below 125 % of it: a five-year table of
the ACS; below 200 %: ACS 2015-2019, from CalEnviroScreen 4.0. Counties are added up to the areas of Covered
California; Los Angeles County is both areas 15 and 16. Enrollees by age: Covered California, all regions,
December 2014, the end of its first year.
"""
BELOW = {"100": "poverty_2017", "125": "PERCENT_BELOW_FPL_125", "200": "pct_below_200fpl"}


def main(folder: str) -> None:
    """Add up the counties of every area and print everything."""
    where = Path(folder)
    ages = pl.read_csv(where / "acs5_2010_B01001_age_sex_county.csv").with_columns(pl.col("geoid").cast(pl.Int64))
    schools = pl.read_csv(where / "acs5_2017_B15002_edu_sex_25plus_county.csv")
    schools = schools.with_columns(pl.col("geoid").cast(pl.Int64))
    county = pl.read_csv(where / "county_poverty_income.csv").with_columns(pl.col("GEOID").cast(pl.Int64))
    county = county.select("GEOID", "rating_area", "pop2017", *BELOW.values())
    county = county.join(ages, left_on="GEOID", right_on="geoid").join(
        schools, left_on="GEOID", right_on="geoid", suffix="_25"
    )
    found = {}
    for (area,), rows in county.group_by("rating_area", maintain_order=True):
        name = str(area).strip()
        name = name if name.isdigit() else "15-16"
        people = rows["pop2017"]
        below = [float((rows[column] * people).sum() / people.sum()) for column in BELOW.values()]
        if below != sorted(below):
            raise SystemExit(f"Area {name}: the shares below 100, 125 and 200 % of the poverty line do not rise.")
        found[name] = (
            [[_sum(rows, sex, parts) for parts in AGES.values()] for sex in ("male", "female")],
            [[_sum(rows, sex, parts) for parts in EDUCATION.values()] for sex in ("male", "female")],
            [round(value, 2) for value in below],
        )
    profile = pl.read_csv(where / "covered_california_region_profile.csv")
    enrolled = profile.filter((pl.col("month") == "2014-12") & (pl.col("table") == "Age"))
    counts = dict(enrolled.group_by("category").agg(pl.col("enrollees").sum()).iter_rows())
    print(f'"""{HEAD}"""\n')
    print(f"AGES = {tuple(AGES)!r}")
    print(f"EDUCATION = {tuple(EDUCATION)!r}")
    print("# area: people by age (males, females), people of 25 and over by education (males, females), per cent below")
    print("# 100, 125 and 200 % of the poverty line")
    print("AREAS = {")
    for name in sorted(found, key=lambda text: int(text.split("-")[0])):
        print(f"    {name!r}: (")
        for part in found[name]:
            print(f"        {part!r},")
        print("    ),")
    print("}")
    print(f"# first age, last age, people\nENROLLEES = {sorted(_read_ages(counts))!r}")


def _sum(rows: pl.DataFrame, sex: str, parts: list[str]) -> int:
    return int(sum(rows[f"{sex}_{part}"].sum() for part in parts))


def _read_ages(counts: dict[str, int]) -> list[tuple[int, int, int]]:
    """Return first and last age of every category, and how many enrollees it has."""
    bands = []
    for category, people in counts.items():
        numbers = [int(word) for word in category.replace("+", " ").split() if word.isdigit()]
        if "less" in category:
            bands.append((0, numbers[0], people))
        elif len(numbers) == 2:
            bands.append((numbers[0], numbers[1], people))
        else:
            bands.append((numbers[0], 120, people))
    return bands


if __name__ == "__main__":
    main(sys.argv[1])
