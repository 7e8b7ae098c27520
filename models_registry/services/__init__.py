"""Everything that changes the registry: keyword-only, atomic, validated."""
