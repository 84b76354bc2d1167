module thalweg/hpack_peer

go 1.23.0

require golang.org/x/net v0.40.0
