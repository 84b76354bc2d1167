"""Makes this package the module `grpc` of the process."""

import importlib
import importlib.machinery
import importlib.util
import re
import sys
from types import ModuleType
from typing import Any, Iterable, Optional, Sequence

_REAL = "thalweg.grpc"
_ALIAS = "grpc"

#: Private modules of grpcio that other packages import names from, and the modules here that have these names.
_ELSEWHERE = {
    "grpc.aio._base_call": "thalweg.grpc.aio",
    "grpc.aio._base_channel": "thalweg.grpc.aio",
    "grpc.aio._base_server": "thalweg.grpc.aio",
    "grpc.aio._call": "thalweg.grpc.aio",
    "grpc.aio._interceptor": "thalweg.grpc.aio",
}


def install() -> None:
    """Makes `import grpc` import this package, in the whole process, and `grpc.aio` and so on its modules.

    Call it before anything imports `grpc`. Calling it again does nothing. Child processes that are not made by `fork`
    (`multiprocessing` with `spawn` or `forkserver`) have to call it, too; a call at the top of the main module does,
    since they run that module again.

    Packages that ask `importlib.metadata` for the version of grpcio get `thalweg.grpc.__version__`, the version of
    grpcio whose interface this is, whether grpcio is installed or not.

    Raises:
        RuntimeError: grpcio was imported before.
    """
    package = sys.modules[_REAL]
    present = sys.modules.get(_ALIAS)
    if present is package:
        return
    if present is not None:
        raise RuntimeError("grpcio is already imported; call thalweg.grpc.install() before the first `import grpc`")
    sys.meta_path.insert(0, _Finder())
    sys.modules[_ALIAS] = package
    prefix = _REAL + "."
    for name, module in list(sys.modules.items()):
        if name.startswith(prefix):
            sys.modules[_ALIAS + "." + name[len(prefix) :]] = module


class _Finder:
    """Finds `grpc.x` as `thalweg.grpc.x`, and the distribution `grpcio`.

    It has no abstract base class: that and `importlib.metadata` would add a third to the time of `import thalweg.grpc`.
    """

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """Returns how to import a module of the alias; None for others."""
        if not fullname.startswith(_ALIAS + "."):
            return None
        real = _ELSEWHERE.get(fullname, _REAL + fullname[len(_ALIAS) :])
        found = importlib.util.find_spec(real)
        if found is None:
            return None
        is_package = found.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(fullname, _Loader(real), origin=found.origin, is_package=is_package)

    def invalidate_caches(self) -> None:
        """Does nothing: there are none."""

    def find_distributions(self, context: Any = None) -> Iterable[Any]:
        """Returns the distribution `grpcio`, if it is asked for by name."""
        name = getattr(context, "name", None)
        if name is not None and re.sub(r"[-_.]+", "-", name).lower() == "grpcio":
            return (_grpcio(),)
        return ()


class _Loader:
    """Imports a module by its real name."""

    def __init__(self, real: str) -> None:
        self._real = real
        self._spec: Any = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Returns the module itself, so that there is no second copy of it."""
        module = importlib.import_module(self._real)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restores the module's specification, which the import system has replaced by the alias."""
        module.__spec__ = self._spec


def _grpcio() -> Any:
    """Returns the distribution grpcio, as far as its version goes."""
    import importlib.metadata

    class Grpcio(importlib.metadata.Distribution):
        """The distribution grpcio."""

        def read_text(self, filename: str) -> Optional[str]:
            """Returns the metadata; there are no other files."""
            if filename != "METADATA":
                return None
            version = sys.modules[_REAL].__version__
            return f"Metadata-Version: 2.1\nName: grpcio\nVersion: {version}\nSummary: thalweg.grpc in place of grpcio\n"

        def locate_file(self, path: Any) -> Any:
            """Raises: there are no files."""
            raise FileNotFoundError(f"grpcio is replaced by thalweg.grpc, which has no file {path}")

    return Grpcio()
