package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// The header that asks for the moments of a call at the server, and has them in the answer.
const timesHeader = "lab-times"

// now is by the clock that all processes of a machine share, ns.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// times are what the handler itself sees: bytes are the codec's, before and after.
func times(decoded, handled int64) string {
	return fmt.Sprintf("decoded=%d handled=%d", decoded, handled)
}
