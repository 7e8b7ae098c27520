"""As what a deployment's weights are served: as they lie in the file, or converted."""

from models_registry.models import ModelVersion
from models_registry.models.profile import ProfileColumns


def describe_conversion(columns: ProfileColumns, version: ModelVersion | None) -> str:
    """Say that the weights are not served as they are in the file; empty where they are."""
    stored = str(version.facts.get("quantization", "")) if version else ""
    if not columns.weight_type or columns.weight_type == stored.lower():
        return ""
    file = f"the file is {stored}" if stored else "of what type the file is, is unknown"
    reason = ", converted for speed" if columns.weight_type == "q8_0" else ", converted"
    return f"Served as {columns.weight_type}{reason}; {file}."
