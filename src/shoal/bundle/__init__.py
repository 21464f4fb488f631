"""A release as a folder that people can hand over, and that whoever receives it can check."""

from shoal.bundle.making import check_folder, write_bundle
from shoal.bundle.verifying import Verification, fingerprint_of, verify_bundle

__all__ = ["Verification", "check_folder", "fingerprint_of", "verify_bundle", "write_bundle"]
