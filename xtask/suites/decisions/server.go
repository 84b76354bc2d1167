package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// action is what a server does with a request once it is complete. Without a member, it responds with OK.
type action struct {
	// grpc-status, as text since it may be invalid.
	Status string `json:"status"`
	// Whether response headers precede the status, and the size of a message before it. OK always has both.
	Headers bool `json:"headers"`
	Message int  `json:"message"`
	// grpc-retry-pushback-ms.
	Pushback string `json:"pushback"`
	// Only trailers, even for OK.
	TrailersOnly bool `json:"trailers_only"`
	// The response ends without trailers.
	NoTrailers bool `json:"no_trailers"`
	// A response of this HTTP status that is not gRPC.
	HTTP int `json:"http"`
	// RST_STREAM with this error code.
	Reset *uint32 `json:"reset"`
	// GOAWAY before this request, which was therefore not processed; `after`: it was.
	GoAway string `json:"goaway"`
	// The connection closes.
	Close bool `json:"close"`
	// Nothing.
	Silent  bool `json:"silent"`
	DelayMs int  `json:"delay_ms"`
	// The server reports its load: so many queries per second, at a utilization of 1.
	QPS float64 `json:"qps"`
}

// recorder lists the attempts since it was last asked.
type recorder struct {
	mutex    sync.Mutex
	attempts []string
	last     time.Time
	pause    time.Duration
}

func (r *recorder) add(name string, previous string, bytes int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	attempt := name
	if previous != "" {
		attempt += "+" + previous
	}
	now := time.Now()
	if len(r.attempts) > 0 && r.pause > 0 && now.Sub(r.last) >= r.pause {
		attempt = "pause " + attempt
	}
	r.last = now
	// Messages of the calls are empty: five bytes each.
	if bytes != 5 {
		attempt += fmt.Sprintf(" (%d bytes)", bytes)
	}
	r.attempts = append(r.attempts, attempt)
}

func (r *recorder) take() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var text bytes.Buffer
	for _, attempt := range r.attempts {
		text.WriteString(" " + attempt)
	}
	r.attempts = nil
	return text.String()
}

// server follows a script over raw HTTP/2.
type server struct {
	index   int
	address string
	script  []action
	record  *recorder

	mutex       sync.Mutex
	requests    int
	listener    net.Listener
	connections map[*connection]bool
	// Name of its status; "" without a health service.
	health string
	// Streams that watch the health.
	watches []watch
}

// watch is a stream of grpc.health.v1.Health/Watch.
type watch struct {
	connection *connection
	stream     uint32
}

// Numbers of grpc.health.v1.HealthCheckResponse.ServingStatus.
var healthNumbers = map[string]byte{"UNKNOWN": 0, "SERVING": 1, "NOT_SERVING": 2, "SERVICE_UNKNOWN": 3}

// setHealth reports a new status to all watches.
func (s *server) setHealth(status string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.health = status
	for _, w := range s.watches {
		w.connection.write(func() error { return w.report(status) })
	}
}

// watched responds to a new watch.
func (s *server) watched(w watch) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.health == "" {
		w.connection.write(func() error { return w.connection.respond(action{Status: "12"}, w.stream) })
		return
	}
	s.watches = append(s.watches, w)
	w.connection.write(func() error {
		err := w.connection.headers(w.stream, false, ":status", "200", "content-type", "application/grpc")
		if err != nil {
			return err
		}
		return w.report(s.health)
	})
}

// report sends a HealthCheckResponse.
func (w watch) report(status string) error {
	message := []byte{0, 0, 0, 0, 2, 1 << 3, healthNumbers[status]}
	return w.connection.framer.WriteData(w.stream, false, message)
}

func (s *server) name() string { return fmt.Sprintf("server%d", s.index) }

func (s *server) start() error {
	address := s.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	s.listener, s.address, s.connections = listener, listener.Addr().String(), map[*connection]bool{}
	s.mutex.Unlock()
	go func() {
		for {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(socket)
		}
	}()
	return nil
}

func (s *server) isUp() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.listener != nil
}

// stop sends GOAWAY on all connections, and closes them a little later.
func (s *server) stop() {
	s.shut(func(c *connection) {
		c.goAway(c.lastStream())
		time.AfterFunc(drainTime, func() { _ = c.socket.Close() })
	})
}

func (s *server) close() { s.shut(func(c *connection) { _ = c.socket.Close() }) }

func (s *server) shut(end func(*connection)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.listener == nil {
		return
	}
	_ = s.listener.Close()
	s.listener = nil
	for c := range s.connections {
		end(c)
	}
}

// next is the action for the next request.
func (s *server) next() action {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.requests++
	if len(s.script) == 0 {
		return action{}
	}
	return s.script[min(s.requests, len(s.script))-1]
}

// connection is one HTTP/2 connection of a server.
type connection struct {
	socket net.Conn
	mutex  sync.Mutex
	framer *http2.Framer
	last   uint32
}

// request is what has arrived of a request.
type request struct {
	previous string
	bytes    int
	isWatch  bool
}

