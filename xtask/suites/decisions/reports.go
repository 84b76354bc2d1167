package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/orca"
)

// load is what a server reports.
type load struct {
	QPS         float64 `json:"qps"`
	EPS         float64 `json:"eps"`
	CPU         float64 `json:"cpu"`
	Application float64 `json:"application"`
}

// loads have the weights 200, 600 and 300 (gRFC A58): queries per second, divided by the sum of utilization and errors
// per query. The application's utilization takes the place of the CPU's.
var loads = []load{
	{QPS: 100, CPU: 0.5},
	{QPS: 300, CPU: 0.9, Application: 0.5},
	{QPS: 300, EPS: 150, CPU: 0.5},
}

var sharesOfLoads = []float64{200. / 1100, 600. / 1100, 300. / 1100}

const (
	// Both stacks choose servers by a schedule, not at random, so that shares are nearly exact.
	shareTolerance = 0.03
	sharedCalls    = 550
	// Weights are calculated each 100 ms, the shortest period that gRFC A58 allows.
	weighted    = `{"loadBalancingConfig": [{"weighted_round_robin": {"blackoutPeriod": "0s", "weightUpdatePeriod": "0.1s"%s}}]}`
	outOfBand   = `, "enableOobLoadReport": true, "oobReportingPeriod": "0.1s"`
	updateTime  = 500 * time.Millisecond
	reportLimit = 10 * time.Second
)

// reporters are servers that report loads, in the trailers of calls and out of band.
type reporters interface {
	addresses() []string
	// counts returns how many calls each of them got.
	counts() ([]int, error)
}

// observeReports has each client balance by the reports of the other stack's servers. It returns the number of failed
// cases.
func observeReports(reference *grpcGo, ours *command) (failed int, err error) {
	theirs, err := startGoReporters()
	if err != nil {
		return 0, err
	}
	defer theirs.stop()
	mine, err := ours.serve(loads)
	if err != nil {
		return 0, err
	}
	for _, pair := range []struct {
		name    string
		client  client
		servers reporters
	}{{"our client by the reports of grpc-go's servers", ours, theirs}, {"grpc-go's client by our reports", reference, mine}} {
		for _, source := range []struct{ name, settings string }{{"in trailers", ""}, {"out of band", outOfBand}} {
			name := pair.name + " " + source.name
			got, err := distribution(pair.client, pair.servers, fmt.Sprintf(weighted, source.settings))
			if err != nil {
				return failed, fmt.Errorf("%s: %w", name, err)
			}
			failed += report(name, percentages(sharesOfLoads, sharesOfLoads), percentages(sharesOfLoads, got), nil)
		}
	}
	expected := loads[2].text()
	got, err := listen(reference, mine.addresses()[2])
	if err != nil {
		return failed, err
	}
	return failed + report("grpc-go's listener of reports out of band", expected, got, nil), nil
}

// distribution returns the share of the calls that each server gets.
func distribution(of client, at reporters, config string) ([]float64, error) {
	if err := of.open(at.addresses(), config); err != nil {
		return nil, err
	}
	first, err := at.counts()
	if err != nil {
		return nil, err
	}
	// A server reports once it is connected, or with its first call.
	for deadline := time.Now().Add(reportLimit); ; {
		if err := makeCall(of); err != nil {
			return nil, err
		}
		now, err := at.counts()
		if err != nil {
			return nil, err
		}
		isCalled := true
		for i := range now {
			isCalled = isCalled && now[i] > first[i]
		}
		if isCalled {
			break
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("after %v, servers got %v calls, %v before", reportLimit, now, first)
		}
	}
	time.Sleep(updateTime)
	before, err := at.counts()
	if err != nil {
		return nil, err
	}
	for range sharedCalls {
		if err := makeCall(of); err != nil {
			return nil, err
		}
	}
	after, err := at.counts()
	if err != nil {
		return nil, err
	}
	got := make([]float64, len(after))
	for i := range after {
		got[i] = float64(after[i]-before[i]) / sharedCalls
	}
	return got, nil
}

func makeCall(of client) error {
	code, err := of.call(timeoutDefault, false, "")
	if err == nil && code != "OK" {
		err = fmt.Errorf("a call ended with %s", code)
	}
	return err
}

// percentages rounds shares: those within the tolerance to the expected ones.
func percentages(expected, got []float64) string {
	var text string
	for i, share := range got {
		if math.Abs(share-expected[i]) <= shareTolerance {
			share = expected[i]
		}
		text += fmt.Sprintf("%.0f%% ", 100*share)
	}
	return text
}

