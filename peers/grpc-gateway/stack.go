package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	gateway "github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	pb "thalweg/peer/labv1"
)

const (
	// The gateway is a separate process and calls the server at its first listener.
	process = "process"
	// The gateway calls the service in the same process.
	inside = "inside"
)

var variants = []string{process, inside}
var speaks = []string{"http1", "h2"}

func version() string {
	version := "?"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/grpc-ecosystem/grpc-gateway/v2" {
				version = strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return "grpc-gateway " + version + " before grpc-go " + grpc.Version
}

func settings() [][3]string {
	return append(httpSettings(),
		[3]string{"gRPC windows (InitialWindowSize, InitialConnWindowSize)", "1 MiB for a stream, 2 MiB for a connection", "as in the peer grpc-go"},
		[3]string{"gRPC largest message (MaxRecvMsgSize, MaxSendMsgSize)", "2 GiB", "the default is 4 MiB for those received"},
		[3]string{"JSON (JSONPb)", "protojson, fields with their defaults are written", "the default of grpc-gateway"},
		[3]string{"connections of the gateway to the server", "one", "the default"},
	)
}

// echo returns its requests.
type echo struct{ pb.UnimplementedEchoServer }

func (echo) EchoStrings(ctx context.Context, request *pb.Strings) (*pb.Strings, error) {
	return request, sendTimes(ctx)
}

func (echo) EchoPerson(ctx context.Context, request *pb.Person) (*pb.Person, error) {
	return request, sendTimes(ctx)
}

// sendTimes sends the handler's times if the call asks for them.
func sendTimes(ctx context.Context) error {
	if metadata.ValueFromIncomingContext(ctx, timesHeader) == nil {
		return nil
	}
	decoded := now()
	// A real handler's work goes here.
	return grpc.SetHeader(ctx, metadata.Pairs(timesHeader, times(decoded, now())))
}

// start serves gRPC on the listeners and JSON on its address, and returns that address.
func start(a serveArgs, listeners []net.Listener, ended chan<- error) (func(), string, error) {
	server := grpc.NewServer(grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(connectionWindow),
		grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32))
	pb.RegisterEchoServer(server, echo{})
	for _, listener := range listeners {
		go func() { ended <- server.Serve(listener) }()
	}
	var stopJSON func()
	var jsonAddress string
	var err error
	if a.variant == inside {
		mux := newMux()
		if err = pb.RegisterEchoHandlerServer(context.Background(), mux, echo{}); err == nil {
			stopJSON, jsonAddress, err = serveJSON(a.json, mux, ended)
		}
	} else {
		target := a.addresses[0]
		if target.network == "tcp" {
			target.text = listeners[0].Addr().String()
		}
		stopJSON, jsonAddress, err = startGateway(a, target.text, ended)
	}
	if err != nil {
		server.Stop()
		return nil, "", err
	}
	return func() {
		stopJSON()
		server.Stop()
	}, jsonAddress, nil
}

// newMux returns a mux that forwards the header that asks for times, and the one that contains them.
func newMux() *gateway.ServeMux {
	passes := func(key string) (string, bool) { return timesHeader, strings.EqualFold(key, timesHeader) }
	return gateway.NewServeMux(gateway.WithIncomingHeaderMatcher(passes), gateway.WithOutgoingHeaderMatcher(passes))
}

func serveJSON(addr string, handler http.Handler, ended chan<- error) (func(), string, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, "", fmt.Errorf("failed to listen on %s: %w", addr, err)
	}
	server := newServer(handler)
	go func() { ended <- server.Serve(listener) }()
	return func() { server.Close() }, listener.Addr().String(), nil
}

// startGateway starts this program again as `gateway`, and waits until it listens.
func startGateway(a serveArgs, target string, ended chan<- error) (func(), string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	args := []string{"gateway", "--listen", target, "--json", a.json}
	if a.threads > 0 {
		args = append(args, "--threads", strconv.Itoa(a.threads))
	}
	command := exec.Command(program, args...)
	command.Stderr = os.Stderr
	// Ends the gateway with this process, however that ends.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := command.Start(); err != nil {
		return nil, "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, is := strings.CutPrefix(strings.TrimSpace(line), "json on ")
	exited := make(chan error, 1)
	go func() {
		err := command.Wait()
		exited <- err
		ended <- fmt.Errorf("the gateway is gone: %w", errors.Join(err, errors.New("it ended")))
	}()
	if err != nil || !is {
		return nil, "", errors.New("the gateway did not say where it listens")
	}
	return func() {
		command.Process.Signal(syscall.SIGTERM)
		<-exited
	}, addr, nil
}

// ownCommand runs `gateway`: the gateway in its own process, in front of the server at --listen.
func ownCommand(command string, args []string) error {
	if command != "gateway" {
		return misuse{fmt.Errorf("unknown command `%s`; use version, variants, settings or serve", command)}
	}
	a, err := parse(command, args)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	mux := newMux()
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithInitialWindowSize(streamWindow), grpc.WithInitialConnWindowSize(connectionWindow),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)),
	}
	if err := pb.RegisterEchoHandlerFromEndpoint(context.Background(), mux, a.addresses[0].grpcTarget(), options); err != nil {
		return err
	}
	ended := make(chan error, 1)
	stop, addr, err := serveJSON(a.json, mux, ended)
	if err != nil {
		return err
	}
	fmt.Println("json on", addr)
	select {
	case err := <-ended:
		return fmt.Errorf("serving ended: %w", err)
	case <-signals:
	}
	stop()
	return nil
}
