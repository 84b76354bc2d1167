#!/bin/sh
# Lies as `peer` beside lognet.jar.
here=$(dirname "$(readlink -f "$0")")
exec java -jar "$here/lognet.jar" "$@"
