package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// The contents of an exposition: families by name, and samples.
type exposition struct {
	ContentType string            `json:"content_type"`
	Kinds       map[string]string `json:"kinds"`
	Units       map[string]string `json:"units"`
	Helps       map[string]string `json:"helps"`
	Samples     []sample          `json:"samples"`
}

type sample struct {
	Labels map[string]string `json:"labels"`
	Value  float64           `json:"value"`
}

// Asks for the format with the header that Prometheus sends, reads the response and lints it.
func scrape(url, accept string) (faults []string) {
	text, contentType, err := get(url, accept)
	if err != nil {
		return []string{err.Error()}
	}
	read, err := parse(text, contentType)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", contentType, err)}
	}
	// promtool's linter knows only the text format.
	if strings.HasPrefix(contentType, "text/plain") {
		problems, err := promlint.New(bytes.NewReader(text)).Lint()
		if err != nil {
			return []string{err.Error()}
		}
		for _, problem := range problems {
			faults = append(faults, fmt.Sprintf("%s: %s", problem.Metric, problem.Text))
		}
	}
	if len(faults) == 0 {
		json.NewEncoder(os.Stdout).Encode(read)
	}
	return faults
}

func get(url, accept string) ([]byte, string, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Accept", accept)
	transport := &http.Transport{}
	transport.RegisterProtocol("file", http.NewFileTransport(http.Dir("/")))
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, "", errors.New(response.Status)
	}
	text, err := io.ReadAll(response.Body)
	return text, response.Header.Get("Content-Type"), err
}

func parse(text []byte, contentType string) (*exposition, error) {
	parser, err := textparse.New(text, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return nil, err
	}
	read := &exposition{contentType, map[string]string{}, map[string]string{}, map[string]string{}, nil}
	known := map[string]bool{}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		if err != nil {
			return nil, err
		}
		switch entry {
		case textparse.EntryType:
			name, kind := parser.Type()
			read.Kinds[string(name)] = string(kind)
		case textparse.EntryUnit:
			name, unit := parser.Unit()
			read.Units[string(name)] = string(unit)
		case textparse.EntryHelp:
			name, help := parser.Help()
			read.Helps[string(name)] = string(help)
		case textparse.EntrySeries:
			var all labels.Labels
			_, _, value := parser.Series()
			parser.Labels(&all)
			if known[all.String()] {
				return nil, fmt.Errorf("%s is there twice", all)
			}
			known[all.String()] = true
			read.Samples = append(read.Samples, sample{all.Map(), value})
		}
	}
}