func (l load) text() string {
	return fmt.Sprintf("%v queries and %v errors a second, CPU %v, application %v", l.QPS, l.EPS, l.CPU, l.Application)
}

// goReporters are servers of grpc-go.
type goReporters struct{ servers []*goReporter }

type goReporter struct {
	pb.UnimplementedBenchmarkServiceServer
	address string
	server  *grpc.Server
	calls   atomic.Int64
}

func startGoReporters() (started *goReporters, err error) {
	started = &goReporters{}
	for _, l := range loads {
		recorder := orca.NewServerMetricsRecorder()
		recorder.SetQPS(l.QPS)
		recorder.SetEPS(l.EPS)
		recorder.SetCPUUtilization(l.CPU)
		recorder.SetApplicationUtilization(l.Application)
		one := &goReporter{server: grpc.NewServer(orca.CallMetricsServerOption(recorder))}
		if err := orca.Register(one.server, orca.ServiceOptions{ServerMetricsProvider: recorder}); err != nil {
			return nil, err
		}
		pb.RegisterBenchmarkServiceServer(one.server, one)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		one.address = listener.Addr().String()
		go func() { _ = one.server.Serve(listener) }()
		started.servers = append(started.servers, one)
	}
	return started, nil
}

func (r *goReporters) addresses() (all []string) {
	for _, one := range r.servers {
		all = append(all, one.address)
	}
	return all
}

func (r *goReporters) counts() (all []int, err error) {
	for _, one := range r.servers {
		all = append(all, int(one.calls.Load()))
	}
	return all, nil
}

func (r *goReporters) stop() {
	for _, one := range r.servers {
		one.server.Stop()
	}
}

func (r *goReporter) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	r.calls.Add(1)
	// Without this, grpc-go sends no report with the call.
	orca.CallMetricsRecorderFromContext(ctx)
	return &pb.SimpleResponse{}, nil
}

// ourReporters are servers in the process of our client.
type ourReporters struct {
	process *command
	servers []string
}

func (c *command) serve(loads []load) (*ourReporters, error) {
	response, err := c.ask(clientRequest{Serve: loads})
	if err == nil && len(response.Servers) != len(loads) {
		err = fmt.Errorf("%s started servers at %v", c.process.Path, response.Servers)
	}
	return &ourReporters{c, response.Servers}, err
}

func (r *ourReporters) addresses() []string { return r.servers }

func (r *ourReporters) counts() ([]int, error) {
	response, err := r.process.ask(clientRequest{Count: &struct{}{}})
	return response.Counts, err
}

// listener is a policy for one server, which listens to its reports.
type listener struct {
	once    sync.Once
	reports chan *v3orcapb.OrcaLoadReport
}

const (
	listenerPolicy  = "decisions_listener"
	listenerReports = 3
)

// listen returns the load that a server reports several times.
func listen(reference *grpcGo, address string) (string, error) {
	own := &listener{reports: make(chan *v3orcapb.OrcaLoadReport, listenerReports)}
	balancer.Register(base.NewBalancerBuilder(listenerPolicy, own, base.Config{}))
	config, err := json.Marshal(map[string]any{"loadBalancingConfig": []any{map[string]any{listenerPolicy: struct{}{}}}})
	if err != nil {
		return "", err
	}
	if err := reference.open([]string{address}, string(config)); err != nil {
		return "", err
	}
	if err := makeCall(reference); err != nil {
		return "", err
	}
	var text string
	limit := time.After(reportLimit)
	for range listenerReports {
		select {
		case r := <-own.reports:
			text = load{r.GetRpsFractional(), r.GetEps(), r.GetCpuUtilization(), r.GetApplicationUtilization()}.text()
		case <-limit:
			return "", fmt.Errorf("fewer than %d reports within %v", listenerReports, reportLimit)
		}
	}
	return text, nil
}

// Build implements base.PickerBuilder.
func (l *listener) Build(info base.PickerBuildInfo) balancer.Picker {
	for subConn := range info.ReadySCs {
		l.once.Do(func() {
			orca.RegisterOOBListener(subConn, l, orca.OOBListenerOptions{ReportInterval: 50 * time.Millisecond})
		})
		return only{subConn}
	}
	return base.NewErrPicker(balancer.ErrNoSubConnAvailable)
}

// OnLoadReport implements orca.OOBListener.
func (l *listener) OnLoadReport(r *v3orcapb.OrcaLoadReport) {
	select {
	case l.reports <- r:
	default:
	}
}

// only picks one connection.
type only struct{ subConn balancer.SubConn }

func (o only) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{SubConn: o.subConn}, nil
}
