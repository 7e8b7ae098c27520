"""What the document groups its routes by, in the order in which it shows them."""

from enum import StrEnum


class Tag(StrEnum):
    """A group of routes."""

    CHAT = "Chat"
    RESPONSES = "Responses"
    TEXT = "Completions"
    VECTORS = "Vectors"
    TOKENS = "Tokens and templates"
    MODELS = "Models"
    BATCHES = "Files and batches"
    IMPORTS = "Imports of models"
    RUNS = "Runs"
    SERVER = "Server"
    BELOW_A_MODEL = "Below a model's name"
