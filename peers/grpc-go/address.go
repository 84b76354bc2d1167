package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// address is HOST:PORT, unix:PATH or unix-abstract:NAME.
type address struct {
	text string
	// For Go's net package.
	network, addr string
}

func parseAddress(text string) (address, error) {
	if name, is := strings.CutPrefix(text, "unix-abstract:"); is && name != "" {
		return address{text, "unix", "@" + name}, nil
	}
	if path, is := strings.CutPrefix(text, "unix:"); is && path != "" {
		return address{text, "unix", path}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if _, number := strconv.ParseUint(port, 10, 16); err != nil || number != nil || host == "" {
		return address{}, fmt.Errorf("invalid address `%s`: expected HOST:PORT, unix:PATH or unix-abstract:NAME", text)
	}
	return address{text, "tcp", text}, nil
}

// grpcTarget returns the target for grpc-go's channels. TCP addresses bypass the resolver.
func (a address) grpcTarget() string {
	if a.network == "tcp" {
		return "passthrough:///" + a.text
	}
	return a.text
}
