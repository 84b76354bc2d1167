package main

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// HTTP/2 settings of both sides: bytes that a peer may send on one stream, and on a connection, before it must wait.
// Streams of 1.5 MB and 4 MiB are 1.1 to 1.5 times as fast as with the window that grpc-go estimates; 8 and 16 MiB are
// slower. These made no difference beyond noise and stay at grpc-go's defaults: larger buffers, a shared write buffer,
// stream workers, no retries and no idle timeout.
const (
	streamWindow     = 1 << 20
	connectionWindow = 2 << 20
)

// stackSetting is a setting of grpc-go, or a default that matters. `settings` prints the same lines that configure both sides.
type stackSetting struct {
	name, value, why string
	dial             grpc.DialOption
	server           grpc.ServerOption
}

// tunedSettings returns the settings that differ from the defaults.
func tunedSettings() []stackSetting {
	return []stackSetting{
		{"stream window (InitialWindowSize)", bytes(streamWindow), "large messages are 1.1 to 1.5 times as fast as with the estimated window", grpc.WithInitialWindowSize(streamWindow), grpc.InitialWindowSize(streamWindow)},
		{"connection window (InitialConnWindowSize)", bytes(connectionWindow), "it goes with the stream window; both switch the estimate off", grpc.WithInitialConnWindowSize(connectionWindow), grpc.InitialConnWindowSize(connectionWindow)},
		{"largest message received (MaxRecvMsgSize)", bytes(math.MaxInt32), "the default is 4 MiB", grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)), grpc.MaxRecvMsgSize(math.MaxInt32)},
		{"largest message sent (MaxSendMsgSize)", bytes(math.MaxInt32), "", grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(math.MaxInt32)), grpc.MaxSendMsgSize(math.MaxInt32)},
		{"transport (WithTransportCredentials)", "plain HTTP/2, no TLS", "as in all stacks", grpc.WithTransportCredentials(insecure.NewCredentials()), nil},
		{"proxy (WithNoProxy)", "off", "", grpc.WithNoProxy(), nil},
		{"service config (WithDisableServiceConfig)", "off", "nothing is looked up", grpc.WithDisableServiceConfig(), nil},
	}
}

func dialOptions() []grpc.DialOption {
	var options []grpc.DialOption
	for _, t := range tunedSettings() {
		if t.dial != nil {
			options = append(options, t.dial)
		}
	}
	return options
}

func serverOptions() []grpc.ServerOption {
	var options []grpc.ServerOption
	for _, t := range tunedSettings() {
		if t.server != nil {
			options = append(options, t.server)
		}
	}
	return options
}

// stackDefaults returns the defaults of grpc-go and Go.
func stackDefaults() []stackSetting {
	return []stackSetting{
		{name: "threads (GOMAXPROCS)", value: fmt.Sprint(runtime.GOMAXPROCS(0)), why: "one for each processor of the process; --threads says otherwise"},
		{name: "goroutines (NumStreamWorkers)", value: "one for each call, two for each connection and end", why: "the default; stream workers made no difference"},
		{name: "largest frame (SETTINGS_MAX_FRAME_SIZE)", value: bytes(16 << 10), why: "grpc-go has no option for it"},
		{name: "write buffer (WriteBufferSize)", value: bytes(32 << 10), why: "the default; larger ones made no difference"},
		{name: "read buffer (ReadBufferSize)", value: bytes(32 << 10), why: "the default; larger ones made no difference"},
		{name: "flushing of stream writers", value: "when the write buffer is full or no frame is queued", why: "grpc-go has no option for it"},
		{name: "payload copies", value: "one to encode, one to decode, one more to join the frames of a larger message", why: "the generated messages of Go and grpc-go's codec copy bytes fields"},
		{name: "messages", value: "those of a run made once and used again", why: "replies that come in are new ones: Recv has no place to reuse one"},
		{name: "compression", value: "off", why: "the default"},
		{name: "TCP_NODELAY", value: "on", why: "Go's default"},
		{name: "keep-alive", value: "client off, server after 2 h", why: "the default"},
		{name: "concurrent streams (MaxConcurrentStreams)", value: "no limit", why: "the default"},
		{name: "retries", value: "on", why: "the default; off made no difference"},
		{name: "channelz, tracing, stats handlers", value: "off", why: "the default"},
		{name: "allocator", value: "Go's, with grpc-go's pool of buffers", why: "the default"},
		{name: "garbage collection (GOGC)", value: gogc(), why: "the default"},
		{name: "build", value: build(), why: "go build as it is; Go has no level of optimisation to choose"},
	}
}

// printStackSettings prints `settings`: a line per setting with SIDE, NAME, VALUE and WHY.
func printStackSettings() {
	for _, t := range tunedSettings() {
		side := "both"
		switch {
		case t.server == nil:
			side = "client"
		case t.dial == nil:
			side = "server"
		}
		t.print(side)
	}
	for _, t := range stackDefaults() {
		t.print("both")
	}
}

func (t stackSetting) print(side string) {
	fmt.Println(strings.Join([]string{side, t.name, t.value, t.why}, "\t"))
}

func bytes(n int) string {
	for _, unit := range []struct {
		size int
		name string
	}{{1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n%unit.size == 0 {
			return fmt.Sprintf("%d %s", n/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

func gogc() string {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return "not known"
	}
	return fmt.Sprintf("%d %%", sample[0].Value.Uint64())
}

// build returns the compiler of this program and its non-default flags.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return runtime.Version()
	}
	args := []string{runtime.Version()}
	for _, s := range info.Settings {
		if strings.HasPrefix(s.Key, "-") || s.Key == "GOAMD64" || s.Key == "CGO_ENABLED" {
			args = append(args, s.Key+"="+s.Value)
		}
	}
	return strings.Join(args, " ")
}
