#!/bin/sh
# Lies as `peer` beside build/ and root/, the Debian that has its libraries. Their own loader starts the program, so
# that it is a process of this machine like any other, which needs no chroot and no root.
here=$(dirname "$(readlink -f "$0")")
for loader in "$here"/root/usr/lib/*/ld-linux-*.so.*; do
  libraries=$(dirname "$loader")
  # libproxy, a part of Qt Network, has a library in a folder that it knows by its absolute path.
  exec "$loader" --library-path "$libraries:$libraries/libproxy" "$here/build/peer" "$@"
done
