// A peer of the lab: gRPC's BenchmarkService and a load generator on grpc-go. Follows the contract of peers/README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"google.golang.org/grpc"
)

// payloadBytesMax is the largest payload served or requested; above the largest of any study.
const payloadBytesMax = 64 << 20

// misuse is an error in the arguments: exit code 2. Other errors have exit code 1.
type misuse struct{ error }

func main() {
	err := run(os.Args[1:])
	var bad misuse
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		fmt.Println("usage: peer version | variants | settings | serve --listen ADDR... | load TARGET [flags] | fleet ADDRESS,ADDRESS [flags]: see peers/README.md")
	case errors.As(err, &bad):
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return misuse{errors.New("no command was given: version, variants, settings, serve, load or fleet")}
	}
	command, args := args[0], args[1:]
	switch command {
	case "version", "variants", "settings":
		if len(args) > 0 {
			return misuse{fmt.Errorf("%s: unexpected argument `%s`", command, args[0])}
		}
		switch command {
		case "version":
			fmt.Println("grpc-go", grpc.Version)
		case "variants":
			fmt.Println("server\nclient")
		default:
			printStackSettings()
		}
		return nil
	case "serve":
		return serve(args)
	case "load":
		return load(args)
	case "fleet":
		return fleet(args)
	case "help", "--help", "-h":
		return flag.ErrHelp
	default:
		return misuse{fmt.Errorf("unknown command `%s`; use version, variants, settings, serve, load or fleet", command)}
	}
}
