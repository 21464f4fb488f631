"""Tables from and to files and databases, safely: nothing half-written, nothing overwritten, no value in an error."""

from shoal.io.databases import is_address, read_database, without_password
from shoal.io.formats import STANDARD, find_format, find_output
from shoal.io.labels import Labels
from shoal.io.reading import Reading, Source, read_certificate, read_source, read_table
from shoal.io.writing import certificate_path_of, refuse_output, write_release, write_release_to_database

__all__ = [
    "STANDARD",
    "Labels",
    "Reading",
    "Source",
    "certificate_path_of",
    "find_format",
    "find_output",
    "is_address",
    "read_certificate",
    "read_database",
    "read_source",
    "read_table",
    "refuse_output",
    "without_password",
    "write_release",
    "write_release_to_database",
]
