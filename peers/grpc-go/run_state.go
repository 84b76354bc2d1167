package main

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// runState is the state shared by the workers of a run: its clock, its end, and their records. Times are ns since the
// start of the warm-up.
type runState struct {
	base time.Time
	// Start of the measured time.
	fromNs int64
	// No operation starts from here on; MaxInt64 if a count ends the run.
	overNs int64
	// End of the measured time; MaxInt64 if the last response ends it.
	untilNs int64
	// Operations that may still be counted, if a count ends the run.
	limited bool
	budget  atomic.Int64
	// End of the last call.
	callEndedNs atomic.Int64
	// One per thread, to avoid contention.
	shards []*shard
}

// shard holds the records of the workers of one thread.
type shard struct {
	sync.Mutex
	recorder *recorder
	// End of the last operation that counts.
	lastNs int64
	// Message of the first failure.
	firstFailure string
}

// start is the fate of an operation about to start.
type start int

const (
	// over: does not start.
	over start = iota
	// warmUp: runs but does not count; the warm-up of a run by number.
	warmUp
	// counted: counts if it ends within the measured time.
	counted
)

func newRunState(s settings, threads int) *runState {
	r := &runState{base: time.Now(), fromNs: int64(s.warmup), overNs: math.MaxInt64, untilNs: math.MaxInt64}
	if s.total > 0 {
		r.limited = true
		r.budget.Store(int64(s.total))
	} else {
		r.overNs = int64(s.warmup + s.duration)
		if !s.endsWithResponses() {
			r.untilNs = r.overNs
		}
	}
	for range threads {
		r.shards = append(r.shards, r.newShard())
	}
	return r
}

func (r *runState) newShard() *shard {
	return &shard{recorder: newRecorder(r.measuredFrom()), lastNs: r.fromNs}
}

func (r *runState) nowNs() int64 {
	return int64(time.Since(r.base))
}

func (r *runState) measuredFrom() time.Time {
	return r.base.Add(time.Duration(r.fromNs))
}

// start decides whether an operation, or how many of a stride, may start.
func (r *runState) start(nowNs, wanted int64) (start, int64) {
	if nowNs >= r.overNs {
		return over, 0
	}
	if r.limited {
		if nowNs < r.fromNs {
			return warmUp, wanted
		}
		// The budget may become negative.
		remaining := r.budget.Add(-wanted) + wanted
		if remaining <= 0 {
			return over, 0
		}
		return counted, min(remaining, wanted)
	}
	return counted, wanted
}

// counts reports whether an operation that started with s and ended at endedNs counts.
func (r *runState) counts(s start, endedNs int64) bool {
	return s == counted && r.isMeasured(endedNs)
}

// isMeasured reports whether a moment is within the measured time, which is open-ended if the last response ends it.
func (r *runState) isMeasured(atNs int64) bool {
	return r.fromNs <= atNs && atNs < r.untilNs
}

// measuredFor returns the rest of the measured time; unknown if the last response ends it.
func (r *runState) measuredFor() (time.Duration, bool) {
	return time.Until(r.base.Add(time.Duration(r.untilNs))), r.endsByClock()
}

// endsByClock reports whether the clock, not the last response, ends the measured time.
func (r *runState) endsByClock() bool {
	return r.untilNs != math.MaxInt64
}

// callEnded records that a call has ended, successfully or not.
func (r *runState) callEnded() {
	nowNs := r.nowNs()
	for {
		last := r.callEndedNs.Load()
		if nowNs <= last || r.callEndedNs.CompareAndSwap(last, nowNs) {
			return
		}
	}
}

// isOver reports whether no further operation may start.
func (r *runState) isOver() bool {
	return r.nowNs() >= r.overNs || r.limited && r.budget.Load() <= 0
}

// shard returns the locked records of a worker.
func (r *runState) shard(worker int) *shard {
	s := r.shards[worker%len(r.shards)]
	s.Lock()
	return s
}

// record records operations, the last of which ended at endedNs.
func (s *shard) record(latencyNs, count, endedNs int64) {
	s.recorder.record(latencyNs, count)
	s.lastNs = max(s.lastNs, endedNs)
}

// fail counts a call that failed within the measured time, or timed out within or after it.
func (r *runState) fail(worker int, err error, timedOut bool) {
	nowNs := r.nowNs()
	if !r.isMeasured(nowNs) && (!timedOut || nowNs < r.fromNs) {
		return
	}
	s := r.shard(worker)
	defer s.Unlock()
	s.recorder.errors[codeName(err)]++
	if s.firstFailure == "" {
		s.firstFailure = described(err)
	}
}

// merged returns all records, the measured time and the drain. In a run by number, the last counted response ends the
// measured time. The drain is from the end of the requested time to the end of the last call in flight; zero in a run
// by number.
func (r *runState) merged() (all *shard, took, drain time.Duration) {
	all = r.newShard()
	for i := range r.shards {
		one := r.shard(i)
		all.recorder.merge(one.recorder)
		all.lastNs = max(all.lastNs, one.lastNs)
		if all.firstFailure == "" {
			all.firstFailure = one.firstFailure
		}
		one.Unlock()
	}
	if r.limited {
		return all, time.Duration(all.lastNs - r.fromNs), 0
	}
	took, drain = time.Duration(r.overNs-r.fromNs), time.Duration(max(r.callEndedNs.Load()-r.overNs, 0))
	if !r.endsByClock() {
		took += drain
	}
	return all, took, drain
}
