"""The command `shoal`."""

from shoal.cli.app import main

__all__ = ["main"]
