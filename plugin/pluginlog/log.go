package pluginlog

import (
	"io"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
)

// Log collects the lines of one run.
type Log struct {
	path   string // empty: stderr
	level  logline.Level
	now    func() time.Time
	stderr io.Writer
	lines  []byte
}

// New opens nothing. file is a path, or "stderr", which empty and "stdout" mean too.
func New(file, level string, now func() time.Time, stderr io.Writer) *Log {
	least, _ := logline.ParseLevel(level)
	if strings.EqualFold(file, "stderr") || strings.EqualFold(file, "stdout") {
		file = ""
	}
	return &Log{path: file, level: least, now: now, stderr: stderr, lines: make([]byte, 0, 6<<10)}
}

// Line adds a line. UTC, because reading the zone file costs as much as writing it.
func (l *Log) Line(level logline.Level, caller, msg string) {
	if level >= l.level {
		l.lines = logline.End(logline.Append(l.lines, level, l.now().UTC(), caller, msg))
	}
}

// Error adds a line about a failure.
func (l *Log) Error(caller string, why cause.Code, msg string) {
	if logline.Error < l.level {
		return
	}
	l.lines = logline.Append(l.lines, logline.Error, l.now().UTC(), caller, msg)
	if why != "" {
		l.lines = logline.AppendString(l.lines, logline.KeyCause, string(why))
	}
	l.lines = logline.End(l.lines)
}

// Flush writes what was collected.
func (l *Log) Flush() {
	if len(l.lines) == 0 {
		return
	}
	if l.path == "" {
		_, _ = l.stderr.Write(l.lines)
	} else {
		_ = appendLog(l.path, l.lines, l.now)
	}
	l.lines = l.lines[:0]
}
