package introspect

import (
	"errors"
	"time"
)

// Bounds of /v1/logs.
const (
	MaxLogLines     = 1000
	DefaultLogLines = 200
	MaxLogBytes     = 256 << 10 // all lines together
	MaxLogMatch     = 256       // bytes of LogQuery.Match
)

// ErrNoLogFile: the daemon logs to a stream, or to a file that does not exist.
var ErrNoLogFile = errors.New("there is no log file to read")

// LogQuery selects lines of the daemon's log.
type LogQuery struct {
	Lines int       // how many of the newest, 1 to MaxLogLines
	Level string    // debug, info, warn, error, fatal: that level and above; "" = all
	Since time.Time // no older lines; zero = all
	Match string    // only lines that contain this text; "" = all
}

// NodeLogs answers /v1/logs: the newest matching lines of the daemon's log, without sandbox ids
// and credentials.
type NodeLogs struct {
	APIVersion string   `json:"apiVersion"` // version of the document
	Kind       string   `json:"kind"`       // NodeLogs
	Path       string   `json:"path"`       // path of the log file, as the daemon sees it
	Lines      []string `json:"lines"`      // oldest first, as in the file except for removed secrets and sandbox ids
	Truncated  bool     `json:"truncated"`  // a limit was reached: older lines may match too
}
