package main

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// Longer latencies are counted as this value (one hour).
	latencyNsMax      = int64(time.Hour)
	significantDigits = 3
	// Number of largest latencies kept with their time.
	spikesMax = 10
)

// recorder counts and times operations in constant memory.
type recorder struct {
	// Start of the measured time.
	started   time.Time
	latencies *hdrhistogram.Histogram
	// Exact, unlike the histogram's bounds.
	minNs, maxNs int64
	sumNs        float64
	messages     uint64
	// One-way streams; their messages are included above.
	pacedMessages, messagesPerReading uint64
	pacedNs                           float64
	gapMaxNs                          int64
	// Calls that ended with OK, and the others by the canonical name of their status.
	calls  uint64
	errors map[string]uint64
	// Largest first.
	spikes []spike
}

// pace describes the intervals between messages of one-way streams, in ns.
type pace struct {
	Mean               float64 `json:"mean"`
	GapMax             int64   `json:"gap_max"`
	MessagesPerReading uint64  `json:"messages_per_reading"`
}

// spike is a large latency or gap, and when it ended, since the start of the measured time.
type spike struct {
	TookNs int64 `json:"took_ns"`
	AtNs   int64 `json:"at_ns"`
}

// latency is a distribution in ns; Min, Mean and Max are exact.
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

// record records count operations of latencyNs each.
func (r *recorder) record(latencyNs, count int64) {
	if count == 0 {
		return
	}
	// Fails only for values out of bounds.
	_ = r.latencies.RecordValues(min(latencyNs, latencyNsMax), count)
	if r.latencies.TotalCount() == count || latencyNs < r.minNs {
		r.minNs = latencyNs
	}
	r.maxNs = max(r.maxNs, latencyNs)
	r.sumNs += float64(latencyNs) * float64(count)
	r.messages += uint64(count)
	r.noteSpike(latencyNs)
}

// recordPace records count messages of a one-way stream in elapsedNs, between two readings of the clock.
func (r *recorder) recordPace(elapsedNs, count int64) {
	if count == 0 {
		return
	}
	r.messages += uint64(count)
	r.pacedMessages += uint64(count)
	r.messagesPerReading = max(r.messagesPerReading, uint64(count))
	r.pacedNs += float64(elapsedNs)
	r.gapMaxNs = max(r.gapMaxNs, elapsedNs)
	r.noteSpike(elapsedNs)
}

func (r *recorder) noteSpike(tookNs int64) {
	if len(r.spikes) < spikesMax || tookNs > r.spikes[spikesMax-1].TookNs {
		r.spike(spike{tookNs, int64(time.Since(r.started))})
	}
}

func (r *recorder) spike(s spike) {
	index, _ := slices.BinarySearchFunc(r.spikes, s, func(other, s spike) int {
		if other.TookNs >= s.TookNs {
			return -1
		}
		return 1
	})
	r.spikes = slices.Insert(r.spikes, index, s)
	r.spikes = r.spikes[:min(len(r.spikes), spikesMax)]
}

func (r *recorder) merge(other *recorder) {
	if other.latencies.TotalCount() > 0 && (r.latencies.TotalCount() == 0 || other.minNs < r.minNs) {
		r.minNs = other.minNs
	}
	r.latencies.Merge(other.latencies)
	r.maxNs = max(r.maxNs, other.maxNs)
	r.sumNs += other.sumNs
	r.messages += other.messages
	r.pacedMessages += other.pacedMessages
	r.messagesPerReading = max(r.messagesPerReading, other.messagesPerReading)
	r.pacedNs += other.pacedNs
	r.gapMaxNs = max(r.gapMaxNs, other.gapMaxNs)
	r.calls += other.calls
	for name, count := range other.errors {
		r.errors[name] += count
	}
	for _, s := range other.spikes {
		r.spike(s)
	}
}

// pace returns nil without messages of one-way streams.
func (r *recorder) pace() *pace {
	if r.pacedMessages == 0 {
		return nil
	}
	return &pace{r.pacedNs / float64(r.pacedMessages), r.gapMaxNs, r.messagesPerReading}
}

// latency returns nil without a successful operation that has a latency.
func (r *recorder) latency() *latency {
	if r.latencies.TotalCount() == 0 {
		return nil
	}
	percentile := func(p float64) int64 {
		return min(max(r.latencies.ValueAtQuantile(p), r.minNs), r.maxNs)
	}
	return &latency{
		Min: r.minNs, Mean: r.sumNs / float64(r.latencies.TotalCount()), Max: r.maxNs,
		P50: percentile(50), P90: percentile(90), P99: percentile(99),
		P999: percentile(99.9), P9999: percentile(99.99),
	}
}

// histogram returns the whole distribution as HdrHistogram V2 in base64.
func (r *recorder) histogram() string {
	encoded, err := r.latencies.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		// The field is optional in the schema.
		return ""
	}
	return string(encoded)
}
