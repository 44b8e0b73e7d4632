"""What every test may ask for. Commands, types and files are those of tests/python."""

import pytest
from command import Truecast, binary


@pytest.fixture(scope="session")
def truecast() -> Truecast:
    return Truecast(binary())
