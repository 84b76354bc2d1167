// A peer of the laboratory: gRPC's BenchmarkService and a load generator on grpc-go. Its command line and its JSON are
// those of `thalweg serve` and `thalweg load`, as far as it goes.
package main

import (
	"fmt"
	"os"

	"google.golang.org/grpc"
)

const usage = `usage: peer-grpc-go serve [--listen ADDR]
       peer-grpc-go load TARGET [--call unary] [--size BYTES] [-c IN_FLIGHT] [--connections N]
                         [-z DURATION | -n TOTAL] [--warmup DURATION] [-O text|json]
`

// Above the largest message of any study.
const messageBytesMax = 64 << 20

func main() {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "version":
		fmt.Println("grpc-go", grpc.Version)
	case len(os.Args) > 1 && os.Args[1] == "serve":
		err = serve(os.Args[2:])
	case len(os.Args) > 2 && os.Args[1] == "load":
		err = load(os.Args[2], os.Args[3:])
	default:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
