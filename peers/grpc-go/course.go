package main

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// course is what the workers of one run share: its clock, when it is over, and where they record. Times are ns since
// the warm-up began.
type course struct {
	base time.Time
	// The measured time begins.
	fromNs int64
	// Nothing begins any more; MaxInt64 when a count ends the run.
	overNs int64
	// The measured time ends; MaxInt64 when it does so with the last answer.
	untilNs int64
	// How many operations may still be counted, when a count ends the run.
	limited bool
	budget  atomic.Int64
	// When a call ended last.
	callEndedNs atomic.Int64
	// One for each thread, so that threads do not wait for each other.
	shards []*shard
}

// shard is what was recorded by the workers of one thread.
type shard struct {
	sync.Mutex
	recorder *recorder
	// When the last operation that counts ended.
	lastNs int64
	// What the first failure said.
	firstFailure string
}

// start is what becomes of an operation that is about to begin.
type start int

const (
	// over: it does not begin.
	over start = iota
	// warmUp: it is driven, and does not count: the warm-up of a run by number.
	warmUp
	// counted: it counts if it ends within the measured time.
	counted
)

func newCourse(s settings, threads int) *course {
	r := &course{base: time.Now(), fromNs: int64(s.warmup), overNs: math.MaxInt64, untilNs: math.MaxInt64}
	if s.total > 0 {
		r.limited = true
		r.budget.Store(int64(s.total))
	} else {
		r.overNs = int64(s.warmup + s.duration)
		if !s.endsWithAnswers() {
			r.untilNs = r.overNs
		}
	}
	for range threads {
		r.shards = append(r.shards, r.newShard())
	}
	return r
}

func (r *course) newShard() *shard {
	return &shard{recorder: newRecorder(r.measuredFrom()), lastNs: r.fromNs}
}

func (r *course) nowNs() int64 {
	return int64(time.Since(r.base))
}

func (r *course) measuredFrom() time.Time {
	return r.base.Add(time.Duration(r.fromNs))
}

// start says whether an operation may begin, or how many of a stride of them.
func (r *course) start(nowNs, wanted int64) (start, int64) {
	if nowNs >= r.overNs {
		return over, 0
	}
	if r.limited {
		if nowNs < r.fromNs {
			return warmUp, wanted
		}
		// What is left of less than nothing is nothing.
		left := r.budget.Add(-wanted) + wanted
		if left <= 0 {
			return over, 0
		}
		return counted, min(left, wanted)
	}
	return counted, wanted
}

// counts says whether what began with start does, as it ended at endedNs.
func (r *course) counts(s start, endedNs int64) bool {
	return s == counted && r.isMeasured(endedNs)
}

// isMeasured says that a moment is within the measured time. One that ends with the last answer has no end before.
func (r *course) isMeasured(atNs int64) bool {
	return r.fromNs <= atNs && atNs < r.untilNs
}

// measuredFor is how long the measured time still lasts; not known when it ends with the last answer.
func (r *course) measuredFor() (time.Duration, bool) {
	return time.Until(r.base.Add(time.Duration(r.untilNs))), r.endsByClock()
}

// endsByClock says that the clock ends the measured time, not the last answer.
func (r *course) endsByClock() bool {
	return r.untilNs != math.MaxInt64
}

// callEnded says that a call has ended, in whatever way.
func (r *course) callEnded() {
	nowNs := r.nowNs()
	for {
		last := r.callEndedNs.Load()
		if nowNs <= last || r.callEndedNs.CompareAndSwap(last, nowNs) {
			return
		}
	}
}

// isOver says that the run is over, but for what is under way.
func (r *course) isOver() bool {
	return r.nowNs() >= r.overNs || r.limited && r.budget.Load() <= 0
}

// shard is where a worker records; locked.
func (r *course) shard(worker int) *shard {
	s := r.shards[worker%len(r.shards)]
	s.Lock()
	return s
}

// record counts operations that succeeded, the last ending at endedNs.
func (s *shard) record(latencyNs, count, endedNs int64) {
	s.recorder.record(latencyNs, count)
	s.lastNs = max(s.lastNs, endedNs)
}

// fail counts a call that failed, if that falls into the measured time, or behind it if it was given up.
func (r *course) fail(worker int, err error, givenUp bool) {
	nowNs := r.nowNs()
	if !r.isMeasured(nowNs) && (!givenUp || nowNs < r.fromNs) {
		return
	}
	s := r.shard(worker)
	defer s.Unlock()
	s.recorder.errors[codeName(err)]++
	if s.firstFailure == "" {
		s.firstFailure = described(err)
	}
}

// merged is everything that was recorded; the measured time, which ends with the last counted answer in a run by number;
// and the drain, from the end of the time that was asked for until the last call under way had ended, which such a run has
// not.
func (r *course) merged() (all *shard, took, drain time.Duration) {
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