func (s *server) serve(socket net.Conn) {
	defer socket.Close()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(socket, preface); err != nil {
		return
	}
	c := &connection{socket: socket, framer: http2.NewFramer(socket, socket)}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	s.mutex.Lock()
	isUp := s.listener != nil
	if isUp {
		s.connections[c] = true
	}
	s.mutex.Unlock()
	if !isUp {
		return
	}
	c.write(func() error { return c.framer.WriteSettings() })
	requests := map[uint32]*request{}
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		id := frame.Header().StreamID
		ended := false
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				c.write(c.framer.WriteSettingsAck)
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				c.write(func() error { return c.framer.WritePing(true, frame.Data) })
			}
		case *http2.MetaHeadersFrame:
			r := &request{}
			for _, field := range frame.Fields {
				switch field.Name {
				case "grpc-previous-rpc-attempts":
					r.previous = field.Value
				case ":path":
					r.isWatch = field.Value == "/grpc.health.v1.Health/Watch"
				}
			}
			requests[id] = r
			c.mutex.Lock()
			c.last = id
			c.mutex.Unlock()
			ended = frame.StreamEnded()
		case *http2.DataFrame:
			if r := requests[id]; r != nil {
				r.bytes += len(frame.Data())
			}
			ended = frame.StreamEnded()
		case *http2.RSTStreamFrame:
			delete(requests, id)
		}
		if r := requests[id]; ended && r != nil {
			delete(requests, id)
			if r.isWatch {
				s.watched(watch{c, id})
				continue
			}
			s.record.add(s.name(), r.previous, r.bytes)
			act := s.next()
			time.AfterFunc(time.Duration(act.DelayMs)*time.Millisecond, func() { c.perform(act, id) })
		}
	}
}

func (c *connection) lastStream() uint32 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.last
}

func (c *connection) goAway(last uint32) {
	c.write(func() error { return c.framer.WriteGoAway(last, http2.ErrCodeNo, nil) })
}

// write writes frames. The reader notices a lost connection.
func (c *connection) write(frames func() error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_ = frames()
}

func (c *connection) perform(a action, stream uint32) {
	switch {
	case a.Silent:
	case a.Close:
		_ = c.socket.Close()
	case a.Reset != nil:
		c.write(func() error { return c.framer.WriteRSTStream(stream, http2.ErrCode(*a.Reset)) })
	case a.GoAway == "before":
		// Streams of a client are odd.
		c.goAway(max(stream, 2) - 2)
		time.AfterFunc(drainTime, func() { _ = c.socket.Close() })
	case a.HTTP != 0:
		c.write(func() error { return c.headers(stream, true, ":status", strconv.Itoa(a.HTTP)) })
	default:
		c.write(func() error { return c.respond(a, stream) })
		if a.GoAway == "after" {
			c.goAway(stream)
		}
	}
}

func (c *connection) respond(a action, stream uint32) error {
	isOk := a.Status == "" || a.Status == "0"
	hasHeaders := !a.TrailersOnly && (isOk || a.Headers || a.Message > 0)
	trailers := []string{}
	if hasHeaders {
		if err := c.headers(stream, false, ":status", "200", "content-type", "application/grpc"); err != nil {
			return err
		}
		if isOk || a.Message > 0 {
			message := append([]byte{0, 0, 0, 0, byte(a.Message)}, messageOf(a.Message)...)
			if err := c.framer.WriteData(stream, a.NoTrailers, message); err != nil || a.NoTrailers {
				return err
			}
		}
	} else {
		trailers = append(trailers, ":status", "200", "content-type", "application/grpc")
	}
	status := a.Status
	if status == "" {
		status = "0"
	}
	if status != "none" {
		trailers = append(trailers, "grpc-status", status)
	}
	if a.QPS > 0 {
		trailers = append(trailers, "endpoint-load-metrics-bin", loadReport(a.QPS))
	}
	if a.Pushback != "" {
		trailers = append(trailers, "grpc-retry-pushback-ms", a.Pushback)
	}
	return c.headers(stream, true, trailers...)
}

// loadReport is an xds.data.orca.v3.OrcaLoadReport as metadata.
func loadReport(qps float64) string {
	report := []byte{1<<3 | 1}
	report = binary.LittleEndian.AppendUint64(report, math.Float64bits(1))
	report = binary.LittleEndian.AppendUint64(append(report, 6<<3|1), math.Float64bits(qps))
	return base64.RawStdEncoding.EncodeToString(report)
}

// messageOf is a message of this size, 0 or at least 2 bytes: an unknown field.
func messageOf(size int) []byte {
	if size == 0 {
		return nil
	}
	message := make([]byte, size)
	message[0], message[1] = 15<<3|2, byte(size-2)
	return message
}

// headers writes a header block without the dynamic table.
func (c *connection) headers(stream uint32, ends bool, fields ...string) error {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encoder.SetMaxDynamicTableSize(0)
	for i := 0; i < len(fields); i += 2 {
		if err := encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			return err
		}
	}
	return c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: block.Bytes(), EndStream: ends, EndHeaders: true,
	})
}
