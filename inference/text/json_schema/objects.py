"""The objects that one of several plans allows, as rules that begin alike only where they must.

A rule stands for a set of places: how far each plan that the pairs so far fit has come. So what
plans have in common is written once, and a matcher need not follow all of them at once.
"""

from collections.abc import Sequence
from typing import TypeAlias

from inference.text.grammar.writer import literal, one_of
from inference.text.json_schema.gbnf import BLANK, COMMA, Grammar, json_text
from inference.text.json_schema.object_plan import ObjectPlan, Pair
from inference.text.json_schema.tries import any_beginning
from inference.text.json_schema.writing import SchemaWriter

_LONG = 60
# The number of a plan, of its next pair, and of the pairs so far where these are counted.
_Place: TypeAlias = tuple[int, int, int]
_Places: TypeAlias = tuple[_Place, ...]


def write_objects(writer: SchemaWriter, plans: Sequence[ObjectPlan]) -> str:
    """Give an item that matches what one of the plans allows; raises Refusal."""
    unique = tuple(dict.fromkeys(plans))
    if len(unique) == 1 and not unique[0].is_counted:
        return _write_one(writer.grammar, unique[0])
    return _Union(writer, unique).write()


def _write_one(grammar: Grammar, plan: ObjectPlan) -> str:
    """Write one plan: a comma stands before all pairs but the first."""
    afters = _afters(grammar, plan)
    first = [f"{plan.other} {afters[-1]}", '"}"'] if plan.other else ['"}"']
    for pair, after in reversed(list(zip(plan.pairs, afters[1:], strict=True))):
        begin = f"{_text(pair)} {after}"
        first = [begin] if pair.is_required else [begin, *first]
    return grammar.define(f'"{{" {BLANK} {one_of(first)}')


def _afters(grammar: Grammar, plan: ObjectPlan) -> list[str]:
    """Give what may follow some pair where so many pairs are dealt with, from none to all."""
    after = '"}"'
    if plan.other:
        after = f'{grammar.repeat(grammar.define(f"{COMMA} {plan.other}"), 0, None)} "}}"'
    afters = [after]
    for pair in reversed(plan.pairs):
        text = f"{COMMA} {_text(pair)}"
        after = f"{text} {after}" if pair.is_required else f"({text})? {after}"
        if len(after) > _LONG:
            after = grammar.define(after)
        afters.append(after)
    return afters[::-1]


def _text(pair: Pair) -> str:
    return f"{literal(json_text(pair.name) + ':')} {BLANK} {pair.item}"


