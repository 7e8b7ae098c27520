"""The registry's tables: what may be served, in which versions, from which files, and how."""

from models_registry.models.adapter import DeploymentAdapter
from models_registry.models.deployment import Deployment, DeploymentState
from models_registry.models.file import FileRole, ModelFile, VersionFile
from models_registry.models.incoming import ImportState, ModelImport, Upload, UploadState
from models_registry.models.model import Model, ModelAlias
from models_registry.models.quota import UploadQuota
from models_registry.models.version import ModelVersion, VersionState

__all__ = [
    "Deployment",
    "DeploymentAdapter",
    "DeploymentState",
    "FileRole",
    "ImportState",
    "Model",
    "ModelAlias",
    "ModelFile",
    "ModelImport",
    "ModelVersion",
    "Upload",
    "UploadQuota",
    "UploadState",
    "VersionFile",
    "VersionState",
]
