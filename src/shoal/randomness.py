"""Where randomness comes from: the operating system for releases, a seed for tests and studies."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from shoal.errors import InputError


def make_generator(random_state: Any = None) -> np.random.Generator:
    """Return a generator: cryptographic (ChaCha20, keyed by the operating system) unless a seed or one is given."""
    if random_state is None:
        from randomgen import ChaCha

        return np.random.Generator(ChaCha(key=secrets.randbits(256), rounds=20))
    if isinstance(random_state, np.random.Generator):
        return random_state
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            "random_state must be None (for releases), a whole number or a numpy.random.Generator (for studies)."
        ) from None
