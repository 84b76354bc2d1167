// A peer of the laboratory: gRPC's BenchmarkService and a load generator, both on grpc-go, behind the contract of
// peers/README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"google.golang.org/grpc"
)

// The largest payload that is served or asked for: above the largest of any study.
const payloadBytesMax = 64 << 20

// What HTTP/2 is set up with, on both sides: bytes that a peer may send on one stream, and on all of a connection, before
// it must wait. Streams of 1.5 MB and 4 MiB are 1.1 to 1.5 times as fast with these as with the window that grpc-go
// estimates, and slower with 8 and 16 MiB. Larger read and write buffers, a shared write buffer, stream workers, no
// retries and no idle timeout made no difference that could be told from noise: they are as grpc-go has them.
const (
	streamWindow     = 1 << 20
	connectionWindow = 2 << 20
)

// misuse is an error in what was asked for: exit code 2, where others are 1.
type misuse struct{ error }

func main() {
	err := run(os.Args[1:])
	var bad misuse
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		fmt.Println("usage: peer version | variants | serve --listen ADDR... | load TARGET [flags]: see peers/README.md")
	case errors.As(err, &bad):
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	if len(words) == 0 {
		return misuse{errors.New("no command was given: version, variants, serve or load")}
	}
	command, words := words[0], words[1:]
	switch command {
	case "version", "variants":
		if len(words) > 0 {
			return misuse{fmt.Errorf("%s: `%s` is not understood", command, words[0])}
		}
		if command == "version" {
			fmt.Println("grpc-go", grpc.Version)
		} else {
			fmt.Println("server\nclient")
		}
		return nil
	case "serve":
		return serve(words)
	case "load":
		return load(words)
	case "help", "--help", "-h":
		return flag.ErrHelp
	default:
		return misuse{fmt.Errorf("there is no command `%s`: version, variants, serve or load", command)}
	}
}
