package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/leastrequest"       // Registers the policy.
	_ "google.golang.org/grpc/balancer/ringhash"           // Registers the policy.
	_ "google.golang.org/grpc/balancer/weightedroundrobin" // Registers the policy.
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // Registers the health checks of clients.
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	_ "google.golang.org/grpc/xds" // Registers outlier_detection_experimental.
)

// client is under observation. It has one channel at a time.
type client interface {
	// open replaces its channel. It returns a rejection if it does not accept the service config.
	open(servers []string, serviceConfig string) error
	// call returns the name of the code of a call. The key is sent as header x-key, unless it is empty.
	call(timeout time.Duration, isStream bool, key string) (string, error)
}

// rejection is a client's error in a service config.
type rejection struct{ error }

// grpcGo is grpc-go's client.
type grpcGo struct {
	channel *grpc.ClientConn
}

func (g *grpcGo) close() {
	if g.channel != nil {
		_ = g.channel.Close()
		g.channel = nil
	}
}

func (g *grpcGo) open(servers []string, serviceConfig string) error {
	g.close()
	var state resolver.State
	for _, server := range servers {
		address := resolver.Address{Addr: server}
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{address}})
		// Policies made with the package `base` know only these.
		state.Addresses = append(state.Addresses, address)
	}
	list := manual.NewBuilderWithScheme("fleet")
	list.InitialState(state)
	channel, err := grpc.NewClient("fleet:///fleet",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(serviceConfig), grpc.WithResolvers(list))
	if err != nil {
		return rejection{err}
	}
	g.channel = channel
	return nil
}

func (g *grpcGo) call(timeout time.Duration, isStream bool, key string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-key", key)
	}
	service := pb.NewBenchmarkServiceClient(g.channel)
	if isStream {
		return status.Code(exchange(ctx, service)).String(), nil
	}
	_, err := service.UnaryCall(ctx, &pb.SimpleRequest{})
	return status.Code(err).String(), nil
}

// exchange sends two messages and receives all.
func exchange(ctx context.Context, service pb.BenchmarkServiceClient) error {
	stream, err := service.StreamingCall(ctx)
	if err != nil {
		return err
	}
	for range 2 {
		// Receiving returns the status of a call that has ended.
		_ = stream.Send(&pb.SimpleRequest{})
	}
	_ = stream.CloseSend()
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// command is a client in a process of its own.
type command struct {
	process *exec.Cmd
	stdin   io.WriteCloser
	lines   *bufio.Scanner
}

// request has one member.
type clientRequest struct {
	Open *openRequest `json:"open,omitempty"`
	Call *callRequest `json:"call,omitempty"`
	// Starts a server for each load, which it reports.
	Serve []load `json:"serve,omitempty"`
	// Asks how many calls these servers got.
	Count *struct{} `json:"count,omitempty"`
}

type openRequest struct {
	Servers       []string `json:"servers"`
	ServiceConfig string   `json:"service_config"`
}

type callRequest struct {
	TimeoutMs int64  `json:"timeout_ms"`
	IsStream  bool   `json:"stream"`
	Key       string `json:"key"`
}

type clientResponse struct {
	// Why the service config was rejected.
	Rejected string `json:"rejected"`
	Code     string `json:"code"`
	// Addresses of the servers that were started.
	Servers []string `json:"servers"`
	// Number of calls that each of them got.
	Counts []int `json:"counts"`
}

func startCommand(program string) (*command, error) {
	process := exec.Command(program)
	process.Stderr = os.Stderr
	stdin, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	return &command{process, stdin, bufio.NewScanner(stdout)}, nil
}

func (c *command) end() {
	_ = c.stdin.Close()
	_ = c.process.Wait()
}

func (c *command) open(servers []string, serviceConfig string) error {
	response, err := c.ask(clientRequest{Open: &openRequest{servers, serviceConfig}})
	if err == nil && response.Rejected != "" {
		err = rejection{errors.New(response.Rejected)}
	}
	return err
}

func (c *command) call(timeout time.Duration, isStream bool, key string) (string, error) {
	response, err := c.ask(clientRequest{Call: &callRequest{timeout.Milliseconds(), isStream, key}})
	return response.Code, err
}

func (c *command) ask(request clientRequest) (response clientResponse, err error) {
	line, err := json.Marshal(request)
	if err != nil {
		return response, err
	}
	if _, err := c.stdin.Write(append(line, '\n')); err != nil {
		return response, err
	}
	if !c.lines.Scan() {
		return response, fmt.Errorf("%s ended without an answer to %s", c.process.Path, line)
	}
	return response, json.Unmarshal(c.lines.Bytes(), &response)
}
