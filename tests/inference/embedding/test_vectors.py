"""Scaling gives what llama-server's embd_normalize gives."""

import numpy as np
import pytest

from inference.embedding.vectors import encode_rows, scale_rows
from tests.inference.embedding.bench import Numbers, read_rows

ROWS = np.array([[3.0, -4.0, 0.0], [1.0, 1.0, 1.0], [1e-20, 2e-20, 0.0]], np.float32)


def scale_slowly(row: Numbers, norm: int) -> list[float]:
    """Scale one row number by number."""
    numbers = [float(number) for number in row]
    if norm == -1:
        return numbers
    if norm == 0:
        length = max(map(abs, numbers)) / 32760
    else:
        length = sum(abs(number) ** norm for number in numbers) ** (1 / norm)
    return [number / length for number in numbers]


@pytest.mark.parametrize("norm", [-1, 0, 1, 2, 3, 7])
def test_each_norm_scales_as_its_formula_says(norm: int) -> None:
    for row, scaled in zip(ROWS, scale_rows(ROWS, norm), strict=True):
        assert scaled == pytest.approx(scale_slowly(row, norm), rel=1e-5)
        assert scaled.dtype == np.float32


@pytest.mark.parametrize("norm", [-1, 0, 1, 2, 1024])
def test_rows_of_zeros_stay_and_large_powers_neither_vanish_nor_overflow(norm: int) -> None:
    rows = np.array([[0.0, 0.0], [1e-30, 1e30], [0.01, 0.02]], np.float32)
    scaled = scale_rows(rows, norm)
    assert np.isfinite(scaled).all()
    assert (scaled[0] == 0).all()
    assert np.abs(scaled[1:]).max(axis=1).all()


def test_rows_travel_as_little_endian_numbers_one_after_another() -> None:
    assert np.array_equal(read_rows(encode_rows(ROWS), 3), ROWS)
