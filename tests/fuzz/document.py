"""The API's description with its choices narrowed, so that more of what is made up is right."""

from typing import Any

MODELS = ["chat", "embed", "rank"]
# Of what is seldom right by chance: something right, something wrong, and mostly nothing.
SELDOM: dict[str, list[Any]] = {
    "grammar": [None, None, 'root ::= "a" | "b" root', "root ::= ("],
    "json_schema": [None, None, {"type": "integer"}, {"not": {}}],
    "response_format": [None, None, {"type": "text"}, {"type": "json_object"}],
    "structured_outputs": [None, None, None, {"choice": ["a", "b"]}],
    "guided_json": [None],
    "guided_regex": [None, None, None, "[ab]+"],
    "guided_choice": [None],
    "guided_grammar": [None],
    "grammar_lazy": [None, None, False, True],
    "grammar_triggers": [None, None, [{"type": "word", "value": "a"}]],
    "plugins": [None, None, None, [{"name": "nothing"}]],
    "lora": [None, None, [], [{"id": 0, "scale": 1}]],
    "logit_bias": [None, None, {"5": -1.5}, [["a", False]]],
    "samplers": [None, None, ["top_k", "temperature"], "kt", ["nothing"]],
    "sampler_seq": [None, None, "kt"],
    "min_tokens": [None, None, 0, 3],
    "max_tokens": [None, 0, 1, 5],
    "max_completion_tokens": [None, 1, 5],
    "max_output_tokens": [None, 1, 5],
    "n_predict": [None, 0, 1, 5],
    "prompt_logprobs": [None, None, 0, 2],
    "suffix": [None, None, None, "x"],
    "truncate_prompt_tokens": [None, None, -1, 8],
    "tools": [None, None, []],
    "functions": [None],
    "model": MODELS,
}
# A 503 where no slot is free is what ``fail_on_no_slot`` asks for.
_QUERIES = {"model": [*MODELS, ""], "fail_on_no_slot": [""]}
_REQUIRED_NUMBERS = {"max_tokens": [0, 1, 5]}


def narrow(document: dict[str, Any]) -> dict[str, Any]:
    """Narrow the fields of requests, and the names of models in addresses."""
    for name, schema in document["components"]["schemas"].items():
        if name.endswith("Request"):
            _narrow_fields(schema)
    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path" and parameter["name"] in ("model", "name"):
                    parameter["schema"] = {"enum": MODELS}
                if parameter["in"] == "query" and parameter["name"] in _QUERIES:
                    parameter["schema"] = {"enum": _QUERIES[parameter["name"]]}
    return document


def _narrow_fields(schema: dict[str, Any]) -> None:
    required = schema.get("required", ())
    for field in schema["properties"]:
        if field in required and field in _REQUIRED_NUMBERS:
            schema["properties"][field] = {"enum": _REQUIRED_NUMBERS[field]}
        elif field in SELDOM:
            schema["properties"][field] = {"enum": SELDOM[field]}
