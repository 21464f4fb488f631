"""The files of a bundle."""

from __future__ import annotations

from shoal.io.formats import Format

CERTIFICATE, REPORT, DICTIONARY, README, SUMS = (
    "certificate.json", "report.html", "dictionary.csv", "README.md", "SHA256SUMS"
)  # fmt: skip
DATA: dict[Format, str] = {
    "csv": "data.csv",
    "parquet": "data.parquet",
    "arrow": "data.arrow",
    "excel": "data.xlsx",
    "stata": "data.dta",
}


def disarm(cell: str) -> str:
    """Return a text that no spreadsheet runs as a formula."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
