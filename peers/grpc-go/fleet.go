package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/leastrequest"       // Registers the policy.
	_ "google.golang.org/grpc/balancer/weightedroundrobin" // Registers the policy.
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	_ "google.golang.org/grpc/xds" // Registers outlier_detection_experimental.
)

const (
	fleetDeadline = 20 * time.Second
	slowCall      = time.Second

	fleetKeepaliveTimeout = 2 * time.Second
)

// fleetSettings are the settings of `peer fleet`.
type fleetSettings struct {
	servers       string
	isName        bool
	seconds       float64
	callers       int
	pause         time.Duration
	serviceConfig string
	keepalive     time.Duration
}

// fleet calls several servers over one balanced channel, and prints one line of JSON: what the calls experienced.
func fleet(args []string) error {
	s, err := readFleetSettings(args)
	if err != nil {
		return err
	}
	channel, err := s.channel()
	if err != nil {
		return err
	}
	defer channel.Close()
	client := pb.NewBenchmarkServiceClient(channel)
	stopped := make(chan struct{})
	calls := make([]*fleetCalls, s.callers)
	var crew sync.WaitGroup
	for i := range calls {
		calls[i] = newFleetCalls()
		crew.Go(func() { calls[i].repeat(client, s.pause, stopped) })
	}
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	select {
	case <-terminate:
	case <-time.After(time.Duration(s.seconds * float64(time.Second))):
	}
	close(stopped)
	crew.Wait()
	merged := newFleetCalls()
	for _, c := range calls {
		merged.merge(c)
	}
	return json.NewEncoder(os.Stdout).Encode(merged.result())
}

func readFleetSettings(args []string) (fleetSettings, error) {
	s := fleetSettings{callers: 16, pause: time.Millisecond}
	flags := newFlags("fleet")
	flags.BoolVar(&s.isName, "name", false, "")
	flags.Float64Var(&s.seconds, "seconds", 10, "")
	flags.StringVar(&s.serviceConfig, "service-config", `{"loadBalancingConfig":[{"round_robin":{}}]}`, "")
	integer(flags, "c", &s.callers, 1, 1<<16)
	span(flags, "pause", &s.pause)
	span(flags, "keepalive", &s.keepalive)
	servers, err := parse(flags, args, 1)
	if err != nil {
		return s, err
	}
	if len(servers) == 0 {
		return s, misuse{errors.New("fleet needs ADDRESS,ADDRESS")}
	}
	s.servers = servers[0]
	return s, nil
}

func (s fleetSettings) channel() (*grpc.ClientConn, error) {
	options := append(dialOptions(), grpc.WithDefaultServiceConfig(s.serviceConfig))
	if s.keepalive > 0 {
		parameters := keepalive.ClientParameters{Time: s.keepalive, Timeout: fleetKeepaliveTimeout}
		options = append(options, grpc.WithKeepaliveParams(parameters))
	}
	if s.isName {
		return grpc.NewClient("dns:///"+s.servers, options...)
	}
	var state resolver.State
	for _, server := range strings.Split(s.servers, ",") {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: server}}})
	}
	list := manual.NewBuilderWithScheme("fleet")
	list.InitialState(state)
	return grpc.NewClient("fleet:///fleet", append(options, grpc.WithResolvers(list))...)
}

// fleetFailure is the number of failed calls with one code, and the text of the first.
type fleetFailure struct {
	Code    string `json:"code"`
	Count   int64  `json:"count"`
	Example string `json:"example"`
}

// fleetResult is the line that is printed.
type fleetResult struct {
	Ok       int64          `json:"ok"`
	Failed   int64          `json:"failed"`
	Failures []fleetFailure `json:"failures"`
	Slow     int64          `json:"slow"`
	P50Us    float64        `json:"p50_us"`
	P99Us    float64        `json:"p99_us"`
	MaxUs    float64        `json:"max_us"`
}

// fleetCalls are calls that have ended.
type fleetCalls struct {
	ok, slow int64
	failed   map[string]fleetFailure
	// Times of all calls in ns, failed ones too.
	times *hdrhistogram.Histogram
}

func newFleetCalls() *fleetCalls {
	return &fleetCalls{failed: map[string]fleetFailure{}, times: hdrhistogram.New(1, int64(time.Hour), 3)}
}

func (c *fleetCalls) repeat(client pb.BenchmarkServiceClient, pause time.Duration, stopped <-chan struct{}) {
	for {
		select {
		case <-stopped:
			return
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), fleetDeadline)
		started := time.Now()
		_, err := client.UnaryCall(ctx, &pb.SimpleRequest{})
		c.record(time.Since(started), err)
		cancel()
		time.Sleep(pause)
	}
}

func (c *fleetCalls) record(took time.Duration, err error) {
	// Longer times than an hour do not occur.
	_ = c.times.RecordValue(int64(took))
	if took > slowCall {
		c.slow++
	}
	if err == nil {
		c.ok++
		return
	}
	c.fail(fleetFailure{status.Code(err).String(), 1, status.Convert(err).Message()})
}

func (c *fleetCalls) fail(failure fleetFailure) {
	if known, is := c.failed[failure.Code]; is {
		failure.Count, failure.Example = failure.Count+known.Count, known.Example
	}
	c.failed[failure.Code] = failure
}

func (c *fleetCalls) merge(other *fleetCalls) {
	c.ok, c.slow = c.ok+other.ok, c.slow+other.slow
	c.times.Merge(other.times)
	for _, failure := range other.failed {
		c.fail(failure)
	}
}

func (c *fleetCalls) result() fleetResult {
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	result := fleetResult{
		Ok: c.ok, Slow: c.slow, Failures: []fleetFailure{},
		P50Us: us(c.times.ValueAtQuantile(50)), P99Us: us(c.times.ValueAtQuantile(99)), MaxUs: us(c.times.Max()),
	}
	for _, failure := range c.failed {
		result.Failed += failure.Count
		result.Failures = append(result.Failures, failure)
	}
	sort.Slice(result.Failures, func(i, j int) bool { return result.Failures[i].Code < result.Failures[j].Code })
	return result
}
