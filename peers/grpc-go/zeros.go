package main

import (
	"math/bits"
	"sync"

	pb "google.golang.org/grpc/interop/grpc_testing"
)

// blocks of 1, 2, 4, … 64 Mi bytes, created once; payloads are slices of them.
var blocks [27]struct {
	once  sync.Once
	bytes []byte
}

// zeros returns n zero bytes, shared by all callers.
func zeros(n int) []byte {
	log2 := bits.Len(uint(max(n, 1) - 1))
	block := &blocks[log2]
	block.once.Do(func() {
		block.bytes = make([]byte, 1<<log2)
		// Fresh memory from the kernel is one shared page of zeros, which stays in the CPU cache. Sending it would be
		// faster than sending real data.
		for i := range block.bytes {
			block.bytes[i] = 1
		}
		clear(block.bytes)
	})
	return block.bytes[:n]
}

// payload returns nil for 0 bytes, so that an empty message is empty.
func payload(n int) *pb.Payload {
	if n == 0 {
		return nil
	}
	return &pb.Payload{Body: zeros(n)}
}
