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
	// Payload bytes that may await their replies.
	outstandingBytes = 1 << 20
	// Messages that may await their replies.
	outstandingMessagesMax = 4096
	// A stream of the largest messages is pipelined too.
	outstandingMessagesMin = 2
)

// One stream until the run is over. Its messages are timed from their hand-over to the reply with the same ordinal.
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
		// Of a stream without a message, because the run was over first, nothing counts.
		return err
	}
	shard := w.run.shard(w.index)
	shard.recorder.calls++
	shard.Unlock()
	return nil
}

// How many messages may await their replies.
func outstanding(size int) int64 {
	return int64(min(max(outstandingBytes/max(size, 1), outstandingMessagesMin), outstandingMessagesMax))
}

// sendAll ends when the run is over or the stream is.
func (w *worker) sendAll(ctx context.Context, stream grpc.BidiStreamingClient[pb.SimpleRequest, pb.SimpleResponse], p *pipeline) {
	request := request(w.size, w.size)
	sent := int64(0)
	for {
		nowNs := w.run.nowNs()
		start, count := w.run.start(nowNs, p.stride)
		if start == over {
			p.total.Store(sent)
			// How the stream ends, its receiver learns.
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
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if p.total.Load() == received {
				return nil
			}
			return errEndedEarly
		}
		if err == nil {
			err = checkSize(reply, w.size)
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

// timed is a stride whose first reply has come.
type timed struct {
	// When its first message was handed over; 0 when it was in the warm-up of a run by number.
	sentNs, receivedNs int64
	// Its replies so far.
	count int64
}

// All messages of a stride count with the latency of its first, and end with its last.
func (t *timed) record(w *worker, nowNs int64) {
	if t.sentNs > 0 && t.count > 0 && w.run.isMeasured(nowNs) {
		shard := w.run.shard(w.index)
		shard.record(t.receivedNs-t.sentNs, t.count, nowNs)
		shard.Unlock()
	}
}

// pipeline is what the sending and the receiving end of one stream know of each other.
type pipeline struct {
	window, stride int64
	received       atomic.Int64
	// Messages of the whole stream, once it has ended.
	total atomic.Int64
	// When the first message of each stride under way was handed over, 0 in the warm-up of a run by number.
	stampsNs []atomic.Int64
	// The sender has found the window full.
	waiting atomic.Bool
	wake    chan struct{}
}

func newPipeline(window, stride int64) *pipeline {
	p := &pipeline{window: window, stride: stride, wake: make(chan struct{}, 1)}
	// Strides under way: those that fill the window, the one begun and the one half answered.
	p.stampsNs = make([]atomic.Int64, window/stride+2)
	p.total.Store(math.MaxInt64)
	return p
}

func (p *pipeline) stamp(ordinal int64) *atomic.Int64 {
	return &p.stampsNs[ordinal/p.stride%int64(len(p.stampsNs))]
}

// receive says that there are so many replies. A waiting sender is woken at every quarter of the window: often enough to
// keep the stream full, seldom enough that messages still go out in batches.
func (p *pipeline) receive(count int64) {
	p.received.Store(count)
	if count%max(p.window/4, 1) == 0 && p.waiting.CompareAndSwap(true, false) {
		p.wake <- struct{}{}
	}
}

// room waits until another message may be sent after so many. False when the stream has ended.
func (p *pipeline) room(ctx context.Context, sent int64) bool {
	for sent-p.received.Load() >= p.window {
		p.waiting.Store(true)
		// A reply that came before the flag could be seen wakes nobody.
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
