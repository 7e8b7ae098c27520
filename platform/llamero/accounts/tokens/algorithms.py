"""What tokens may be signed with: nothing whose key is secret, so that no key is taken for one."""

# EdDSA is the older name of what is Ed25519 here: no other curve counts.
ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
)


def default_algorithms() -> list[str]:
    """Give what identity providers commonly use."""
    return ["RS256", "ES256", "EdDSA", "Ed25519"]
