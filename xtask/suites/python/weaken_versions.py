"""Copies a program and marks the library versions that it needs as weak: the loader then starts the copy with an older
library. Functions that are really missing must be preloaded.

    weaken_versions.py PROGRAM COPY
"""

import sys

import lief

program = lief.parse(sys.argv[1])
for library in program.symbols_version_requirement:
    for version in library.get_auxiliary_symbols():
        version.flags = 2  # VER_FLG_WEAK
program.write(sys.argv[2])
