"""Whose jobs may reuse what a caller's job has computed?"""

from llamero.accounts.selectors import Caller


def salt_of(caller: Caller, prefix_sharing: str) -> str:
    """Give what jobs must have in common to share computed prefixes; no client has a say in it.

    Timing tells whether somebody computed the same beginning before. So each key is on its own,
    and each user of the playground, unless the deployment widens that: to all keys of a user
    (``owner``), of a team (``team``; keys without one stay with their user's), or to everybody
    (``all``). What else it may say is taken for the narrowest.
    """
    match prefix_sharing:
        case "all":
            return "all"
        case "owner" | "team":
            return _owner_salt(caller, by_team=prefix_sharing == "team")
        case _:
            return caller.owner


def _owner_salt(caller: Caller, *, by_team: bool) -> str:
    """Name the user, or the team where that is asked for or nobody else owns the key."""
    if caller.team_id is not None and (by_team or caller.user is None):
        return f"team:{caller.team_id}"
    return caller.owner if caller.user is None else f"user:{caller.user.pk}"
