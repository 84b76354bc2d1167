package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	pb "google.golang.org/grpc/interop/grpc_testing"
)

// pauseAfterError keeps a server that rejects everything from being flooded.
const pauseAfterError = 10 * time.Millisecond

// worker has one call of one of the four types in flight.
type worker struct {
	index  int
	call   callType
	size   int
	run    *runState
	client pb.BenchmarkServiceClient
	// Time since when it has been waiting; 0 if it is not waiting.
	waitsSinceNs atomic.Int64

	// Ends the calls made until it is replaced.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// Guards cancel against the supervisor.
	mutex sync.Mutex
}

func newWorker(index int, s settings, run *runState, client pb.BenchmarkServiceClient) *worker {
	w := &worker{index: index, call: s.call, size: s.size, run: run, client: client}
	w.renew()
	return w
}

func (w *worker) renew() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
}

// cancelIfStuck ends the call of a worker that has waited too long for the same event.
func (w *worker) cancelIfStuck(patience time.Duration) {
	since := w.waitsSinceNs.Load()
	if since > 0 && w.run.nowNs()-since > int64(patience) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.cancel(unanswered(patience))
	}
}

func (w *worker) waits(nowNs int64) {
	w.waitsSinceNs.Store(max(nowNs, 1))
}

// repeat makes calls until the run is over.
func (w *worker) repeat() {
	calls := map[callType]func() error{
		unary: w.unary, clientStream: w.clientStream, serverStream: w.serverStream, bidiStream: w.bidiStream, pingPong: w.bidiStream,
	}
	call := calls[w.call]
	for !w.run.isOver() {
		w.waits(w.run.nowNs())
		err := call()
		w.waitsSinceNs.Store(0)
		w.run.callEnded()
		if err == nil {
			continue
		}
		timedOut := w.ctx.Err() != nil
		if timedOut {
			err = context.Cause(w.ctx)
			w.renew()
		}
		w.run.fail(w.index, err, timedOut)
		time.Sleep(pauseAfterError)
	}
}

// request returns a request of size bytes for a response of responseSize bytes. With 0 there is no payload: an empty
// message.
func request(size, responseSize int) *pb.SimpleRequest {
	return &pb.SimpleRequest{ResponseSize: int32(responseSize), Payload: payload(size)}
}

// unary makes unary calls until one fails. The end of a call is the start of the next, so that one reading of the clock
// serves both.
func (w *worker) unary() error {
	request := request(w.size, w.size)
	startedNs := w.run.nowNs()
	for {
		start, _ := w.run.start(startedNs, 1)
		if start == over {
			return nil
		}
		w.waits(startedNs)
		response, err := w.client.UnaryCall(w.ctx, request)
		if err == nil {
			err = checkSize(response, w.size)
		}
		if err != nil {
			return err
		}
		endedNs := w.run.nowNs()
		if w.run.counts(start, endedNs) {
			shard := w.run.shard(w.index)
			shard.record(endedNs-startedNs, 1, endedNs)
			shard.recorder.calls++
			shard.Unlock()
		}
		startedNs = endedNs
	}
}

// clientStream runs one stream of requests. Its messages count once the server's response has acknowledged all of them.
// Otherwise the stream is an error, however late it shows.
func (w *worker) clientStream() error {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	stream, err := w.client.StreamingFromClient(ctx)
	if err != nil {
		return err
	}
	sent, stride, request := newRecorder(w.run.measuredFrom()), stride(w.size), request(w.size, 0)
	startedNs := w.run.nowNs()
	hasStarted, complete := false, false
	for !complete {
		w.waits(startedNs)
		start, count := w.run.start(startedNs, stride)
		complete = start == over
		hasStarted = hasStarted || !complete
		for range count {
			if err = stream.Send(request); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
		nowNs := w.run.nowNs()
		if w.run.counts(start, nowNs) {
			sent.recordPace(nowNs-startedNs, count)
		}
		startedNs = nowNs
	}
	// If Send fails with EOF, this returns the reason.
	response, err := stream.CloseAndRecv()
	if err == nil && !complete {
		err = errEndedEarly
	}
	if err == nil {
		err = checkSize(response, 0)
	}
	if err != nil || !hasStarted {
		// A stream without a message, because the run was over first, does not count.
		return err
	}
	endedNs := w.run.nowNs()
	shard := w.run.shard(w.index)
	defer shard.Unlock()
	if sent.messages > 0 {
		shard.recorder.merge(sent)
		shard.lastNs = max(shard.lastNs, endedNs)
	}
	shard.recorder.calls++
	return nil
}

// serverStream runs one stream of responses, cancelled when the run is over.
func (w *worker) serverStream() error {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	stride := stride(w.size)
	startedNs := w.run.nowNs()
	start, count := w.run.start(startedNs, stride)
	if start == over {
		return nil
	}
	stream, err := w.client.StreamingFromServer(ctx, request(0, w.size))
	if err != nil {
		return err
	}
	for start != over {
		received := int64(0)
		for received < count {
			var response *pb.SimpleResponse
			if response, err = stream.Recv(); err == nil {
				err = checkSize(response, w.size)
			} else if errors.Is(err, io.EOF) {
				err = errEndedEarly
			}
			if err != nil {
				break
			}
			received++
		}
		nowNs := w.run.nowNs()
		if received > 0 && w.run.counts(start, nowNs) {
			shard := w.run.shard(w.index)
			shard.recorder.recordPace(nowNs-startedNs, received)
			shard.lastNs = max(shard.lastNs, nowNs)
			shard.Unlock()
		}
		if err != nil {
			return err
		}
		w.waits(nowNs)
		startedNs = nowNs
		start, count = w.run.start(nowNs, stride)
	}
	shard := w.run.shard(w.index)
	shard.recorder.calls++
	shard.Unlock()
	return nil
}
