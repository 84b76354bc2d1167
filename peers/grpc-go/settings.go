package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"time"
)

type callType string

const (
	unary        callType = "unary"
	clientStream callType = "client-stream"
	serverStream callType = "server-stream"
	bidiStream   callType = "bidi-stream"
	// A bidi stream with one message in flight.
	pingPong callType = "ping-pong"
)

// payloads returns the number of payloads that one operation sends and receives.
func (c callType) payloads() (sent, received uint64) {
	switch c {
	case clientStream:
		return 1, 0
	case serverStream:
		return 0, 1
	default:
		return 1, 1
	}
}

// settings are the settings of a run.
type settings struct {
	target      address
	call        callType
	size        int
	inFlight    int
	connections int
	warmup      time.Duration
	// Zero if a count ends the run.
	duration time.Duration
	// Zero if time ends the run.
	total uint64
	// Timeout of connecting, of a call, and of a stream's next message.
	timeout  time.Duration
	announce bool
	json     bool
}

// endsWithResponses reports whether the measured time ends with the last response after the duration: see "client-stream"
// in peers/README.md.
func (s settings) endsWithResponses() bool {
	return s.call == clientStream && s.total == 0
}

func readSettings(args []string) (settings, error) {
	s := settings{call: unary, duration: 10 * time.Second, warmup: time.Second, timeout: 10 * time.Second}
	format := "text"
	flags := newFlags("load")
	oneOf(flags, "call", (*string)(&s.call), string(unary), string(clientStream), string(serverStream), string(bidiStream), string(pingPong))
	oneOf(flags, "O", &format, "text", "json")
	integer(flags, "size", &s.size, 0, payloadBytesMax)
	integer(flags, "c", &s.inFlight, 1, 1<<20)
	s.connections = 1
	integer(flags, "connections", &s.connections, 1, 1<<16)
	span(flags, "z", &s.duration)
	flags.Uint64Var(&s.total, "n", 0, "")
	span(flags, "warmup", &s.warmup)
	span(flags, "timeout", &s.timeout)
	flags.BoolVar(&s.announce, "announce", false, "")
	variantFlag(flags)
	threadsFlag(flags)
	targets, err := parse(flags, args, 1)
	if err != nil {
		return s, err
	}
	if err := s.complete(flags, targets); err != nil {
		return s, misuse{err}
	}
	s.json = format == "json"
	return s, nil
}

// complete fills in settings that depend on the given flags.
func (s *settings) complete(flags *flag.FlagSet, targets []string) error {
	isSet := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { isSet[f.Name] = true })
	if len(targets) == 0 {
		return errors.New("load needs a TARGET")
	}
	if isSet["n"] {
		if isSet["z"] {
			return errors.New("-z and -n: either a duration or a total ends the run")
		}
		if s.total == 0 || s.total > math.MaxInt64 {
			return fmt.Errorf("-n %d: from 1 to %d", s.total, math.MaxInt64)
		}
		s.duration = 0
		if !isSet["warmup"] {
			s.warmup = 0
		}
	}
	if !isSet["c"] {
		s.inFlight = s.connections
		if s.call == unary {
			s.inFlight = max(64, s.connections)
		}
	}
	if s.connections > s.inFlight {
		return fmt.Errorf("-c %d --connections %d: each connection needs a call in flight", s.inFlight, s.connections)
	}
	var err error
	s.target, err = parseAddress(targets[0])
	return err
}

func oneOf(flags *flag.FlagSet, name string, value *string, choices ...string) {
	flags.Func(name, "", func(text string) error {
		for _, choice := range choices {
			if text == choice {
				*value = text
				return nil
			}
		}
		return fmt.Errorf("one of %v", choices)
	})
}

func integer(flags *flag.FlagSet, name string, value *int, least, most int) {
	flags.Func(name, "", func(text string) error {
		number, err := strconv.Atoi(text)
		if err != nil || number < least || number > most {
			return fmt.Errorf("a number from %d to %d", least, most)
		}
		*value = number
		return nil
	})
}

// span accepts a duration of at most a year, so that sums of times cannot overflow.
func span(flags *flag.FlagSet, name string, value *time.Duration) {
	flags.Func(name, "", func(text string) error {
		duration, err := time.ParseDuration(text)
		if err != nil || duration < 0 || duration > 366*24*time.Hour {
			return errors.New("a duration such as 200ms or 1.5s")
		}
		*value = duration
		return nil
	})
}
