#!/bin/sh
# Installed as `peer` next to build/ and root/, the Debian system with its libraries. That system's loader starts the
# program, so that it is a normal process of this machine, without chroot or root rights.
here=$(dirname "$(readlink -f "$0")")
for loader in "$here"/root/usr/lib/*/ld-linux-*.so.*; do
  libraries=$(dirname "$loader")
  # libproxy, a part of Qt Network, refers to a library by an absolute folder.
  exec "$loader" --library-path "$libraries:$libraries/libproxy" "$here/build/peer" "$@"
done
