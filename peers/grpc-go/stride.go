package main

// When the clock is read on a stream: reading it takes some 40 ns, much of what an empty message costs.
const (
	// How many small messages of a stream share one reading of the clock.
	strideMessages = 16
	// Messages of at least this many bytes of payload are timed one by one.
	strideBytesMax = 4096
)

func stride(size int) int64 {
	if size < strideBytesMax {
		return strideMessages
	}
	return 1
}
