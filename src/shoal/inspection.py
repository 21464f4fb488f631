"""Look at a table before it is released: columns, kinds, what singles people out, and roles to think about.

Roles are suggested, never applied: what a column may do to a person's privacy is the owner's decision.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import narwhals.stable.v2 as nw

from shoal.assessment.scores import write_number
from shoal.encoding import EncodedColumn, encode, find_missing
from shoal.errors import InputError, suggest
from shoal.notebook import html_table
from shoal.privacy.combinations import Combination, count_combinations, leave_out_supersets
from shoal.progress import Progress, Reporter
from shoal.schema import Column, dtype_name, infer_kind, name_columns, read_frame, read_schema

# Words in column names, as they are used in health, education and finance.
_IDENTIFIER = re.compile(
    r"(^|_)(id|ids|uuid|guid|key|ssn|nhs|mrn|iban|email|mail|phone|tel|fax|passport|licen[cs]e|url|ip|"
    r"(first|last|sur|full|given|family|user|patient|customer)?_?name|address|street|account|"
    r"\w*(nummer|nr)|(vor|nach)name|nom|prenom|nombre|apellidos?|adresse|direccion|stra(ss|ß)e|telefon\w*)(_|$)|(Id|ID|Name)$",
    re.IGNORECASE,
)
_QUASI = re.compile(
    r"(^|_)(age|sex|gender|birth\w*|dob|born|yob|zip\w*|post\w*|city|town|county|region|state|country|district|"
    r"area|race|ethnic\w*|nation\w*|citizen\w*|language|religion|marital\w*|married|famil\w*|child\w*|household\w*|"
    r"educ\w*|degree|school\w*|grade|job|occupation\w*|profession|employ\w*|industry|income\w*|povert\w*|height|"
    r"alter|geschlecht|plz|postleitzahl|(wohn|geburts)?ort|stadt|kreis|gemeinde|(bundes)?land|geburt\w*|beruf\w*|"
    r"familienstand|nationalit\w*|staatsang\w*|konfession|kinder\w*|haushalt\w*|einkommen\w*|bildung\w*|schul\w*|"
    r"sexe|code_?postal|ville|naissance|revenu\w*|metier|sexo|edad|codigo_?postal|ciudad|nacimiento|ingresos|ocupacion|"
    r"weight_?(kg|lb)?|admission\w*|discharge\w*|date\w*|year|veteran|insur\w*)(\d*)(_|$)",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"(^|_)(patient|person|people|member|customer|client|subject|participant|user|employee|student|enrol\w*|insured|"
    r"beneficiary|respondent|pseudonym)(_?(id|no|nr|num|number|key|code))?(_|$)|^(p|pt|m|c)?id$",
    re.IGNORECASE,
)
_WEIGHT = re.compile(
    r"(^|_)(w|wt|wgt|weight|weights|wt\w*per|pwgt\w*|sample_?weight|survey_?weight|fnlwgt)(_|\d*$)", re.IGNORECASE
)
_SENSITIVE = re.compile(
    r"(^|_)(diagnos\w*|icd\w*|disease\w*|cost\w*|kosten\w*|price|amount|betrag|salary|gehalt|lohn|mark|marks|score|"
    r"passed|result\w*|outcome\w*)(\d*)(_|$)",
    re.IGNORECASE,
)
_NEARLY_ALL = 0.9
_FEW_LEVELS = 25
_SMALL = 10  # people in a group that counts as small
_MOST_CANDIDATES = 12
_MOST_SHOWN = 10


@dataclass(frozen=True)
class InspectedColumn:
    """A column: how it reads, how full and how varied it is, and the role it may have.

    Attributes
    ----------
    name, dtype : str
    kind : str or None
        None for a dtype that cannot be a quasi-identifier.
    missing, distinct : int
    suggested : {"identifier", "unit", "quasi_identifier", "sensitive", "weight"}
        "unit": the column that tells people apart, where an identifier repeats.
    why : str
    """

    name: str
    dtype: str
    kind: str | None
    missing: int
    distinct: int
    suggested: str
    why: str


@dataclass(frozen=True, repr=False)
class Inspection:
    """What a table shows before it is released.

    Attributes
    ----------
    rows : int
    columns : list of InspectedColumn
    candidates : list of str
        The quasi-identifiers looked at: given, or suggested.
    combinations : list of Combination
        How many people each combination of a few candidates singles out; all of them together first.
    """

    rows: int
    columns: list[InspectedColumn]
    candidates: list[str]
    combinations: list[Combination]

    @property
    def together(self) -> Combination | None:
        """All candidates together."""
        chosen = set(self.candidates)
        return next((c for c in self.combinations if set(c.columns) == chosen), None)

    @property
    def risk(self) -> float | None:
        """Share of people picked out from the table as it is, by one who knows their quasi-identifiers."""
        return None if self.together is None else self.together.classes / self.rows

    @property
    def reading(self) -> str:
        """The risk of releasing the table as it is, in a sentence or two."""
        all_of_them = self.together
        if all_of_them is None:
            return "No column looks like a quasi-identifier; name those by which a person could be recognised."
        share = all_of_them.classes / self.rows
        return (
            f"Released as it is, whoever knows somebody's {', '.join(self.candidates)} picks out {share:.1%} of the "
            f"{self.rows:,} records: {all_of_them.alone:,} people ({all_of_them.alone / self.rows:.1%}) are alone in "
            f"their combination, {all_of_them.below:,} share it with fewer than {_SMALL}. That counts every row as "
            f"another person{self._say_people()}."
        )

    def _say_people(self) -> str:
        unit = next((column for column in self.columns if column.suggested == "unit"), None)
        if unit is None or unit.distinct == self.rows:
            return ""
        return f", though {unit.name!r} has {unit.distinct:,} different values in {self.rows:,} rows"

    def roles(self) -> dict[str, list[str]]:
        """Return the suggested roles."""
        found: dict[str, list[str]] = {
            "quasi_identifier": [], "sensitive": [], "identifier": [], "unit": [], "weight": []
        }  # fmt: skip
        for column in self.columns:
            found[column.suggested].append(column.name)
        return found

    def as_command(self, *source: str) -> str:
        """Return a command to paste, and to think about first; source: the words that name the table."""
        from shlex import join, quote

        roles = self.roles()
        options = [
            ("--qi", ",".join(roles["quasi_identifier"])),
            ("--sensitive", ",".join(roles["sensitive"])),
            ("--identifiers", ",".join(roles["identifier"])),
            ("--unit", ",".join(roles["unit"])),
            ("--weight", ",".join(roles["weight"][:1])),
        ]
        parts = [f"{option} {quote(names)}" for option, names in options if names or option == "--qi"]
        where = join(source or ("people.csv",))
        return f"shoal anonymize {where} -o release.csv {' '.join(parts)} --report report.html"

    def as_python(self) -> str:
        """Return a call to paste, and to think about first."""
        roles = self.roles()
        lines = [f"    quasi_identifiers={roles['quasi_identifier']!r},"]
        lines += [f"    sensitive={roles['sensitive']!r},"] if roles["sensitive"] else []
        lines += [f"    identifiers={roles['identifier']!r},"] if roles["identifier"] else []
        lines += [f"    unit={roles['unit'][0]!r},"] if roles["unit"] else []
        lines += [f"    weight={roles['weight'][0]!r},"] if roles["weight"] else []
        return "\n".join(["release = shoal.anonymize(", "    table,", *lines, ")"])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "format": "shoal inspection 1",
            "rows": self.rows,
            "columns": [vars(column) for column in self.columns],
            "candidates": self.candidates,
            "combinations": [{**vars(c), "columns": list(c.columns)} for c in self.combinations],
            "risk": self.risk,
            "reading": self.reading,
        }

    def __str__(self) -> str:
        width = max(len(column.name) for column in self.columns)
        lines = [
            f"{c.name:<{width}}  {c.kind or c.dtype:<9}  {write_number(c.missing / self.rows, 'share'):>7} missing  "
            f"{c.distinct:>9,} values  {c.suggested.replace('_', '-')}? {c.why}"
            for c in self.columns
        ]
        return "\n".join([*lines, "", self.reading, "", self.as_python()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (c.name, c.kind or c.dtype, f"{c.missing:,}", f"{c.distinct:,}", c.suggested.replace("_", "-") + "?", c.why)
            for c in self.columns
        ]
        columns = html_table(rows, ("column", "kind", "missing", "values", "role", "why"), numbers=(2, 3))
        worst = [(" + ".join(c.columns), f"{c.alone:,}", f"{c.below:,}") for c in self.combinations[:_MOST_SHOWN]]
        together = html_table(worst, ("columns together", "people alone", "in small groups"), numbers=(1, 2))
        return f"<div>{columns}<p>{escape(self.reading)}</p>{together}<pre>{escape(self.as_python())}</pre></div>"


def inspect(
    table: Any,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    kinds: Mapping[str, str | Sequence[Any]] | None = None,
    progress: bool | Progress | None = None,
) -> Inspection:
    """Return what a table shows before it is released: columns, what singles people out, roles to think about.

    Parameters
    ----------
    table : pandas, polars or pyarrow table
    quasi_identifiers : list of str, default: the columns that look like it
        The columns whose combinations are counted.
    kinds, progress
        As in `shoal.anonymize`.

    Examples
    --------
    >>> import shoal
    >>> found = shoal.inspect(shoal.datasets.load_cohort(500))
    >>> found.candidates
    ['sex', 'age', 'age_group', 'education', 'income']
    """
    frame = read_frame(name_columns(table))
    with Reporter(progress) as reporter:
        report = reporter.stage("columns")
        columns = []
        for done, name in enumerate(frame.columns, start=1):
            columns.append(_inspect_column(frame[name]))
            report(done / len(frame.columns))
        columns = _find_unit(columns, len(frame))
        candidates = _find_candidates(columns, quasi_identifiers)
        report = reporter.stage("combinations")
        encoded = []
        for name in list(candidates):
            try:
                encoded.append(_encode(frame, name, kinds))
            except InputError:
                if quasi_identifiers is not None:
                    raise
                candidates.remove(name)  # what is suggested is looked at as far as it can be
        combinations = leave_out_supersets(count_combinations(encoded, _SMALL), len(frame)) if encoded else []
        together = count_combinations(encoded, _SMALL, most=0) if encoded else []
        combinations += [one for one in together if one not in combinations]
        report(1.0)
    return Inspection(len(frame), columns, candidates, combinations)


def _find_unit(columns: list[InspectedColumn], rows: int) -> list[InspectedColumn]:
    """Return the columns with one identifier as the one that tells people apart, where identifiers repeat.

    It is the most varied of those that repeat and are named like a person's number; else one that never repeats.
    """
    identifiers = [column for column in columns if column.suggested == "identifier"]
    repeating = [column for column in identifiers if column.distinct < rows - column.missing]
    if not repeating:
        return columns
    persons = [column for column in repeating if _PERSON.search(_words(column.name)) and not column.missing]
    single = [column for column in identifiers if column.distinct == rows]
    chosen = max(persons or single[:1] or repeating, key=lambda column: column.distinct)
    why = "identifiers repeat, and this one seems to tell people apart"
    return [replace(column, suggested="unit", why=why) if column is chosen else column for column in columns]


def _encode(frame: nw.DataFrame[Any], name: str, kinds: Mapping[str, Any] | None) -> EncodedColumn:
    given = {name: kinds[name]} if kinds and name in kinds else None
    schema = read_schema(frame.select(name), quasi_identifiers=[name], kinds=given)
    return encode(frame[name], schema.columns[0])


def _find_candidates(columns: Sequence[InspectedColumn], given: Sequence[str] | None) -> list[str]:
    known = [column.name for column in columns]
    if given is None:
        found = [c for c in columns if c.suggested == "quasi_identifier" and c.kind and c.distinct]
        return [c.name for c in found][:_MOST_CANDIDATES]
    if isinstance(given, str) or not len(given):
        raise InputError("quasi_identifiers must be a list of column names.")
    for name in given:
        if name not in known:
            raise InputError(f"quasi_identifiers names {name!r}, which is not a column{suggest(name, known)}")
    return list(dict.fromkeys(given))


def _inspect_column(series: nw.Series[Any]) -> InspectedColumn:
    gone = find_missing(series)
    kind, levels = infer_kind(series)
    distinct = _count_distinct(series, kind, levels) if not gone.all() else 0
    suggested, why = _suggest(series.name, kind, distinct, int((~gone).sum()), series)
    return InspectedColumn(series.name, dtype_name(series), kind, int(gone.sum()), distinct, suggested, why)


def _count_distinct(series: nw.Series[Any], kind: Any, levels: Any) -> int:
    if kind is not None:
        try:
            encoded = encode(series, Column(series.name, "kept", kind, levels))
        except InputError:  # infinite values, say: still a column to be told of
            pass
        else:
            return encoded.n_levels - int(encoded.missing.any())
    return len({str(value) for value in series.to_list()})


def _words(name: str) -> str:
    """Return a name with its words parted by underscores."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace(" ", "_").replace("-", "_").replace(".", "_")


