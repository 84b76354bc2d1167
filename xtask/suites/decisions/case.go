package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	// A stopped server closes its connections so much after GOAWAY, and a client knows it as much later.
	drainTime = 50 * time.Millisecond
	// A restarted server is connected again after gRPC's backoff, at most 1.2 s.
	settleLimit    = 10 * time.Second
	settlePause    = 5 * time.Millisecond
	timeoutDefault = 5 * time.Second
)

// eventCase is a script for servers, and the calls of a client.
type eventCase struct {
	Name string `json:"name"`
	// The service config; `{}` by default.
	Config json.RawMessage `json:"config"`
	// A script for each server: an action per request, in order of arrival. The last one repeats.
	Servers [][]action `json:"servers"`
	// The health of each server as grpc.health.v1 names it; UNIMPLEMENTED by default: no health service.
	Health []string `json:"healths"`
	// The events in their order; one call by default.
	Steps []step `json:"steps"`
	// Deadline of each call; 5 s by default.
	TimeoutMs int `json:"timeout_ms"`
	// Records which attempts came at least so much later than the one before.
	PauseMs int `json:"pause_ms"`
	// The calls have streams of requests and responses, of two messages.
	IsStream bool       `json:"stream"`
	Deviates *deviation `json:"deviates"`
}

// step is one event: one of its members is set.
type step struct {
	// The client makes so many calls, one after the other.
	Calls int `json:"calls"`
	// They have different keys, in the header x-key.
	HasKeys bool `json:"keys"`
	// Records only the share of each code and server in percent, rounded to 10.
	IsShare bool `json:"share"`
	// Records nothing.
	IsQuiet bool `json:"quiet"`
	// The client calls until each server that is up has got one; these calls do not count.
	Settle bool `json:"settle"`
	// This server stops gracefully, and starts again.
	Stop  *int `json:"stop"`
	Start *int `json:"start"`
	// This server starts after 300 ms.
	StartsLate *int `json:"starts_late"`
	// Time passes.
	WaitMs int `json:"wait_ms"`
	// A server reports this health from now on.
	Health *healthChange `json:"health"`
}

// healthChange is a server's new status.
type healthChange struct {
	Server int    `json:"server"`
	Status string `json:"status"`
}

const lateness = 300 * time.Millisecond

// observe returns what the client did: a line for each call, its code and attempts. The servers get the addresses, or
// choose them if these are empty.
func (c eventCase) observe(of client, addresses []string) (string, error) {
	record := &recorder{pause: time.Duration(c.PauseMs) * time.Millisecond}
	servers := make([]*server, len(c.Servers))
	for i, script := range c.Servers {
		servers[i] = &server{index: i, address: addresses[i], script: script, record: record}
		if i < len(c.Health) {
			servers[i].health = c.Health[i]
		}
		if err := servers[i].start(); err != nil {
			return "", err
		}
		defer servers[i].close()
		addresses[i] = servers[i].address
	}
	config := string(c.Config)
	if config == "" {
		config = "{}"
	}
	if err := of.open(addresses, config); err != nil {
		return "", fmt.Errorf("the service config was rejected: %w", err)
	}
	steps := c.Steps
	if len(steps) == 0 {
		steps = []step{{Calls: 1}}
	}
	var lines []string
	for _, s := range steps {
		more, err := s.take(c, of, servers, record)
		if err != nil {
			return "", err
		}
		lines = append(lines, renamed(more, c.keepsNames())...)
	}
	return strings.Join(lines, "\n"), nil
}

// keepsNames tells whether the policy determines the first server. round_robin starts with any, also when the servers
// have changed.
func (c eventCase) keepsNames() bool {
	return !strings.Contains(string(c.Config), `"round_robin"`)
}

func (s step) take(c eventCase, of client, servers []*server, record *recorder) ([]string, error) {
	timeout := timeoutDefault
	if c.TimeoutMs > 0 {
		timeout = time.Duration(c.TimeoutMs) * time.Millisecond
	}
	switch {
	case s.Settle:
		return nil, settle(of, servers, record)
	case s.Stop != nil:
		servers[*s.Stop].stop()
		time.Sleep(2 * drainTime)
	case s.Start != nil:
		return nil, servers[*s.Start].start()
	case s.StartsLate != nil:
		time.AfterFunc(lateness, func() { _ = servers[*s.StartsLate].start() })
	case s.Health != nil:
		servers[s.Health.Server].setHealth(s.Health.Status)
	case s.WaitMs > 0:
		time.Sleep(time.Duration(s.WaitMs) * time.Millisecond)
	}
	var lines []string
	for i := range s.Calls {
		record.take()
		key := ""
		if s.HasKeys {
			key = fmt.Sprintf("key %d", i)
		}
		code, err := of.call(timeout, c.IsStream, key)
		if err != nil {
			return nil, err
		}
		lines = append(lines, strings.TrimSpace(code+" "+record.take()))
	}
	switch {
	case s.IsQuiet:
		return nil, nil
	case s.IsShare:
		return shares(lines), nil
	}
	return lines, nil
}

// shares returns each line that occurs, with its share of all.
func shares(lines []string) []string {
	counts := map[string]int{}
	for _, line := range lines {
		counts[line]++
	}
	var all []string
	for line, count := range counts {
		tens := math.Round(float64(count) / float64(len(lines)) * 10)
		all = append(all, fmt.Sprintf("%s: %.0f %%", line, tens*10))
	}
	slices.Sort(all)
	return all
}

// settle calls until each server that is up has got a call in one round.
func settle(of client, servers []*server, record *recorder) error {
	deadline := time.Now().Add(settleLimit)
	for {
		record.take()
		missing := 0
		for range servers {
			if _, err := of.call(timeoutDefault, false, ""); err != nil {
				return err
			}
		}
		got := record.take()
		for _, server := range servers {
			if server.isUp() && !strings.Contains(got, server.name()) {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s, %d servers got no call", settleLimit, missing)
		}
		time.Sleep(settlePause)
	}
}

// renamed names servers in the order of their first attempt of a step, unless their names are to be kept.
func renamed(lines []string, keeps bool) []string {
	if keeps {
		return lines
	}
	names := map[string]string{}
	for i, line := range lines {
		words := strings.Fields(line)
		for j, word := range words[1:] {
			name, rest, has := strings.Cut(word, "+")
			if !strings.HasPrefix(name, "server") {
				continue
			}
			if names[name] == "" {
				names[name] = fmt.Sprintf("server%c", 'A'+len(names))
			}
			words[j+1] = names[name]
			if has {
				words[j+1] += "+" + rest
			}
		}
		lines[i] = strings.Join(words, " ")
	}
	return lines
}
