#!/bin/sh
# Installed as `peer` next to spring.jar.
here=$(dirname "$(readlink -f "$0")")
exec java -jar "$here/spring.jar" "$@"
