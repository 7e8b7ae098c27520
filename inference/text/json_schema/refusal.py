"""Why a schema cannot become a grammar."""


class Refusal(Exception):
    """A part of a schema, named by its JSON pointer, that is wrong or not supported."""

    def __init__(self, pointer: str, problem: str) -> None:
        super().__init__(problem)
        self.pointer = pointer
        self.problem = problem


class Unsatisfiable(Refusal):
    """A part of a schema that no value fits; an alternative may fall away because of it."""
