package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopTime limits how long calls may take to notice that the server stops.
const stopTime = 500 * time.Millisecond

// serveArgs holds the arguments of `serve`.
type serveArgs struct {
	addresses []address
	json      string
	variant   string
	threads   int
}

// newFlags returns a set of flags that reports errors in one line.
func newFlags(command string, a *serveArgs) *flag.FlagSet {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("listen", "HOST:PORT, unix:PATH or unix-abstract:NAME", func(text string) error {
		parsed, err := parseAddress(text)
		a.addresses = append(a.addresses, parsed)
		return err
	})
	flags.StringVar(&a.json, "json", "", "HOST:PORT")
	flags.Func("variant", "", func(text string) error {
		for _, known := range variants {
			if text == known {
				a.variant = text
				return nil
			}
		}
		return fmt.Errorf("the variants of its server are: %s", strings.Join(variants, ", "))
	})
	// Number of threads that run Go code; by default one per CPU.
	flags.Func("threads", "", func(text string) error {
		threads, err := strconv.Atoi(text)
		if err != nil || threads < 1 {
			return errors.New("a number from 1 on")
		}
		a.threads = threads
		runtime.GOMAXPROCS(threads)
		return nil
	})
	return flags
}

func parse(command string, args []string) (serveArgs, error) {
	var a serveArgs
	if len(variants) > 0 {
		a.variant = variants[0]
	}
	flags := newFlags(command, &a)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return a, err
	case err != nil:
		return a, misuse{err}
	case flags.NArg() > 0:
		return a, misuse{fmt.Errorf("%s: unexpected argument `%s`", command, flags.Arg(0))}
	case len(a.addresses) == 0 || a.json == "":
		return a, misuse{fmt.Errorf("%s needs --listen ADDR and --json HOST:PORT", command)}
	}
	return a, nil
}

// serve runs until SIGTERM or SIGINT.
func serve(args []string) error {
	a, err := parse("serve", args)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	var listeners []net.Listener
	var lines strings.Builder
	for _, addr := range a.addresses {
		listener, err := net.Listen(addr.network, addr.addr)
		if err != nil {
			closeAll(listeners)
			return fmt.Errorf("failed to listen on %s: %w", addr.text, err)
		}
		listeners = append(listeners, listener)
		text := addr.text
		if addr.network == "tcp" {
			text = listener.Addr().String()
		}
		fmt.Fprintln(&lines, "listening on", text)
	}
	ended := make(chan error, len(listeners)+1)
	stop, jsonAddress, err := start(a, listeners, ended)
	if err != nil {
		closeAll(listeners)
		return err
	}
	fmt.Fprintln(&lines, "json on", jsonAddress)
	if _, err := os.Stdout.WriteString(lines.String()); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serving ended: %w", err)
	case <-signals:
	}
	stopped := make(chan struct{})
	go func() {
		// Closes the listeners first, which removes their files.
		stop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(stopTime):
	}
	return nil
}

func closeAll(listeners []net.Listener) {
	for _, listener := range listeners {
		listener.Close()
	}
}

// HTTP/2 settings of Go's own server: bytes that a peer may send on a stream, and on a connection.
const (
	streamWindow     = 1 << 20
	connectionWindow = 2 << 20
	frameSizeMax     = 1 << 20
	bodySizeMax      = 64 << 20
)

// newServer serves HTTP/1.1, and HTTP/2 with prior knowledge, without TLS.
func newServer(handler http.Handler) *http.Server {
	server := &http.Server{Handler: handler, Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{
		MaxReceiveBufferPerStream:     streamWindow,
		MaxReceiveBufferPerConnection: connectionWindow,
		MaxReadFrameSize:              frameSizeMax,
	}}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	return server
}

// httpSettings returns the settings of the HTTP server, which both stacks share.
func httpSettings() [][3]string {
	return [][3]string{
		{"HTTP (http.Server.Protocols)", "HTTP/1.1, and HTTP/2 by prior knowledge", "without TLS, as all stacks"},
		{"HTTP/2 windows (http.HTTP2Config)", "1 MiB for a stream, 2 MiB for a connection", "as grpc-go has here"},
		{"HTTP/2 largest frame (http.HTTP2Config)", "1 MiB", "a message is cut into fewer"},
		{"threads (GOMAXPROCS)", strconv.Itoa(runtime.GOMAXPROCS(0)), "one for each processor of the process; --threads says otherwise"},
		{"compression", "off", ""},
		{"build", runtime.Version(), "go build as it is"},
	}
}
