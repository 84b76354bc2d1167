// Independent readers of the metrics that `thalweg load` exports while it runs.
//
// metrics collector CONFIG: an OpenTelemetry Collector with the receiver of OTLP and the exporter that writes files.
// metrics scrape URL ACCEPT: reads an exposition as Prometheus does, and lints it as `promtool check metrics` does.
// Prints the samples as JSON; otherwise prints the errors, one per line, and exits with 1.
package main

import (
	"fmt"
	"os"
)

func main() {
	var faults []string
	switch arguments := os.Args[1:]; {
	case len(arguments) == 2 && arguments[0] == "collector":
		faults = collect(arguments[1])
	case len(arguments) == 3 && arguments[0] == "scrape":
		faults = scrape(arguments[1], arguments[2])
	default:
		fmt.Fprintln(os.Stderr, "usage: metrics collector CONFIG | metrics scrape URL ACCEPT")
		os.Exit(2)
	}
	for _, fault := range faults {
		fmt.Fprintln(os.Stderr, fault)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}
