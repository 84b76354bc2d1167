package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	pb "google.golang.org/grpc/interop/grpc_testing"
)

// A client that used a larger share of its CPUs was itself the bottleneck.
const busyShareMax = 0.95

// load drives a server in a closed loop of workers, each with one call in flight.
func load(args []string) error {
	s, err := readSettings(args)
	if err != nil {
		return err
	}
	before := established()
	clients, err := connect(s)
	if err != nil {
		return err
	}
	if err := firstCall(s, clients[0]); err != nil {
		return err
	}
	result := supervise(s, clients)
	result.countConnections(before, established())
	if s.json {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(result)
	} else {
		_, err = fmt.Println(result)
	}
	if err == nil && result.Messages == 0 {
		err = errors.New("no call succeeded: " + result.firstNote())
	}
	return err
}

// firstCall makes a unary call of the run's size, so that a missing server is an error and not a run of failures.
func firstCall(s settings, client pb.BenchmarkServiceClient) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	response, err := client.UnaryCall(ctx, request(s.size, s.size))
	if err == nil {
		err = checkSize(response, s.size)
	}
	if err != nil {
		return fmt.Errorf("%s: the first call, grpc.testing.BenchmarkService/UnaryCall, ended with %s", s.target.text, described(err))
	}
	return nil
}

// supervise warms up and measures, in one run or in two.
func supervise(s settings, clients []pb.BenchmarkServiceClient) *loadResult {
	if !s.endsWithResponses() || s.warmup == 0 {
		return drive(s, clients)
	}
	measured := s
	measured.warmup = 0
	warmUp := measured
	warmUp.duration, warmUp.announce = s.warmup, false
	drive(warmUp, clients)
	result := drive(measured, clients)
	result.Settings.WarmupNs = int64(s.warmup)
	return result
}

// drive runs the workers, spread over the clients, until the run is over.
func drive(s settings, clients []pb.BenchmarkServiceClient) *loadResult {
	threads := runtime.GOMAXPROCS(0)
	began := time.Now()
	r := newRunState(s, threads)
	m := measuring{announced: s.announce}
	if s.warmup == 0 {
		m.begin()
	}
	workers := make([]*worker, s.inFlight)
	for i := range workers {
		workers[i] = newWorker(i, s, r, clients[i%len(clients)])
	}
	var crew sync.WaitGroup
	for _, w := range workers {
		crew.Go(w.repeat)
	}
	workersDone := make(chan struct{})
	go func() {
		crew.Wait()
		close(workersDone)
	}()

	warm := time.NewTimer(time.Until(began.Add(s.warmup)))
	// Nil, and thus never ready, if the last response ends the measured time.
	var window <-chan time.Time
	if lasts, known := r.measuredFor(); known {
		window = time.NewTimer(lasts).C
	}
	stuckCheck := time.NewTicker(min(max(s.timeout/4, time.Millisecond), 250*time.Millisecond))
	for working := true; working; {
		select {
		case <-warm.C:
			if !m.hasStarted {
				m.begin()
			}
		case <-window:
			m.end()
		case <-stuckCheck.C:
			for _, w := range workers {
				w.cancelIfStuck(s.timeout)
			}
		case <-workersDone:
			working = false
		}
	}

	// The other runs are measured until their last response.
	m.end()
	merged, took, drain := r.merged()
	cpu := m.cpu
	result := newResult(s, merged.recorder, began.Add(s.warmup), took, drain, cpu)
	if merged.firstFailure != "" {
		result.note("the first failed call ended with "+merged.firstFailure, false)
	}
	if cpu.UserNs+cpu.SystemNs > busyShareMax*float64(took)*float64(threads) {
		result.note("the client's processors were busy all the time: the client was the limit", true)
	}
	return result
}

// measuring is the measured time. It announces its start and end to observers of the processes.
type measuring struct {
	announced, hasStarted, ended bool
	before                       cpuTime
	// From its start to its end.
	cpu cpuTime
}

func (m *measuring) begin() {
	m.print("measuring")
	m.hasStarted = true
	m.before = cpuOfThisProcess()
}

// end has an effect only once.
func (m *measuring) end() {
	if m.ended {
		return
	}
	if !m.hasStarted {
		m.begin()
	}
	m.cpu = cpuOfThisProcess().minus(m.before)
	m.ended = true
	m.print("measured")
}

func (m *measuring) print(word string) {
	if m.announced {
		fmt.Println(word)
	}
}
