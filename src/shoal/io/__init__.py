"""Tables from and to files, safely: nothing half-written, nothing overwritten, no value in an error."""

from shoal.io.reading import find_format, read_certificate, read_table
from shoal.io.writing import certificate_path_of, refuse_output, write_release

__all__ = ["certificate_path_of", "find_format", "read_certificate", "read_table", "refuse_output", "write_release"]
