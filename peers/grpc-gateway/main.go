// A peer of the lab that serves its Echo as gRPC and as JSON. Follows the contract of peers/README.md. The stack is in
// stack.go; connect-go uses the other files too.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

// misuse is an error in the arguments: exit code 2. Other errors have exit code 1.
type misuse struct{ error }

func main() {
	err := run(os.Args[1:])
	var bad misuse
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		fmt.Println("usage: peer version | variants | settings | serve --listen ADDR... --json HOST:PORT: see peers/README.md")
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
		return misuse{errors.New("no command was given: version, variants, settings or serve")}
	}
	command, args := args[0], args[1:]
	switch command {
	case "version", "variants", "settings":
		if len(args) > 0 {
			return misuse{fmt.Errorf("%s: unexpected argument `%s`", command, args[0])}
		}
		switch command {
		case "version":
			fmt.Println(version())
		case "variants":
			fmt.Println(strings.TrimSpace("server " + strings.Join(variants, " ")))
			fmt.Println("client")
			fmt.Println("json", strings.Join(speaks, " "))
		default:
			for _, line := range settings() {
				fmt.Println("server\t" + strings.Join(line[:], "\t"))
			}
		}
		return nil
	case "serve":
		return serve(args)
	case "help", "--help", "-h":
		return flag.ErrHelp
	default:
		return ownCommand(command, args)
	}
}
