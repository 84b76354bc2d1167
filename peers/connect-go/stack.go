package main

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"connectrpc.com/connect"

	pb "thalweg/peer/labv1"
	"thalweg/peer/labv1/labv1connect"
)

// variants is empty: there is one server only.
var variants []string
var speaks = []string{"http1", "h2", "connect", "grpc-web"}

func version() string {
	return "connect-go " + connect.Version
}

func settings() [][3]string {
	return append(httpSettings(),
		[3]string{"protocols", "gRPC, gRPC-Web and Connect, by one handler", "the default"},
		[3]string{"paths of the JSON API", "the handlers of the methods, mounted there too", "Connect knows no google.api.http"},
		[3]string{"JSON", "protojson, fields with their defaults are left out", "the default of connect-go"},
		[3]string{"largest message (WithReadMaxBytes)", "64 MiB", "the default is no limit"},
		[3]string{"compression (WithCompression)", "gzip for those who ask for it, which no client here does", "the default"},
	)
}

// echo returns its requests.
type echo struct{}

func (echo) EchoStrings(_ context.Context, request *connect.Request[pb.Strings]) (*connect.Response[pb.Strings], error) {
	return respond(request), nil
}

func (echo) EchoPerson(_ context.Context, request *connect.Request[pb.Person]) (*connect.Response[pb.Person], error) {
	return respond(request), nil
}

func respond[M any](request *connect.Request[M]) *connect.Response[M] {
	if request.Header().Get(timesHeader) == "" {
		return connect.NewResponse(request.Msg)
	}
	decoded := now()
	response := connect.NewResponse(request.Msg)
	response.Header().Set(timesHeader, times(decoded, now()))
	return response
}

// start serves gRPC and JSON on all listeners, with the same handlers.
func start(a serveArgs, listeners []net.Listener, ended chan<- error) (func(), string, error) {
	limit := connect.WithReadMaxBytes(bodySizeMax)
	mux := http.NewServeMux()
	mux.Handle(labv1connect.NewEchoHandler(echo{}, limit))
	mux.Handle("/v1/echo-strings", connect.NewUnaryHandler(labv1connect.EchoEchoStringsProcedure, echo{}.EchoStrings, limit))
	mux.Handle("/v1/echo-person", connect.NewUnaryHandler(labv1connect.EchoEchoPersonProcedure, echo{}.EchoPerson, limit))
	json, err := net.Listen("tcp", a.json)
	if err != nil {
		return nil, "", fmt.Errorf("failed to listen on %s: %w", a.json, err)
	}
	server := newServer(mux)
	for _, listener := range append(listeners, json) {
		go func() { ended <- server.Serve(listener) }()
	}
	return func() { server.Close() }, json.Addr().String(), nil
}

// ownCommand handles commands of this stack only; there are none.
func ownCommand(command string, _ []string) error {
	return misuse{fmt.Errorf("unknown command `%s`; use version, variants, settings or serve", command)}
}
