#!/bin/sh
# Installed as `peer` next to jvm-codec.jar and lib/.
here=$(dirname "$(readlink -f "$0")")
exec java -cp "$here/jvm-codec.jar:$here/lib/*" thalweg.Main "$@"
