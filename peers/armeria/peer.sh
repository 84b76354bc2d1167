#!/bin/sh
# Installed as `peer` next to armeria.jar and lib/.
here=$(dirname "$(readlink -f "$0")")
exec java -cp "$here/armeria.jar:$here/lib/*" thalweg.Main "$@"
