"""The form of a key in the admin."""

# What the form sends of fields that nobody has filled in.
EMPTY = {
    "expires_at_0": "",
    "expires_at_1": "",
    "priority": "0",
    "limits-TOTAL_FORMS": "0",
    "limits-INITIAL_FORMS": "0",
}
