package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestTimedRunCountsOperationsThatEndInIt(t *testing.T) {
	r := newRunState(settings{warmup: 100, duration: 50}, 1)
	for _, c := range []struct {
		nowNs int64
		start start
		count int64
		// Whether an operation that started before and ended then counts.
		counts bool
	}{{0, counted, 16, false}, {99, counted, 16, false}, {100, counted, 16, true}, {149, counted, 16, true}, {150, over, 0, false}} {
		if start, count := r.start(c.nowNs, 16); start != c.start || count != c.count || r.counts(counted, c.nowNs) != c.counts {
			t.Errorf("at %d ns: %v, %d, %v", c.nowNs, start, count, r.counts(counted, c.nowNs))
		}
	}
	if _, took, _ := r.merged(); took != 50 {
		t.Errorf("measured for %d ns", took)
	}
}

func TestCountedRunCountsOperationsAfterWarmUp(t *testing.T) {
	r := newRunState(settings{warmup: 100, total: 20}, 1)
	if r.counts(warmUp, 120) || !r.counts(counted, 1<<40) {
		t.Errorf("%v, %v", r.counts(warmUp, 120), r.counts(counted, 1<<40))
	}
	s := r.shard(0)
	s.record(30, 4, 170)
	s.Unlock()
	r.callEnded()
	if _, took, drain := r.merged(); took != 70 || drain != 0 {
		t.Errorf("measured for %d ns, drained for %d ns", took, drain)
	}
}

func TestClientStreamsCountUntilLastResponse(t *testing.T) {
	r := newRunState(settings{call: clientStream, duration: 50}, 1)
	if start, _ := r.start(50, 16); start != over || !r.counts(counted, 1<<40) {
		t.Errorf("at 50 ns: %v, %v", start, r.counts(counted, 1<<40))
	}
	time.Sleep(time.Microsecond)
	r.callEnded()
	if _, took, drain := r.merged(); drain == 0 || took != 50+drain {
		t.Errorf("measured for %d ns, drained for %d ns", took, drain)
	}
	if _, known := r.measuredFor(); known {
		t.Error("the clock ends it")
	}
}

func TestLateFailureCountsIfTimedOut(t *testing.T) {
	r := newRunState(settings{warmup: 0, duration: 1}, 1)
	time.Sleep(time.Microsecond)
	r.fail(0, errEndedEarly, false)
	r.fail(0, errEndedEarly, true)
	if all, _, _ := r.merged(); all.recorder.errors["DATA_LOSS"] != 1 {
		t.Errorf("%v", all.recorder.errors)
	}
}

func TestTotalIsSpentExactlyAndNotInWarmUp(t *testing.T) {
	r := newRunState(settings{warmup: 100, total: 20}, 1)
	for i, want := range []struct {
		nowNs int64
		start start
		count int64
	}{{50, warmUp, 16}, {100, counted, 16}, {101, counted, 4}, {102, over, 0}} {
		if start, count := r.start(want.nowNs, 16); start != want.start || count != want.count {
			t.Errorf("step %d: %v, %d", i, start, count)
		}
	}
}

func TestOneWayMessagesHavePaceButNoLatency(t *testing.T) {
	r := newRecorder(time.Now())
	r.recordPace(320, 16)
	r.recordPace(0, 0)
	r.recordPace(5000, 16)
	want := pace{Mean: 166.25, GapMax: 5000, MessagesPerReading: 16}
	if p := r.pace(); r.messages != 32 || r.latency() != nil || *p != want {
		t.Errorf("%d messages, %+v, %+v", r.messages, p, r.latency())
	}
}

func TestMergedRecordersEqualOneRecorder(t *testing.T) {
	started := time.Now()
	even, odd, all := newRecorder(started), newRecorder(started), newRecorder(started)
	for ns := int64(1); ns <= 1000; ns++ {
		[]*recorder{even, odd}[ns%2].record(ns*10, 1)
		all.record(ns*10, 1)
	}
	odd.errors["UNAVAILABLE"] = 2
	even.merge(odd)
	if *even.latency() != *all.latency() || even.errors["UNAVAILABLE"] != 2 || len(even.spikes) != spikesMax {
		t.Errorf("%+v is not %+v", even.latency(), all.latency())
	}
	for i, s := range even.spikes {
		if s.TookNs != 10_000-10*int64(i) {
			t.Errorf("spike %d: %d ns", i, s.TookNs)
		}
	}
}

func TestOnlyEstablishedSocketsOfThisProcessCount(t *testing.T) {
	inodes := map[string]bool{"1001": true, "1002": true}
	tcp := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:C383 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1001 1 0 100 0 0 10 0
   1: 0100007F:9C40 0100007F:C383 01 00000000:00000000 00:00000000 00000000     0        0 1002 1 0 20 4 30 10 -1
   2: 0100007F:9C41 0100007F:C383 01 00000000:00000000 00:00000000 00000000     0        0 1003 1 0 20 4 30 10 -1
`
	unix := `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000003 00000000 00000000 0001 03 1001
0000000000000000: 00000003 00000000 00000000 0002 03 1002
0000000000000000: 00000002 00000000 00010000 0001 01 1002 /tmp/socket
`
	if tcpTable.count(tcp, inodes) != 1 || unixTable.count(unix, inodes) != 1 {
		t.Errorf("%d of TCP, %d Unix", tcpTable.count(tcp, inodes), unixTable.count(unix, inodes))
	}
}

func TestBidiWindowIsBoundedInBytesAndMessages(t *testing.T) {
	for size, want := range map[int]int64{0: 4096, 1024: 1024, 64 << 10: 16, 1 << 20: 2, 4 << 20: 2} {
		if got := outstanding(size); got != want {
			t.Errorf("%d bytes: %d messages", size, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	for text, addr := range map[string]string{
		"127.0.0.1:0": "127.0.0.1:0", "[::1]:1": "[::1]:1", "unix:/tmp/a b": "/tmp/a b", "unix-abstract:n": "@n",
		"": "", "host": "", ":1": "", "host:65536": "", "unix:": "", "unix-abstract:": "",
	} {
		if a, err := parseAddress(text); a.addr != addr || (err == nil) != (addr != "") {
			t.Errorf("`%s` is %+v, %v", text, a, err)
		}
	}
}

func TestSettingsHaveFourFields(t *testing.T) {
	for _, line := range append(tunedSettings(), stackDefaults()...) {
		for _, field := range []string{line.name, line.value, line.why} {
			if strings.ContainsAny(field, "\t\n") {
				t.Errorf("%+v", line)
			}
		}
		if line.name == "" || line.value == "" {
			t.Errorf("%+v", line)
		}
	}
	if bytes(streamWindow) != "1 MiB" || bytes(1<<10) != "1 KiB" || bytes(math.MaxInt32) != "2147483647 B" {
		t.Errorf("%s, %s, %s", bytes(streamWindow), bytes(1<<10), bytes(math.MaxInt32))
	}
}
