"""Numbers of bytes as people read them, the same way on every page."""

import re
from typing import Any

from django.template import Library, defaultfilters

register = Library()
_UNIT = re.compile(r"(?<=[KMGTP])B\Z")


@register.filter(is_safe=True)
def filesizeformat(num_bytes: Any) -> str:
    """Write a number of bytes in binary units, named as such.

    Django's own filter, in whose place this one is put in templates, says MB and counts MiB.
    """
    return _UNIT.sub("iB", defaultfilters.filesizeformat(num_bytes))
