package main

import (
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// Canonical names, by number.
var codeNames = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
	"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// errEndedEarly is the status of a stream that ended with OK too early.
var errEndedEarly = status.Error(codes.DataLoss, "the server ended the stream before its time")

func codeName(err error) string {
	if code := int(status.Code(err)); code < len(codeNames) {
		return codeNames[code]
	}
	return codeNames[codes.Unknown]
}

// described formats an error like `UNAVAILABLE: connection lost`, in one line.
func described(err error) string {
	message := err.Error()
	if s, is := status.FromError(err); is {
		message = s.Message()
	}
	return codeName(err) + ": " + strings.Join(strings.Fields(message), " ")
}

// unanswered is the error of a call that timed out.
func unanswered(patience time.Duration) error {
	return status.Errorf(codes.DeadlineExceeded, "nothing came within %s", patience)
}

// checkSize checks the size of a reply; a wrong size fails the call.
func checkSize(response *pb.SimpleResponse, expected int) error {
	if got := len(response.GetPayload().GetBody()); got != expected {
		return status.Errorf(codes.DataLoss, "a reply of %d bytes was asked for, %d came", expected, got)
	}
	return nil
}
