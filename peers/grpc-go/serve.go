package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testing "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

type worker struct {
	testing.UnimplementedBenchmarkServiceServer
}

func (worker) UnaryCall(_ context.Context, request *testing.SimpleRequest) (*testing.SimpleResponse, error) {
	if request.ResponseSize < 0 {
		return nil, status.Error(codes.InvalidArgument, "response_size is negative")
	}
	return &testing.SimpleResponse{Payload: payload(int(request.ResponseSize))}, nil
}

// None is no payload, so that an empty message is empty.
func payload(size int) *testing.Payload {
	if size == 0 {
		return nil
	}
	return &testing.Payload{Body: make([]byte, size)}
}

// Serves until SIGTERM or SIGINT.
func serve(words []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:50051", "host:port")
	flags.Parse(words)

	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(messageBytesMax), grpc.MaxSendMsgSize(messageBytesMax))
	testing.RegisterBenchmarkServiceServer(server, worker{})
	ending := make(chan os.Signal, 1)
	signal.Notify(ending, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-ending
		server.Stop()
	}()
	fmt.Printf("grpc-go %s serves on %s\n", grpc.Version, listener.Addr())
	return server.Serve(listener)
}
