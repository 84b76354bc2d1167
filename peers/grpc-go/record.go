package main

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// What takes longer is counted as this long (one hour).
	latencyNsMax      = int64(time.Hour)
	significantDigits = 3
	// How many of the largest latencies are kept with their time.
	spikesMax = 10
)

// recorder counts and times operations in constant memory.
type recorder struct {
	// When measuring began.
	started   time.Time
	latencies *hdrhistogram.Histogram
	// Exact, unlike the histogram's bounds.
	minNs, maxNs int64
	sumNs        float64
	messages     uint64
	// Calls that ended with OK, and the others by the canonical name of their status.
	calls  uint64
	errors map[string]uint64
	// Largest first.
	spikes []spike
}

// spike is a large latency and when it ended, counted from where measuring began.
type spike struct {
	LatencyNs int64 `json:"latency_ns"`
	AtNs      int64 `json:"at_ns"`
}

// latency is a distribution, ns; Min, Mean and Max are exact.
type latency struct {
	Min   int64   `json:"min"`
	Mean  float64 `json:"mean"`
	P50   int64   `json:"p50"`
	P90   int64   `json:"p90"`
	P99   int64   `json:"p99"`
	P999  int64   `json:"p99_9"`
	P9999 int64   `json:"p99_99"`
	Max   int64   `json:"max"`
}

func newRecorder(started time.Time) *recorder {
	return &recorder{
		started:   started,
		latencies: hdrhistogram.New(1, latencyNsMax, significantDigits),
		errors:    map[string]uint64{},
		spikes:    []spike{},
	}
}

// record says that so many operations took latencyNs each.
func (r *recorder) record(latencyNs, count int64) {
	if count == 0 {
		return
	}
	// It fails for what is beyond its bounds only.
	_ = r.latencies.RecordValues(min(latencyNs, latencyNsMax), count)
	if r.messages == 0 || latencyNs < r.minNs {
		r.minNs = latencyNs
	}
	r.maxNs = max(r.maxNs, latencyNs)
	r.sumNs += float64(latencyNs) * float64(count)
	r.messages += uint64(count)
	if len(r.spikes) < spikesMax || latencyNs > r.spikes[spikesMax-1].LatencyNs {
		r.spike(spike{latencyNs, int64(time.Since(r.started))})
	}
}

func (r *recorder) spike(s spike) {
	place, _ := slices.BinarySearchFunc(r.spikes, s, func(other, s spike) int {
		if other.LatencyNs >= s.LatencyNs {
			return -1
		}
		return 1
	})
	r.spikes = slices.Insert(r.spikes, place, s)
	r.spikes = r.spikes[:min(len(r.spikes), spikesMax)]
}

func (r *recorder) merge(other *recorder) {
	r.latencies.Merge(other.latencies)
	if other.messages > 0 && (r.messages == 0 || other.minNs < r.minNs) {
		r.minNs = other.minNs
	}
	r.maxNs = max(r.maxNs, other.maxNs)
	r.sumNs += other.sumNs
	r.messages += other.messages
	r.calls += other.calls
	for name, count := range other.errors {
		r.errors[name] += count
	}
	for _, s := range other.spikes {
		r.spike(s)
	}
}

// latency is nil when nothing succeeded.
func (r *recorder) latency() *latency {
	if r.messages == 0 {
		return nil
	}
	percentile := func(p float64) int64 {
		return min(max(r.latencies.ValueAtQuantile(p), r.minNs), r.maxNs)
	}
	return &latency{
		Min: r.minNs, Mean: r.sumNs / float64(r.messages), Max: r.maxNs,
		P50: percentile(50), P90: percentile(90), P99: percentile(99),
		P999: percentile(99.9), P9999: percentile(99.99),
	}
}

// histogram is the whole distribution as HdrHistogram V2 in base64.
func (r *recorder) histogram() string {
	encoded, err := r.latencies.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		// The schema lets it be missing.
		return ""
	}
	return string(encoded)
}
