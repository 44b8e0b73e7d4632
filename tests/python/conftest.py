"""What every test may ask for."""

from pathlib import Path

import pytest
from command import SAMPLE, Truecast, binary


@pytest.fixture(scope="session")
def truecast() -> Truecast:
    return Truecast(binary())


@pytest.fixture(scope="session")
def sample() -> Path:
    return SAMPLE
