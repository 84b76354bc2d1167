package main

import (
	"context"
	"errors"
	"io"
	"math"
	"sync/atomic"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

const (
	// Maximum payload bytes awaiting replies.
	outstandingBytes = 1 << 20
	// Maximum messages awaiting replies.
	outstandingMessagesMax = 4096
	// Streams of the largest messages are pipelined too.
	outstandingMessagesMin = 2
)

// bidiStream runs one stream until the run is over. A message's latency is from hand-over to the reply with the same
// ordinal.
func (w *worker) bidiStream() error {
	ctx, cancel := context.WithCancel(w.ctx)
	stream, err := w.client.StreamingCall(ctx)
	if err != nil {
		cancel()
		return err
	}
	p := newPipeline(outstanding(w.size), stride(w.size))
	if w.call == pingPong {
		// Each round trip is timed.
		p = newPipeline(1, 1)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		w.sendAll(ctx, stream, p)
	}()
	err = w.receiveAll(stream, p)
	cancel()
	<-sent
	if err != nil || p.received.Load() == 0 {
		// A stream without a message, because the run was over first, does not count.
		return err
	}
	shard := w.run.shard(w.index)
	shard.recorder.calls++
	shard.Unlock()
	return nil
}

// outstanding returns the maximum number of messages awaiting replies.
func outstanding(size int) int64 {
	return int64(min(max(outstandingBytes/max(size, 1), outstandingMessagesMin), outstandingMessagesMax))
}

// sendAll sends until the run or the stream is over.
func (w *worker) sendAll(ctx context.Context, stream grpc.BidiStreamingClient[pb.SimpleRequest, pb.SimpleResponse], p *pipeline) {
	request := request(w.size, w.size)
	sent := int64(0)
	for {
		nowNs := w.run.nowNs()
		start, count := w.run.start(nowNs, p.stride)
		if start == over {
			p.total.Store(sent)
			// The receiver learns how the stream ends.
			_ = stream.CloseSend()
			return
		}
		stampNs := int64(0)
		if start == counted {
			stampNs = max(nowNs, 1)
		}
		p.stamp(sent).Store(stampNs)
		for range count {
			if !p.room(ctx, sent) || stream.Send(request) != nil {
				return
			}
			sent++
		}
		if !p.room(ctx, sent) {
			return
		}
	}
}

func (w *worker) receiveAll(stream grpc.BidiStreamingClient[pb.SimpleRequest, pb.SimpleResponse], p *pipeline) error {
	received, timed := int64(0), timed{}
	defer func() { timed.record(w, w.run.nowNs()) }()
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if p.total.Load() == received {
				return nil
			}
			return errEndedEarly
		}
		if err == nil {
			err = checkSize(response, w.size)
		}
		if err != nil {
			return err
		}
		if received%p.stride == 0 {
			nowNs := w.run.nowNs()
			timed.record(w, nowNs)
			timed.sentNs, timed.receivedNs, timed.count = p.stamp(received).Load(), nowNs, 0
			w.waits(nowNs)
		}
		timed.count++
		received++
		p.receive(received)
	}
}

// timed is a stride whose first reply has arrived.
type timed struct {
	// Hand-over time of its first message; 0 during the warm-up of a run by number.
	sentNs, receivedNs int64
	// Replies so far.
	count int64
}

// record records the latency of the stride's first message for all of its messages, at the end of the last.
func (t *timed) record(w *worker, nowNs int64) {
	if t.sentNs > 0 && t.count > 0 && w.run.isMeasured(nowNs) {
		shard := w.run.shard(w.index)
		shard.record(t.receivedNs-t.sentNs, t.count, nowNs)
		shard.Unlock()
	}
}

// pipeline is the state shared by the sender and the receiver of a stream.
type pipeline struct {
	window, stride int64
	received       atomic.Int64
	// Messages of the whole stream, once it has ended.
	total atomic.Int64
	// Hand-over time of the first message of each stride in flight; 0 during the warm-up of a run by number.
	stampsNs []atomic.Int64
	// The sender has found the window full.
	waiting atomic.Bool
	wake    chan struct{}
}

func newPipeline(window, stride int64) *pipeline {
	p := &pipeline{window: window, stride: stride, wake: make(chan struct{}, 1)}
	// Strides in flight: those that fill the window, the current one and the partly answered one.
	p.stampsNs = make([]atomic.Int64, window/stride+2)
	p.total.Store(math.MaxInt64)
	return p
}

func (p *pipeline) stamp(ordinal int64) *atomic.Int64 {
	return &p.stampsNs[ordinal/p.stride%int64(len(p.stampsNs))]
}

// receive records count replies in total. It wakes a waiting sender at every quarter of the window: often enough to
// keep the stream full, rarely enough that messages still go out in batches.
func (p *pipeline) receive(count int64) {
	p.received.Store(count)
	if count%max(p.window/4, 1) == 0 && p.waiting.CompareAndSwap(true, false) {
		p.wake <- struct{}{}
	}
}

// room waits until another message may be sent after sent. It returns false when the stream has ended.
func (p *pipeline) room(ctx context.Context, sent int64) bool {
	for sent-p.received.Load() >= p.window {
		p.waiting.Store(true)
		// A reply that came before the flag was visible wakes nobody.
		if sent-p.received.Load() < p.window && p.waiting.CompareAndSwap(true, false) {
			return true
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
