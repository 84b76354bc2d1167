package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testing "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// When callers stop.
type end struct {
	time time.Time
	// Calls that are still to be started, over all callers.
	left atomic.Int64
}

func (e *end) mayStart() bool {
	return time.Now().Before(e.time) && e.left.Add(-1) >= 0
}

// What one caller found. Latencies are kept whole: a run of this peer is short.
type record struct {
	latencies []int64
	errors    map[string]int
}

func load(target string, words []string) error {
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	call := flags.String("call", "unary", "unary is the only one yet")
	size := flags.Int("size", 0, "payload bytes of a message, each way")
	inFlight := flags.Int("c", 1, "calls in flight over all connections")
	connections := flags.Int("connections", 1, "connections")
	duration := flags.Duration("z", 5*time.Second, "how long to measure")
	total := flags.Int64("n", 0, "how many calls to measure")
	warmup := flags.Duration("warmup", time.Second, "driven before, not counted")
	format := flags.String("O", "text", "text or json")
	flags.Parse(words)
	if *call != "unary" || *inFlight < 1 || *connections < 1 {
		return errors.New("this peer makes unary calls only, on at least one connection and one in flight")
	}

	clients, err := connect(target, *connections)
	if err != nil {
		return err
	}
	request := &testing.SimpleRequest{ResponseSize: int32(*size), Payload: payload(*size)}
	if *warmup > 0 {
		drive(clients, *inFlight, request, until(*warmup, 0))
	}
	cpuBefore := cpuNs()
	start := time.Now()
	found := drive(clients, *inFlight, request, until(*duration, *total))
	took := time.Since(start)
	cpu := cpuNs()
	print(found, took, [2]float64{cpu[0] - cpuBefore[0], cpu[1] - cpuBefore[1]}, *format == "json", *connections)
	if len(found.latencies) == 0 {
		return errors.New("every call failed")
	}
	return nil
}

// A channel of grpc-go never shares its connection with another.
func connect(target string, connections int) ([]testing.BenchmarkServiceClient, error) {
	var clients []testing.BenchmarkServiceClient
	for range connections {
		channel, err := grpc.NewClient(target,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(messageBytesMax)))
		if err != nil {
			return nil, err
		}
		client := testing.NewBenchmarkServiceClient(channel)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, err = client.UnaryCall(ctx, &testing.SimpleRequest{})
		cancel()
		if err != nil {
			return nil, err
		}
		clients = append(clients, client)
	}
	return clients, nil
}

func until(duration time.Duration, total int64) *end {
	e := &end{time: time.Now().Add(duration)}
	e.left.Store(math.MaxInt64)
	if total > 0 {
		e.time = time.Now().Add(24 * time.Hour)
		e.left.Store(total)
	}
	return e
}

func drive(clients []testing.BenchmarkServiceClient, inFlight int, request *testing.SimpleRequest, e *end) record {
	records := make([]record, inFlight)
	var callers sync.WaitGroup
	for i := range records {
		callers.Go(func() {
			client := clients[i%len(clients)]
			records[i].errors = map[string]int{}
			for e.mayStart() {
				start := time.Now()
				_, err := client.UnaryCall(context.Background(), request)
				if err != nil {
					records[i].errors[status.Code(err).String()]++
					continue
				}
				records[i].latencies = append(records[i].latencies, time.Since(start).Nanoseconds())
			}
		})
	}
	callers.Wait()
	all := record{errors: map[string]int{}}
	for _, one := range records {
		all.latencies = append(all.latencies, one.latencies...)
		for code, count := range one.errors {
			all.errors[code] += count
		}
	}
	slices.Sort(all.latencies)
	return all
}

// The keys that measurements compare, as in the schema thalweg.load/1.
func print(found record, took time.Duration, cpu [2]float64, asJSON bool, connections int) {
	calls := len(found.latencies)
	percentile := func(p float64) int64 {
		if calls == 0 {
			return 0
		}
		return found.latencies[min(calls-1, int(p/100*float64(calls)))]
	}
	rate := float64(calls) / took.Seconds()
	if !asJSON {
		fmt.Printf("%.0f calls/s, p50 %d ns, p99 %d ns, errors %v\n", rate, percentile(50), percentile(99), found.errors)
		return
	}
	result := map[string]any{
		"schema":      "thalweg.load/1",
		"duration_ns": took.Nanoseconds(),
		"closed_loop": true,
		"rate_per_s":  rate,
		"calls":       calls,
		"messages":    calls,
		"errors":      found.errors,
		"client_cpu":  map[string]any{"user_ns": cpu[0], "system_ns": cpu[1]},
		"connections": map[string]any{"asked": connections, "established": nil},
		"latency_ns":  nil,
	}
	if calls > 0 {
		result["latency_ns"] = map[string]any{
			"min": found.latencies[0], "p50": percentile(50), "p90": percentile(90), "p99": percentile(99),
			"p99_9": percentile(99.9), "p99_99": percentile(99.99), "max": found.latencies[calls-1],
		}
		result["client_cpu_per_call"] = map[string]any{
			"user_ns": cpu[0] / float64(calls), "system_ns": cpu[1] / float64(calls),
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	encoder.Encode(result)
}

// User and system time of this process so far.
func cpuNs() [2]float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return [2]float64{float64(usage.Utime.Nano()), float64(usage.Stime.Nano())}
}
