"""The formats of strings as patterns. Each matches only texts that have the format, if not all."""

_LEAP = "(0[48]|[2468][048]|[13579][26])"
_DATE = (
    "([1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    f"|02-(0[1-9]|1[0-9]|2[0-8]))|([1-9][0-9]{_LEAP}|([2468][048]|[13579][26])00)-02-29)"
)
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_CLOCK}:[0-5][0-9](\.[0-9]{{1,6}})?(Z|[+-]{_CLOCK})"
_COUNT = "[0-9]{1,4}"
_OF_DAY = f"T({_COUNT}H({_COUNT}M({_COUNT}S)?)?|{_COUNT}M({_COUNT}S)?|{_COUNT}S)"
_OF_DATE = f"({_COUNT}Y({_COUNT}M({_COUNT}D)?)?|{_COUNT}M({_COUNT}D)?|{_COUNT}D)"
_HEX = "[0-9a-fA-F]"
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_GROUP = f"{_HEX}{{1,4}}"
_SHORTENED = "|".join(
    f"({_GROUP}:){{1,{7 - after}}}(:{_GROUP}){{1,{after}}}" for after in range(1, 7)
)
_IPV6 = f"(({_GROUP}:){{7}}{_GROUP}|{_SHORTENED}|({_GROUP}:){{1,7}}:|:(:{_GROUP}){{1,7}}|::)"
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
_TOP_LABEL = "[A-Za-z]{2,24}"
_WORD = "[A-Za-z0-9_+-]{1,20}"
_EMAIL = rf"{_WORD}(\.{_WORD}){{0,2}}@({_LABEL}\.){{1,4}}{_TOP_LABEL}"
_URL_CHAR = f"([A-Za-z0-9._~!$&'()*+,;=:@-]|%{_HEX}{{2}})"
_URI = (
    rf"[A-Za-z][A-Za-z0-9+.-]{{0,15}}://[A-Za-z0-9._~-]+(:[0-9]{{1,4}})?(/({_URL_CHAR}|/)*)?"
    rf"(\?({_URL_CHAR}|[/?])*)?(#({_URL_CHAR}|[/?])*)?"
)
_POINTER = "(/([^~/]|~[01])*)*"

_BODIES = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": f"P({_COUNT}W|{_OF_DATE}({_OF_DAY})?|{_OF_DAY})",
    "uuid": f"{_HEX}{{8}}-({_HEX}{{4}}-){{3}}{_HEX}{{12}}",
    "ipv4": rf"({_BYTE}\.){{3}}{_BYTE}",
    "ipv6": _IPV6,
    "hostname": rf"({_LABEL}\.){{0,4}}{_TOP_LABEL}",
    "email": _EMAIL,
    "uri": _URI,
    "json-pointer": _POINTER,
    "relative-json-pointer": f"(0|[1-9][0-9]{{0,3}})(#|{_POINTER})",
}
# What has one of these formats has the wider one too.
_WIDER = {
    "idn-hostname": "hostname",
    "idn-email": "email",
    "uri-reference": "uri",
    "uri-template": "uri",
    "iri": "uri",
    "iri-reference": "uri",
}
PATTERNS = {name: f"^{body}$" for name, body in _BODIES.items()} | {
    name: f"^{_BODIES[narrower]}$" for name, narrower in _WIDER.items()
}
# Defined by the standard, but no pattern of ours. Names it does not define are notes.
REFUSED = frozenset({"regex"})
