"""The sources of the package."""

import ast
import collections
from pathlib import Path

import pytest

pytestmark = pytest.mark.thalweg_only

_PACKAGE = Path(__file__).resolve().parents[1] / "thalweg"


def _names(module):
    """Returns the names of the functions and classes that a module defines, each as often as it does."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node.name for node in ast.parse(module.read_text()).body if isinstance(node, kinds)]


@pytest.mark.parametrize("module", sorted(_PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(_PACKAGE)))
def test_functions_and_classes_are_defined_once(module):
    repeated = [name for name, count in collections.Counter(_names(module)).items() if count > 1]
    assert not repeated
