package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// timesHeader asks for the timestamps of a call on the server, and contains them in the response.
const timesHeader = "lab-times"

// now reads the clock that all processes of a machine share, in ns.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// times formats the handler's own times; the codec handles the bytes before and after.
func times(decoded, handled int64) string {
	return fmt.Sprintf("decoded=%d handled=%d", decoded, handled)
}
