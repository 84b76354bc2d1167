package main

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

// connect opens one channel per connection, because a channel of grpc-go never shares its connection.
func connect(s settings) ([]pb.BenchmarkServiceClient, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	channels := make([]*grpc.ClientConn, s.connections)
	for i := range channels {
		channel, err := grpc.NewClient(s.target.grpcTarget(), dialOptions()...)
		if err != nil {
			return nil, fmt.Errorf("failed to connect to %s: %w", s.target.text, err)
		}
		channel.Connect()
		channels[i] = channel
	}
	clients := make([]pb.BenchmarkServiceClient, len(channels))
	for i, channel := range channels {
		if err := becomeReady(ctx, channel, s.timeout); err != nil {
			return nil, fmt.Errorf("failed to connect to %s: %s", s.target.text, described(err))
		}
		clients[i] = pb.NewBenchmarkServiceClient(channel)
	}
	return clients, nil
}

func becomeReady(ctx context.Context, channel *grpc.ClientConn, patience time.Duration) error {
	for {
		switch state := channel.GetState(); state {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure:
			// Only a call returns the reason.
			if _, err := pb.NewBenchmarkServiceClient(channel).UnaryCall(ctx, &pb.SimpleRequest{}); err != nil {
				return err
			}
		default:
			if !channel.WaitForStateChange(ctx, state) {
				return unanswered(patience)
			}
		}
	}
}
