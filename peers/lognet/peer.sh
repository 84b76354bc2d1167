#!/bin/sh
# Installed as `peer` next to lognet.jar.
here=$(dirname "$(readlink -f "$0")")
exec java -jar "$here/lognet.jar" "$@"
