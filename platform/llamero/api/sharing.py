"""Whose jobs may reuse what a caller's job has computed?"""

from llamero.accounts.selectors import Caller


def salt_of(caller: Caller, prefix_sharing: str) -> str:
    """Give what jobs must have in common to share computed prefixes; no client has a say in it.

    Timing tells whether somebody computed the same beginning before. So each key is on its own,
    and each user of the playground, unless the deployment widens that: to all keys of a user
    (``owner``), or to everybody (``all``). What else it may say is taken for the narrowest.
    """
    match prefix_sharing:
        case "all":
            return "all"
        case "owner":
            return f"user:{caller.user.pk}"
        case _:
            return caller.owner
