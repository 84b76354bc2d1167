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
	// What begins from here on counts.
	fromNs int64
	// What would begin from here on does not; MaxInt64 when a count ends the run.
	untilNs int64
	// How many operations may still be counted, when a count ends the run.
	limited bool
	budget  atomic.Int64
	// One for each thread, so that threads do not wait for each other.
	shards []*shard
}

// shard is what was recorded by the workers of one thread.
type shard struct {
	sync.Mutex
	recorder *recorder
	// When the last counted operation ended.
	lastNs int64
	// What the first failure said.
	firstFailure string
}

// start is what becomes of an operation that is about to begin.
type start int

const (
	// over: it does not begin.
	over start = iota
	// warmUp: it is driven and not counted.
	warmUp
	counted
)

func newCourse(s settings, threads int) *course {
	r := &course{base: time.Now(), fromNs: int64(s.warmup), untilNs: math.MaxInt64}
	if s.total > 0 {
		r.limited = true
		r.budget.Store(int64(s.total))
	} else {
		r.untilNs = int64(s.warmup + s.duration)
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
	if nowNs >= r.untilNs {
		return over, 0
	}
	if nowNs < r.fromNs {
		return warmUp, wanted
	}
	if r.limited {
		// What is left of less than nothing is nothing.
		left := r.budget.Add(-wanted) + wanted
		if left <= 0 {
			return over, 0
		}
		return counted, min(left, wanted)
	}
	return counted, wanted
}

// isOver says that the run is over, but for what is under way.
func (r *course) isOver() bool {
	return r.nowNs() >= r.untilNs || r.limited && r.budget.Load() <= 0
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

// fail counts a failed call, unless it falls into the warm-up.
func (r *course) fail(worker int, err error) {
	if r.nowNs() < r.fromNs {
		return
	}
	s := r.shard(worker)
	defer s.Unlock()
	s.recorder.errors[codeName(err)]++
	if s.firstFailure == "" {
		s.firstFailure = described(err)
	}
}

// merged is everything that was recorded, and how long that took: it ends with the last counted answer, and a run that
// was to last a time lasts it at least.
func (r *course) merged() (*shard, time.Duration) {
	all := r.newShard()
	for i := range r.shards {
		one := r.shard(i)
		all.recorder.merge(one.recorder)
		all.lastNs = max(all.lastNs, one.lastNs)
		if all.firstFailure == "" {
			all.firstFailure = one.firstFailure
		}
		one.Unlock()
	}
	untilNs := all.lastNs
	if r.untilNs != math.MaxInt64 {
		untilNs = max(untilNs, r.untilNs)
	}
	return all, time.Duration(untilNs - r.fromNs)
}
