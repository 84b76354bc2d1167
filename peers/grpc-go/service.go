package main

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// service responds with as many zeros as each request asks for.
type service struct {
	pb.UnimplementedBenchmarkServiceServer
}

func newResponse(request *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if request.ResponseSize < 0 || request.ResponseSize > payloadBytesMax {
		return nil, status.Errorf(codes.InvalidArgument, "response_size %d is not within 0 to %d", request.ResponseSize, payloadBytesMax)
	}
	return &pb.SimpleResponse{Payload: payload(int(request.ResponseSize))}, nil
}

func (service) UnaryCall(_ context.Context, request *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return newResponse(request)
}

func (service) StreamingCall(stream grpc.BidiStreamingServer[pb.SimpleRequest, pb.SimpleResponse]) error {
	for {
		request, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		response, err := newResponse(request)
		if err != nil {
			return err
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

func (service) StreamingFromClient(stream grpc.ClientStreamingServer[pb.SimpleRequest, pb.SimpleResponse]) error {
	for {
		switch _, err := stream.Recv(); err {
		case nil:
		case io.EOF:
			return stream.SendAndClose(&pb.SimpleResponse{})
		default:
			return err
		}
	}
}

func (service) StreamingFromServer(request *pb.SimpleRequest, stream grpc.ServerStreamingServer[pb.SimpleResponse]) error {
	response, err := newResponse(request)
	for err == nil {
		err = stream.Send(response)
	}
	return err
}

// The first request sets the size of the replies.
func (service) StreamingBothWays(stream grpc.BidiStreamingServer[pb.SimpleRequest, pb.SimpleResponse]) error {
	request, err := stream.Recv()
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err
	}
	response, err := newResponse(request)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := stream.Recv(); err != nil {
				ended <- err
				return
			}
		}
	}()
	for {
		select {
		case err := <-ended:
			if err == io.EOF {
				return nil
			}
			return err
		default:
			if err := stream.Send(response); err != nil {
				return err
			}
		}
	}
}
