"""Assess a release: what it risks and what it keeps, measured once, for people, programs and pages alike."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from shoal import __version__
from shoal.assessment import keeping, risks
from shoal.assessment.columns import Crowd, make_bars, name_levels
from shoal.assessment.keeping import Dependence
from shoal.assessment.result import Assessment, ColumnComparison, Prediction
from shoal.assessment.scores import Scores
from shoal.encoding import EncodedColumn, encode, encode_table
from shoal.errors import InputError, suggest
from shoal.people import find_people
from shoal.privacy.combinations import count_combinations
from shoal.privacy.risk import Risk
from shoal.progress import Progress, Reporter
from shoal.randomness import make_generator
from shoal.release import CERTIFICATE, Origin, Release
from shoal.schema import Column, Schema, name_columns, read_frame, read_schema
from shoal.utility.learning import (
    Coefficient,
    can_be_predicted,
    coefficients,
    score_kept,
    shift_error,
)
from shoal.utility.pairs import Pair
from shoal.utility.propensity import propensity_of

Index = NDArray[np.int64]
_MOST_LEARNT = 100_000  # rows for models
_USUAL_K = 10  # what counts as a small group where no certificate says so


def assess(
    original: Any,
    released: Any,
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    kinds: Mapping[str, str | Sequence[Any]] | None = None,
    unit: str | None = None,
    aligned: bool = False,
    certificate: Mapping[str, Any] | None = None,
    target: str | None = None,
    model: Any = None,
    random_state: Any = 0,
    progress: bool | Progress | None = None,
) -> Assessment:
    """Return what a release risks and what it keeps, from the two tables.

    Of a release in memory, `release.assess()` knows more: the clusters, and so the attackers' risk.

    Parameters
    ----------
    original, released : pandas, polars or pyarrow tables
        For released also a Release, of which table and certificate are taken.
    quasi_identifiers, sensitive : list of str
        The columns to be compared; both tables must have them.
    kinds : dict, optional
        As in `shoal.anonymize`.
    unit : str, default none
        The column of the original that tells people apart, when a person has several rows. A release has it no more.
    aligned : bool, default False
        Whether row i of both tables is the same person. Attacks that link people to records need it; a release is
        shuffled, so two files are not aligned.
    certificate : dict, optional
        Of the release: its bound and its attackers are shown, and its k says which groups are small (else 10).
    target : str, default: the first sensitive column that can be predicted, numbers and orders before classes
        What a model learns to predict from the quasi-identifiers.
    model : scikit-learn regressor or classifier, default: least squares, or logistic regression, on levels
    random_state : int or numpy.random.Generator, default 0
        Splits and samples for references: the same numbers every time.
    progress : bool or callable, default None
        As in `shoal.anonymize`.

    Examples
    --------
    >>> import shoal
    >>> a, b = (shoal.datasets.load_cohort(500, random_state=seed) for seed in (0, 1))
    >>> found = shoal.assess(a, b, quasi_identifiers=["sex", "age"], sensitive=["cost"])
    >>> found.utility["joint_histogram"].value < 1
    True
    """
    if isinstance(released, Release):
        certificate = released.certificate if certificate is None else certificate
        released = released.table
    frames = [read_frame(name_columns(table)) for table in (original, released)]
    schema = read_schema(
        frames[0], quasi_identifiers=quasi_identifiers, sensitive=sensitive, unit=unit, others="drop", kinds=kinds
    )
    person = _read_people(frames[0], schema, certificate)
    for name in schema.names("quasi_identifier", "sensitive"):
        if name not in frames[1].columns:
            raise InputError(f"The released table has no column {name!r}{suggest(name, frames[1].columns)}")
    if aligned and len(frames[0]) != len(frames[1]):
        raise InputError(
            f"aligned=True needs the same people in the same rows, but the tables have {len(frames[0])} and "
            f"{len(frames[1])} rows."
        )
    return _Assessor(
        frames[0], frames[1], schema, certificate, target, model, make_generator(random_state), person, aligned=aligned
    ).run(progress)


def _read_people(
    frame: nw.DataFrame[Any], schema: Schema, certificate: Mapping[str, Any] | None
) -> NDArray[np.int64] | None:
    """Return the person of every row where people have several, having checked what is known of them."""
    if certificate is not None:
        missing = [name for name in CERTIFICATE if not isinstance(certificate, Mapping) or name not in certificate]
        if missing:
            raise InputError(f"certificate must be that of a release, but it has no {missing[0]!r}.")
        if schema.name("unit") is None and certificate["people"] < certificate["rows"]:
            raise InputError(
                f"The certificate speaks of {certificate['people']:,} people in {certificate['rows']:,} rows; say "
                "which column of the original tells people apart: unit='person_id'."
            )
    if schema.name("unit") is None:
        return None
    columns = [encode(frame[column.name], column) for column in schema.quasi_identifiers]
    return find_people(frame, schema, columns).of_row


def assess_release(
    released: Any,
    schema: Schema,
    certificate: Mapping[str, Any],
    origin: Origin,
    *,
    target: str | None = None,
    model: Any = None,
    random_state: Any = 0,
    progress: bool | Progress | None = None,
) -> Assessment:
    """Return what a release in memory risks and keeps."""
    place = np.empty(len(origin.order), dtype=np.int64)
    place[origin.order] = np.arange(len(place))
    frame = nw.from_native(released, eager_only=True)[place]
    return _Assessor(
        origin.frame,
        frame,
        schema,
        certificate,
        target,
        model,
        make_generator(random_state),
        origin.of_row,
        aligned=True,
        risk=origin.risk,
    ).run(progress)


@dataclass
class _Assessor:
    """The measurements, one after the other."""

    original: nw.DataFrame[Any]
    released: nw.DataFrame[Any]
    schema: Schema
    certificate: Mapping[str, Any] | None
    target: str | None
    model: Any
    rng: np.random.Generator
    person: NDArray[np.int64] | None
    aligned: bool = False
    risk: Mapping[str, Risk] | None = None  # of a release in memory

    def run(self, progress: bool | Progress | None) -> Assessment:
        with Reporter(progress) as reporter:
            report = reporter.stage("reading")
            refused: list[tuple[str, str]] = []
            pair = self._read(refused)
            report(1.0)
            target = self._find_target(pair)
            names = self.schema.names("quasi_identifier")
            known, sensitive = pair.only(names), [c for c in pair.columns if c.name not in names]
            report = reporter.stage("privacy")
            privacy = Scores(self._measure_privacy(known, sensitive, refused))
            report(0.7)
            combinations = count_combinations(self._persons(known), self._k)
            report(1.0)
            report = reporter.stage("utility")
            utility, found, dependent = self._measure_utility(pair, known, report)
            report = reporter.stage("learning")
            learnt, prediction = self._measure_learning(pair, known, target, refused)
            report(1.0)
            bars = self._compare_columns(pair, found, reporter)
        return Assessment(
            privacy=privacy,
            utility=Scores([*utility, *learnt]),
            columns=bars,
            dependence=dependent,
            prediction=prediction,
            risk_bars=risks.make_risk_bars(self.risk, self._bound) if self.risk else [],
            combinations=combinations,
            refused=refused,
            certificate=self.certificate,
            about=self._describe(pair),
        )

    @property
    def _k(self) -> int:
        return _USUAL_K if self.certificate is None else int(self.certificate["k"])

    @property
    def _bound(self) -> float:
        return 1.0 if self.certificate is None else float(self.certificate["bound"])

    def _read(self, refused: list[tuple[str, str]]) -> Pair:
        """Return quasi-identifiers and sensitive columns of both tables; sensitive ones only if they can be read."""
        columns = []
        for column in self.schema.columns:
            if column.role not in ("quasi_identifier", "sensitive"):
                continue
            try:
                columns.append(self._read_column(column))
            except InputError as error:
                if column.role == "quasi_identifier":
                    raise
                refused.append((f"column {column.name!r}", str(error)))
        return Pair(columns, len(self.original), aligned=self.aligned, person=self.person)

    def _read_column(self, column: Column) -> EncodedColumn:
        if column.kind is None:
            raise InputError("its dtype cannot be compared.")
        kinds = {column.name: list(column.levels) if column.levels is not None else column.kind}
        one, two = (frame.select(column.name).to_native() for frame in (self.original, self.released))
        return encode_table(one, kinds, two)[0]

    def _persons(self, pair: Pair) -> list[EncodedColumn]:
        """Return the original's columns, a row for every person."""
        first = np.arange(pair.n) if pair.person is None else np.unique(pair.person, return_index=True)[1]
        return [column.take(first) for column in pair.columns]

    @property
    def _people(self) -> int:
        return len(self.original) if self.person is None else int(self.person.max()) + 1

    def _find_target(self, pair: Pair) -> EncodedColumn | None:
        columns = {column.name: column for column in pair.columns}
        sensitive = [name for name in self.schema.names("sensitive") if name in columns]
        if self.target is None:
            ordered = sorted(sensitive, key=lambda name: columns[name].numbers is None)  # numbers before classes
            return next((columns[name] for name in ordered if can_be_predicted(columns[name])), None)
        if self.target not in sensitive:
            raise InputError(f"target={self.target!r} is not a sensitive column{suggest(self.target, sensitive)}")
        if not can_be_predicted(columns[self.target]):
            raise InputError(f"target={self.target!r} must vary, and have at most 20 classes if it is nominal.")
        return columns[self.target]

    def _measure_privacy(
        self, known: Pair, sensitive: list[EncodedColumn], refused: list[tuple[str, str]]
    ) -> list[Any]:
        scores, certificate = [], self.certificate
        if certificate is not None:
            scores.append(risks.score_bound(certificate, self._people))
            if self.risk:
                scores += risks.score_measured(self.risk, self._people)
            elif certificate.get("risk"):
                scores += risks.score_certified(certificate["risk"], self._people)
            else:
                refused.append(("attackers of a release", "the release was made with n_releases=0"))
        elif not self.aligned:
            refused.append(
                ("the guarantee", "it is in the certificate of the release, and none was given (certificate=)")
            )
        if self.aligned:
            if self.risk is None:
                scores.append(risks.score_linkage(known, self.rng))
            if sensitive:
                scores.append(risks.score_guessing(known, sensitive, self.rng))
        else:
            refused.append(
                (
                    "attacks that link people to records",
                    "the tables are not aligned: without knowing whose record is whose, no hit can be told from a miss "
                    "(release.assess() knows, or aligned=True)",
                )
            )
        scores += risks.score_presence(known, self._people, self.rng)
        return [*scores, *risks.score_classes(known, sensitive)]

    def _measure_utility(self, pair: Pair, known: Pair, report: Any) -> tuple[list[Any], keeping.Distances, Dependence]:
        scores = keeping.score_joint(known, self.rng)
        if self.certificate is not None and "weighted_histogram_intersection" in self.certificate["measured"]:
            scores.append(keeping.score_weighted(self.certificate["measured"], scores[0]))
        report(0.3)
        found = keeping.measure_distances(pair, self.rng)
        scores += keeping.score_columns(pair.names, found)
        report(0.6)
        dependent = keeping.measure_dependence(pair, self.rng)
        scores += keeping.score_dependence(dependent)
        report(0.8)
        ordered = [*known.names, *(name for name in pair.names if name not in known.names)]
        rows = pair.only(ordered).one_row_each(self.rng)
        scores.append(keeping.score_propensity(propensity_of(rows, self.rng, len(known.names))))
        report(1.0)
        return scores, found, dependent

    def _measure_learning(
        self, pair: Pair, known: Pair, target: EncodedColumn | None, refused: list[tuple[str, str]]
    ) -> tuple[list[Any], Prediction | None]:
        if target is None:
            refused.append(("prediction", "no sensitive column varies, is ordered or has at most 20 classes"))
            return [], None
        if not any(len(np.unique(column.codes)) > 1 for column in known.columns):
            refused.append(("prediction", "no quasi-identifier varies"))
            return [], None
        part = pair.one_row_each(self.rng).sampled(_MOST_LEARNT, self.rng)
        response = next(column for column in part.columns if column.name == target.name)
        chosen, rare = part.only(known.names), max(self._k, _USUAL_K)
        try:
            kept = score_kept(chosen, response, self.rng, self.model, rare)
        except InputError as error:
            if self.target is not None or self.model is not None:
                raise
            refused.append(("prediction", str(error)))
            return [], None
        effects = coefficients(chosen, response, rare)
        scores = [
            *keeping.score_prediction(kept),
            *keeping.score_coefficients(effects, target.name),
            keeping.score_shift(*shift_error(chosen, response, self.rng, rare), target.name),
        ]
        return scores, Prediction(kept, effects, self._label(pair, effects))

    def _label(self, pair: Pair, effects: list[Coefficient]) -> list[str]:
        """Return effects in words; a level only if enough people have it."""
        columns, named, labels = {column.name: column for column in pair.columns}, {}, []
        for effect in (coefficient.effect for coefficient in effects):
            name = effect.column
            if effect.what != "level":
                labels.append(name if effect.what == "number" else f"{name}: {effect.what}")
                continue
            if name not in named:
                named[name] = name_levels(columns[name], self.original[name], self._crowd(pair))
            labels.append(f"{name}: {named[name].get(effect.code, 'a rare level')}")
        return labels

    def _crowd(self, pair: Pair) -> Crowd:
        return Crowd(pair.n, pair.person, pair.person if self.aligned else None, self._k)

    def _compare_columns(self, pair: Pair, found: keeping.Distances, reporter: Reporter) -> list[ColumnComparison]:
        report, crowd, roles = reporter.stage("columns"), self._crowd(pair), self._roles
        compared = []
        for j, column in enumerate(pair.columns):
            compared.append(
                ColumnComparison(
                    column.name,
                    roles[column.name],
                    column.kind,
                    make_bars(column, self.original[column.name], crowd),
                    1 - float(found.marginal[j]),
                    1 - float(found.reference[0, j]),
                    float(found.ks[j]),
                    float(found.reference[1, j]),
                    float(found.wasserstein[j]),
                    float(found.reference[2, j]),
                )
            )
            report((j + 1) / len(pair.columns))
        return compared

    @property
    def _roles(self) -> dict[str, str]:
        return {column.name: column.role.replace("_", "-") for column in self.schema.columns}

    def _describe(self, pair: Pair) -> dict[str, Any]:
        return {
            "shoal": __version__,
            "made": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
            "people": self._people,
            "rows": len(self.original),
            "rows_released": len(self.released),
            "quasi_identifiers": self.schema.names("quasi_identifier"),
            "sensitive": self.schema.names("sensitive"),
            "aligned": self.aligned,
            "small_group": self._k,
            "columns_compared": len(pair.columns),
        }