def _suggest(name: str, kind: str | None, distinct: int, known: int, series: nw.Series[Any]) -> tuple[str, str]:
    """Return a role that a column may have, and why."""
    words = _words(name)
    unique = known > 0 and distinct >= _NEARLY_ALL * known and known >= _SMALL
    text = series.dtype in (nw.String, nw.Object, nw.Categorical)
    if kind == "numeric" and _WEIGHT.search(words):
        return "weight", "its name is that of a survey weight"
    if _SENSITIVE.search(words):
        return "sensitive", "its name is that of something few know"
    if unique and (text or _IDENTIFIER.search(words)):
        return "identifier", "nearly everybody has another value"
    if _IDENTIFIER.search(words):
        return "identifier", "its name is that of an identifier"
    if _QUASI.search(words):
        return "quasi_identifier", "its name is that of something others know"
    if unique and series.dtype.is_integer():
        return "identifier", "whole numbers, nearly everybody has another one"
    if kind in ("nominal", "ordinal", "datetime") and distinct > 1:
        return ("quasi_identifier", "others may know it") if distinct <= _FEW_LEVELS or kind == "datetime" else (
            "sensitive", "many different levels; or does anybody know it?")  # fmt: skip
    if kind == "numeric" and 1 < distinct <= _FEW_LEVELS:
        return "quasi_identifier", "few different numbers; others may know it"
    return "sensitive", "varied; or does anybody know it?"
