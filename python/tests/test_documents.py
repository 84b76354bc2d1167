"""The guide names what there is, and the package has grpcio's public names."""

import json

import grpc
import grpc.aio
import processes
import pytest

pytestmark = pytest.mark.thalweg_only

#: Public names of grpcio that there are not, with the reason.
MISSING = {
    "grpc": {},
    "grpc.aio": {},
}


@pytest.mark.parametrize("module", sorted(MISSING))
def test_public_names_of_grpcio(module):
    source = (
        "import grpc, grpc.aio, json, sys\n"
        "module = sys.modules[sys.argv[1]]\n"
        "print(json.dumps(sorted(module.__all__)))\n"
    )
    theirs = set(json.loads(processes.check("grpcio", source, module)))
    ours = set(vars({"grpc": grpc, "grpc.aio": grpc.aio}[module]))
    assert theirs - ours == set(MISSING[module])


def test_star_import_has_the_same_names():
    source = "before = set(globals())\nfrom grpc import *\nprint(sorted(set(globals()) - before - {'before'}))\n"
    theirs, ours = (processes.check(name, source) for name in ("grpcio", "thalweg"))
    assert ours == theirs


def test_guide_has_all_options():
    import options_table

    assert options_table.written() == options_table.table()
