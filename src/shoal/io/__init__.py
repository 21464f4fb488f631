"""Tables from and to files, safely: nothing half-written, nothing overwritten, no value in an error."""

from shoal.io.reading import FORMATS, find_format, read_table
from shoal.io.writing import refuse_output, write_release

__all__ = ["FORMATS", "find_format", "read_table", "refuse_output", "write_release"]
