#!/bin/sh
# Lies as `peer` beside jvm-codec.jar and lib/.
here=$(dirname "$(readlink -f "$0")")
exec java -cp "$here/jvm-codec.jar:$here/lib/*" thalweg.Main "$@"
