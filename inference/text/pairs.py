"""How do a query and a document become the one input that a reranking model scores?"""

import re
from collections.abc import Sequence
from typing import Protocol

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.text import JoinPairs, PairLayout
from inference.text.chat_template import ControlMarkers, Vocabulary

MAX_TOKENS = 2_000_000
"""Tokens of all pairs of a request: a long query, repeated for each document, makes many of few."""

_PLACES = re.compile(r"\{(query|document)\}")

Tokens = tuple[int, ...]


class PairVocabulary(Vocabulary, Protocol):
    """What joining needs of a loaded model."""

    def pair_layout(self) -> PairLayout:
        """Tell what stands around a query and a document."""


class PairJoiner:
    """Joins pairs for one loaded model; safe to use from many threads."""

    def __init__(self, vocabulary: PairVocabulary) -> None:
        self._vocabulary = vocabulary
        self._layout = vocabulary.pair_layout()
        self._markers = ControlMarkers(vocabulary.control_tokens())

    def join(self, question: JoinPairs) -> tuple[Tokens, ...]:
        """Give the tokens of each pair; raises EngineError for more than anybody can compute.

        Pairs stay too long whose query leaves no room for the document.
        """
        query = self._tokenize(question.query)
        self._check_query(query)
        pairs: list[Tokens] = []
        num_left = MAX_TOKENS
        for document in question.documents:
            if self._layout.template:
                pair = self._fill_template(question.query, document, question.max_tokens)
            else:
                pair = self._lay_out(query, self._tokenize(document), question.max_tokens)
            pairs.append(pair)
            num_left -= len(pair)
            if num_left < 0:
                raise EngineError(
                    ErrorCode.INVALID_PROMPT,
                    f"The pairs have more than {MAX_TOKENS} tokens together: send fewer documents "
                    "in a request.",
                    param="documents",
                )
        return tuple(pairs)

    def _check_query(self, query: Tokens) -> None:
        """Refuse a query that no pair could hold before it is repeated for each document."""
        limit = self._vocabulary.facts().context_length
        if len(query) > limit:
            raise EngineError(
                ErrorCode.CONTEXT_LENGTH_EXCEEDED,
                f"The query has {len(query)} tokens; the model takes at most {limit} for query and "
                "document together.",
                param="query",
            )

    def _lay_out(self, query: Tokens, document: Tokens, max_tokens: int) -> Tokens:
        layout = self._layout
        head = (*layout.before, *query, *layout.between)
        if max_tokens:
            document = document[: max(0, max_tokens - len(head) - len(layout.after))]
        return (*head, *document, *layout.after)

    def _fill_template(self, query: str, document: str, max_tokens: int) -> Tokens:
        """Shorten the document until the pair fits: its text is tokenized with what is around."""
        tokens = self._tokenize_filled(query, document)
        while max_tokens and len(tokens) > max_tokens and document:
            num_own = max(1, len(self._tokenize(document)))
            kept = max(0, num_own - (len(tokens) - max_tokens))
            document = document[: min(len(document) - 1, len(document) * kept // num_own)]
            tokens = self._tokenize_filled(query, document)
        return tokens

    def _tokenize_filled(self, query: str, document: str) -> Tokens:
        shield = self._markers.shield()
        texts = {"query": shield.hide(query), "document": shield.hide(document)}
        filled = _PLACES.sub(lambda place: str(texts[place[1]]), self._layout.template)
        return self._tokenize_pieces(shield.split(filled))

    def _tokenize_pieces(self, pieces: Sequence[tuple[str, bool]]) -> Tokens:
        tokens: list[int] = []
        for text, is_plain in pieces:
            tokens += self._vocabulary.tokenize(text, add_special=False, parse_special=not is_plain)
        return tuple(tokens)

    def _tokenize(self, text: str) -> Tokens:
        return tuple(self._vocabulary.tokenize(text, add_special=False, parse_special=False))
