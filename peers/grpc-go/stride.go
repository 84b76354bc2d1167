package main

// Streams read the clock once per stride. A reading takes about 40 ns, which is much of the cost of an empty message.
const (
	// Number of small messages that share one reading of the clock.
	strideMessages = 16
	// Messages with at least this many payload bytes are timed one by one.
	strideBytesMax = 4096
)

func stride(size int) int64 {
	if size < strideBytesMax {
		return strideMessages
	}
	return 1
}
