#!/bin/sh
# Lies as `peer` beside spring.jar.
here=$(dirname "$(readlink -f "$0")")
exec java -jar "$here/spring.jar" "$@"
