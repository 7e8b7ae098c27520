"""Byte counts as people write them: 256 MiB, 1.5 GB, 0."""

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminTextInputWidget

_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _UNITS |= {_letter: 1024**_power, f"{_letter}ib": 1024**_power, f"{_letter}b": 1000**_power}
_SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([a-z]*)\s*\Z", re.IGNORECASE)


class SizeField(forms.IntegerField):
    """An integer of bytes that is shown and typed with a unit."""

    widget = UnfoldAdminTextInputWidget

    def to_python(self, value: Any) -> int | None:
        """Read a number with or without a unit; KiB counts by 1024, KB by 1000."""
        if value in self.empty_values:
            return None
        match = _SIZE.match(str(value))
        unit = match[2].lower() if match else None
        if match is None or unit not in _UNITS:
            raise ValidationError("Give a size like 256 MiB, 2 GB or 0.", code="invalid")
        return round(float(match[1]) * _UNITS[unit])

    def prepare_value(self, value: Any) -> Any:
        """Show whole binary units where the number has them."""
        if not isinstance(value, int):
            return value
        for power, letter in reversed(list(enumerate("KMGT", start=1))):
            if value and value % 1024**power == 0:
                return f"{value // 1024**power} {letter}iB"
        return str(value)