class _Union:
    """Writes the rules of several plans."""

    def __init__(self, writer: SchemaWriter, plans: Sequence[ObjectPlan]) -> None:
        self._writer, self._grammar = writer, writer.grammar
        self._plans = plans
        self._rules: dict[tuple[_Places, bool], str] = {}
        self._afters: dict[int, list[str]] = {}

    def write(self) -> str:
        """Give the item."""
        places = tuple((number, 0, 0) for number in range(len(self._plans)))
        return self._grammar.define(f'"{{" {BLANK} {self._rule(places, is_first=True)}')

    def _rule(self, places: _Places, *, is_first: bool) -> str:
        """Give the rule of what may come from these places on, with the closing brace."""
        places = tuple(place for place in dict.fromkeys(places) if self._can_end(place))
        key = (places, is_first)
        if key not in self._rules:
            self._grammar.spend(len(places))
            alone = places[0] if len(places) == 1 and not is_first else None
            if alone and not self._plans[alone[0]].is_counted:
                options = [self._after(alone)]
            else:
                options = self._options(places, is_first)
            self._rules[key] = self._grammar.define(" | ".join(dict.fromkeys(options)))
        return self._rules[key]

    def _after(self, place: _Place) -> str:
        """Give what may follow where only one plan is left."""
        number, index, _ = place
        if number not in self._afters:
            self._afters[number] = _afters(self._grammar, self._plans[number])
        return self._afters[number][index]

    def _options(self, places: _Places, is_first: bool) -> list[str]:
        """Give the next key and what follows where it is written, and where it is left out."""
        comma = "" if is_first else f"{COMMA} "
        key = self._next_key(places)
        if key is None:
            return self._ends(places, is_first)
        options, taken, left = [], [], []
        for place in places:
            pair = self._pair(place)
            if pair is None or pair.name != key:
                left.append(place)
                continue
            number, index, count = place
            count += self._plans[number].is_counted
            taken.append((pair, (number, index + 1, count)))
            if not pair.is_required:
                left.append((number, index + 1, place[2]))
        value = self._value(taken)
        if value:
            options.append(f"{comma}{literal(json_text(key) + ':')} {BLANK} {value}")
        if any(map(self._can_end, left)):
            options.append(self._rule(tuple(left), is_first=is_first))
        return options

    def _next_key(self, places: _Places) -> str | None:
        """Choose a key that comes next: best one that no plan has only later."""
        keys = dict.fromkeys(pair.name for pair in map(self._pair, places) if pair)
        later = {
            pair.name
            for number, index, _ in places
            for pair in self._plans[number].pairs[index + 1 :]
        }
        return next((key for key in keys if key not in later), next(iter(keys), None))

    def _value(self, taken: list[tuple[Pair, _Place]]) -> str:
        """Give the values of a key with what follows each; equal ones once."""
        texts: dict[str, list[_Place]] = {}
        items: dict[str, tuple[Pair, list[_Place]]] = {}
        for pair, place in taken:
            if not self._can_end(place):
                continue
            listed = self._writer.texts(pair.schema, pair.pointer) if len(taken) > 1 else None
            for text in listed or ():
                texts.setdefault(text, []).append(place)
            if listed is None:
                items.setdefault(pair.item, (pair, []))[1].append(place)
        tails = {text: self._rule(tuple(then), is_first=False) for text, then in texts.items()}
        options = [any_beginning(self._grammar, tails)] if tails else []
        by_tail: dict[str, list[Pair]] = {}
        for pair, then in items.values():
            by_tail.setdefault(self._rule(tuple(then), is_first=False), []).append(pair)
        options += [f"{self._common(pairs)} {tail}" for tail, pairs in by_tail.items()]
        if not options:
            return ""
        return options[0] if len(options) == 1 else self._grammar.define(one_of(options))

    def _common(self, pairs: list[Pair]) -> str:
        """Give the item of any of these pairs' values."""
        if len(pairs) == 1:
            return pairs[0].item
        return self._writer.convert({"anyOf": [pair.schema for pair in pairs]}, pairs[0].pointer)

    def _ends(self, places: _Places, is_first: bool) -> list[str]:
        """Give what may come behind the declared pairs."""
        options = []
        for number, _, count in places:
            plan = self._plans[number]
            if not plan.is_counted or count >= plan.least:
                options.append('"}"')
            room = plan.most - count if plan.is_counted and plan.most is not None else None
            if plan.other and room != 0:
                follower = self._grammar.define(f"{COMMA} {plan.other}")
                more = self._grammar.repeat(follower, 0, None if room is None else room - 1)
                comma = "" if is_first else f"{COMMA} "
                options.append(f'{comma}{plan.other} {more} "}}"')
        return options

    def _pair(self, place: _Place) -> Pair | None:
        number, index, _ = place
        pairs = self._plans[number].pairs
        return pairs[index] if index < len(pairs) else None

    def _can_end(self, place: _Place) -> bool:
        """Tell whether an object may still get enough pairs, and need not get too many."""
        number, index, count = place
        plan = self._plans[number]
        if not plan.is_counted:
            return True
        rest = plan.pairs[index:]
        num_required = sum(pair.is_required for pair in rest)
        if plan.most is not None and count + num_required > plan.most:
            return False
        return count + len(rest) + (plan.other is not None) >= plan.least
