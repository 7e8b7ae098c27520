"""What people may do with keys of their own, as the operator's settings say."""

from dataclasses import dataclass

from llamero.accounts.scopes import Scope


@dataclass(frozen=True, slots=True)
class OwnKeyRules:
    """So many keys that live, for so many days (0: no end), with these scopes and models at most.

    Without scopes they have those that a key has which lists none; without models, all.
    """

    most: int
    longest_days: int
    scopes: tuple[str, ...]
    models: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse a scope that there is not: whoever wrote it meant another one."""
        unknown = sorted(set(self.scopes) - set(Scope.values))
        if unknown:
            known = ", ".join(Scope.values)
            raise ValueError(
                f"LLAMERO_OWN_KEY_SCOPES: there is no {unknown[0]}; there are {known}."
            )
