"""The registry in the admin."""

from models_registry.admin import deployment, file, model, quota, users, version

__all__ = ["deployment", "file", "model", "quota", "users", "version"]
