"""From functions and the way a model writes calls to the grammar that the calls must follow."""

from inference.text.tool_grammar.arguments import writes_text
from inference.text.tool_grammar.make import make_tool_grammar
from inference.text.tool_grammar.syntax import (
    CallSyntax,
    Function,
    JsonCall,
    NamedCall,
    ParameterCall,
    PythonCall,
    Reasoning,
    ToolGrammar,
)

__all__ = [
    "CallSyntax",
    "Function",
    "JsonCall",
    "NamedCall",
    "ParameterCall",
    "PythonCall",
    "Reasoning",
    "ToolGrammar",
    "make_tool_grammar",
    "writes_text",
]
