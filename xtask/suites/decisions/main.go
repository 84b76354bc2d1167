// decisions has two clients experience the same events: grpc-go's, and one that it starts. It compares their attempts
// and outcomes, and which service configs they accept. Then each balances by the load that the other stack's servers
// report.
//
// usage: decisions CASES.json CLIENT
//
// CASES.json has events and service configs. Each case that differs must be listed as a deviation, with a reason.
// CLIENT is a program that reads requests from stdin, one JSON object per line, and answers each with one.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// suite is the table of cases.
type suite struct {
	Events  []eventCase  `json:"events"`
	Configs []configCase `json:"configs"`
}

// deviation is what our client does differently, and why.
type deviation struct {
	Ours   string `json:"ours"`
	Reason string `json:"reason"`
}

// configCase is a service config that a client accepts or rejects. Text is for what is no JSON.
type configCase struct {
	Config   json.RawMessage `json:"config"`
	Text     *string         `json:"text"`
	Deviates *deviation      `json:"deviates"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: decisions CASES.json CLIENT")
		os.Exit(2)
	}
	failed, err := run(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || failed > 0 {
		os.Exit(1)
	}
}

func run(path, program string) (failed int, err error) {
	var s suite
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	ours, err := startCommand(program)
	if err != nil {
		return 0, err
	}
	defer ours.end()
	reference := &grpcGo{}
	for _, c := range s.Events {
		// Both clients find the servers at the same addresses: rings are made of them.
		addresses := make([]string, len(c.Servers))
		theirs, err := c.observe(reference, addresses)
		reference.close()
		if err != nil {
			return failed, fmt.Errorf("%s, grpc-go: %w", c.Name, err)
		}
		mine, err := c.observe(ours, addresses)
		if err != nil {
			return failed, fmt.Errorf("%s, ours: %w", c.Name, err)
		}
		failed += report(c.Name, theirs, mine, c.Deviates)
	}
	for _, c := range s.Configs {
		name := c.text()
		theirs, err := verdict(reference, name)
		if err != nil {
			return failed, err
		}
		mine, err := verdict(ours, name)
		if err != nil {
			return failed, err
		}
		failed += report(name, theirs, mine, c.Deviates)
	}
	more, err := observeReports(reference, ours)
	return failed + more, err
}

func (c configCase) text() string {
	if c.Text != nil {
		return *c.Text
	}
	return string(c.Config)
}

func verdict(of client, config string) (string, error) {
	err := of.open([]string{}, config)
	if rejected := (rejection{}); errors.As(err, &rejected) {
		return "rejected", nil
	}
	return "accepted", err
}

// report prints one line, with the reason of a failure. It returns 1 for a failure.
func report(name, theirs, mine string, deviates *deviation) int {
	name = strings.Join(strings.Fields(name), " ")
	var why string
	switch {
	case deviates == nil && mine != theirs:
		why = "grpc-go: " + theirs + "\n  ours:    " + mine
	case deviates != nil && mine == theirs:
		why = "listed as a deviation, but both: " + mine
	case deviates != nil && mine != deviates.Ours:
		why = "deviation listed as: " + deviates.Ours + "\n  ours:                " + mine
	case deviates != nil && deviates.Reason == "":
		why = "the deviation has no reason"
	}
	if why != "" {
		fmt.Printf("FAIL %s\n  %s\n", name, why)
		return 1
	}
	kind := "ok  "
	if deviates != nil {
		kind = "differs"
	}
	fmt.Printf("%s %s: %s\n", kind, name, strings.ReplaceAll(mine, "\n", "; "))
	return 0
}
