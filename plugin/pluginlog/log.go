package pluginlog

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/logfile"
)

// Log collects the lines of one run.
type Log struct {
	path   string // empty: stderr
	level  logline.Level
	now    func() time.Time
	stderr io.Writer
	lines  []byte
	caller [64]byte // buffer
}

// New opens no file. file is a path or "stderr"; empty and "stdout" also mean standard
// error.
func New(file, level string, now func() time.Time, stderr io.Writer) *Log {
	least, _ := logline.ParseLevel(level)
	if strings.EqualFold(file, "stderr") || strings.EqualFold(file, "stdout") {
		file = ""
	}
	return &Log{path: file, level: least, now: now, stderr: stderr, lines: make([]byte, 0, 6<<10)}
}

// Debug adds a line, as Info and Warn do. Each line names the source line that logged it.
func (l *Log) Debug(msg string) { l.line(logline.Debug, msg) }

// Info adds a line.
func (l *Log) Info(msg string) { l.line(logline.Info, msg) }

// Warn adds a line.
func (l *Log) Warn(msg string) { l.line(logline.Warn, msg) }

func (l *Log) line(level logline.Level, msg string) {
	if level >= l.level {
		l.begin(level, msg)
		l.lines = logline.End(l.lines)
	}
}

// Error adds a line about a failure. The cause comes after upstream's members.
func (l *Log) Error(why cause.Code, msg string) {
	if logline.Error >= l.level {
		l.errorLine(why, msg)
	}
}

func (l *Log) errorLine(why cause.Code, msg string) {
	l.begin(logline.Error, msg)
	if why != "" {
		l.lines = logline.AppendString(l.lines, logline.KeyCause, string(why))
	}
	l.lines = logline.End(l.lines)
}

// begin starts a line. Times are UTC because reading the zone file costs as much as
// writing the log. It must be called exactly two calls below the exported method.
func (l *Log) begin(level logline.Level, msg string) {
	var pc [1]uintptr
	var caller []byte
	if runtime.Callers(4, pc[:]) > 0 { // Callers, begin, line or errorLine, the exported method
		f, _ := runtime.CallersFrames(pc[:]).Next()
		caller = logline.AppendCaller(l.caller[:0], f.File, f.Line)
	}
	l.lines = logline.Append(l.lines, level, l.now().UTC(), string(caller), msg)
}

// Flush writes the collected lines. If the file is refused, one line on standard error says why:
// the container runtime logs that.
func (l *Log) Flush() {
	if len(l.lines) == 0 {
		return
	}
	if l.path == "" {
		_, _ = l.stderr.Write(l.lines)
	} else {
		err := appendLog(l.path, l.lines, l.now)
		if refused := (*logfile.Refused)(nil); errors.As(err, &refused) {
			_, _ = l.stderr.Write(logline.End(logline.Append(nil, logline.Warn, l.now().UTC(), "", "The log is lost: "+refused.Error())))
		}
	}
	l.lines = l.lines[:0]
}
