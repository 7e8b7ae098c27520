"""What SQLite shows by the default run holds on PostgreSQL: migrations, statements and locks."""

import pytest

from tests.postgresql import TESTS, run_tests


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_concerns_the_database_holds_on_postgresql() -> None:
    assert run_tests(TESTS) == 0
