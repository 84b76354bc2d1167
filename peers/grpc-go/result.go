package main

import (
	"fmt"
	"syscall"
	"time"
)

// RFC 3339, UTC, nanoseconds.
const timeLayout = "2006-01-02T15:04:05.000000000Z"

// loadResult is the schema thalweg.load/3.
type loadResult struct {
	Schema           string            `json:"schema"`
	Settings         loadSettings      `json:"settings"`
	Started          string            `json:"started"`
	Ended            string            `json:"ended"`
	DurationNs       int64             `json:"duration_ns"`
	DrainNs          int64             `json:"drain_ns"`
	ClosedLoop       bool              `json:"closed_loop"`
	RatePerS         float64           `json:"rate_per_s"`
	Calls            uint64            `json:"calls"`
	Messages         uint64            `json:"messages"`
	Errors           map[string]uint64 `json:"errors"`
	BytesSent        uint64            `json:"bytes_sent"`
	BytesReceived    uint64            `json:"bytes_received"`
	LatencyNs        *latency          `json:"latency_ns"`
	PaceNs           *pace             `json:"pace_ns"`
	Spikes           []spike           `json:"spikes"`
	Histogram        string            `json:"histogram"`
	ClientCPU        cpuTime           `json:"client_cpu"`
	ClientCPUPerCall *cpuTime          `json:"client_cpu_per_call"`
	Connections      connectionCount   `json:"connections"`
	Notes            []note            `json:"notes"`
}

type loadSettings struct {
	Target      string  `json:"target"`
	Call        string  `json:"call"`
	SizeBytes   int     `json:"size_bytes"`
	InFlight    int     `json:"in_flight"`
	Connections int     `json:"connections"`
	WarmupNs    int64   `json:"warmup_ns"`
	DurationNs  *int64  `json:"duration_ns"`
	Total       *uint64 `json:"total"`
	// Always nil: the starting process pins this one.
	CPUs *string `json:"cpus"`
}

// cpuTime is CPU time in ns.
type cpuTime struct {
	UserNs   float64 `json:"user_ns"`
	SystemNs float64 `json:"system_ns"`
}

type connectionCount struct {
	Requested   int  `json:"asked"`
	Established *int `json:"established"`
}

// note is something that readers of the figures must know.
type note struct {
	Text string `json:"text"`
	// The figures must not be used as a measure of the server.
	Invalidates bool `json:"invalidates"`
}

func newResult(s settings, r *recorder, started time.Time, took, drain time.Duration, cpu cpuTime) *loadResult {
	sent, received := s.call.payloads()
	result := &loadResult{
		Schema: "thalweg.load/3",
		Settings: loadSettings{
			Target: s.target.text, Call: string(s.call), SizeBytes: s.size, InFlight: s.inFlight,
			Connections: s.connections, WarmupNs: int64(s.warmup),
		},
		Started:       started.UTC().Format(timeLayout),
		Ended:         started.Add(took).UTC().Format(timeLayout),
		DurationNs:    int64(took),
		DrainNs:       int64(drain),
		ClosedLoop:    true,
		Calls:         r.calls,
		Messages:      r.messages,
		Errors:        r.errors,
		BytesSent:     r.messages * sent * uint64(s.size),
		BytesReceived: r.messages * received * uint64(s.size),
		LatencyNs:     r.latency(),
		PaceNs:        r.pace(),
		Spikes:        r.spikes,
		Histogram:     r.histogram(),
		ClientCPU:     cpu,
		Connections:   connectionCount{Requested: s.connections},
		Notes:         []note{},
	}
	if s.total > 0 {
		result.Settings.Total = &s.total
	} else {
		duration := int64(s.duration)
		result.Settings.DurationNs = &duration
	}
	if took > 0 {
		result.RatePerS = float64(r.messages) / took.Seconds()
	}
	if r.messages > 0 {
		messages := float64(r.messages)
		result.ClientCPUPerCall = &cpuTime{cpu.UserNs / messages, cpu.SystemNs / messages}
	}
	return result
}

func (r *loadResult) note(text string, invalidates bool) {
	r.Notes = append(r.Notes, note{text, invalidates})
}

// firstNote returns the reason why a run has no success.
func (r *loadResult) firstNote() string {
	if len(r.Notes) == 0 {
		return "nothing ended within the measured time"
	}
	return r.Notes[0].Text
}

// countConnections stores the number of connections added between two counts.
func (r *loadResult) countConnections(before, after *int) {
	if before == nil || after == nil {
		r.note("the kernel could not be asked for the number of connections", false)
		return
	}
	established := *after - *before
	r.Connections.Established = &established
	if requested := r.Connections.Requested; established != requested {
		r.note(fmt.Sprintf("connections: %d requested, %d in the kernel's tables", requested, established), false)
	}
}

// String formats the result for people.
func (r *loadResult) String() string {
	text := fmt.Sprintf("%.0f a second", r.RatePerS)
	if l := r.LatencyNs; l != nil {
		text += fmt.Sprintf(", p50 %.1f µs, p99 %.1f µs", float64(l.P50)/1e3, float64(l.P99)/1e3)
	}
	return text + fmt.Sprintf(", errors %v", r.Errors)
}

// cpuOfThisProcess returns the CPU time of this process so far.
func cpuOfThisProcess() cpuTime {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return cpuTime{}
	}
	return cpuTime{float64(usage.Utime.Nano()), float64(usage.Stime.Nano())}
}

func (c cpuTime) minus(earlier cpuTime) cpuTime {
	return cpuTime{c.UserNs - earlier.UserNs, c.SystemNs - earlier.SystemNs}
}
