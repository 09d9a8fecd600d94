// Package gotest reads the output of `go test -json`.
package gotest

import (
	"bufio"
	"encoding/json"
	"io"
)

// Event is a line of `go test -json` (see `go doc test2json`).
type Event struct {
	Action      string
	Package     string
	ImportPath  string // set instead of Package for build output
	Test        string
	Output      string
	Elapsed     float64 // seconds
	FailedBuild string
}

// Read calls add for each event, and other for what the go command itself sometimes prints as
// plain lines ("go: downloading ...").
func Read(r io.Reader, add func(Event), other func(line string)) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var e Event
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			other(sc.Text())
			continue
		}
		add(e)
	}
	return sc.Err()
}
