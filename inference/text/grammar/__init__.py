"""Grammars (GBNF): read, checked, and matched byte by byte, with every cost bounded."""

from inference.text.grammar.automaton import Automaton, Budget, State
from inference.text.grammar.checks import read_grammar

__all__ = ["Automaton", "Budget", "State", "read_grammar"]
