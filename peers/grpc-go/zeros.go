package main

import (
	"math/bits"
	"sync"

	pb "google.golang.org/grpc/interop/grpc_testing"
)

// Blocks of 1, 2, 4, … 64 Mi bytes, made once, of which payloads are slices.
var blocks [27]struct {
	once  sync.Once
	bytes []byte
}

// zeros is n bytes of zeros, shared with all other callers.
func zeros(n int) []byte {
	log2 := bits.Len(uint(max(n, 1) - 1))
	block := &blocks[log2]
	block.once.Do(func() {
		block.bytes = make([]byte, 1<<log2)
		// Memory as the kernel hands it out is one page of zeros all over, which never leaves the processor's cache:
		// sending it would be faster than sending anything real.
		for i := range block.bytes {
			block.bytes[i] = 1
		}
		clear(block.bytes)
	})
	return block.bytes[:n]
}

// payload is none for 0 bytes, so that an empty message is empty.
func payload(n int) *pb.Payload {
	if n == 0 {
		return nil
	}
	return &pb.Payload{Body: zeros(n)}
}
