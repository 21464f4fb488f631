"""A release as a folder that people can hand over, and that whoever receives it can check."""

from shoal.bundle.making import check_folder, write_bundle
from shoal.bundle.verifying import Verification, data_of, fingerprint_of, verify_bundle

__all__ = ["Verification", "check_folder", "data_of", "fingerprint_of", "verify_bundle", "write_bundle"]
