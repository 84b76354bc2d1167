package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

// stopTime limits how long calls may take to notice that the server stops.
const stopTime = 500 * time.Millisecond

// serve runs until SIGTERM or SIGINT.
func serve(args []string) error {
	var addresses []address
	flags := newFlags("serve")
	flags.Func("listen", "HOST:PORT, unix:PATH or unix-abstract:NAME", func(text string) error {
		parsed, err := parseAddress(text)
		addresses = append(addresses, parsed)
		return err
	})
	variantFlag(flags)
	threadsFlag(flags)
	if _, err := parse(flags, args, 0); err != nil {
		return err
	}
	if len(addresses) == 0 {
		return misuse{errors.New("serve needs --listen ADDR")}
	}

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	listeners, err := listen(addresses)
	if err != nil {
		return err
	}
	server := grpc.NewServer(serverOptions()...)
	pb.RegisterBenchmarkServiceServer(server, service{})
	ended := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { ended <- server.Serve(listener) }()
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serving ended: %w", err)
	case <-signals:
	}
	stopped := make(chan struct{})
	go func() {
		// Closes the listeners first, which removes their files.
		server.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(stopTime):
	}
	return nil
}

// listen opens all listeners and then prints a line for each.
func listen(addresses []address) ([]net.Listener, error) {
	var listeners []net.Listener
	var lines strings.Builder
	for _, a := range addresses {
		listener, err := net.Listen(a.network, a.addr)
		if err != nil {
			for _, other := range listeners {
				other.Close()
			}
			return nil, fmt.Errorf("failed to listen on %s: %w", a.text, err)
		}
		listeners = append(listeners, listener)
		text := a.text
		if a.network == "tcp" {
			text = listener.Addr().String()
		}
		fmt.Fprintln(&lines, "listening on", text)
	}
	_, err := os.Stdout.WriteString(lines.String())
	return listeners, err
}
