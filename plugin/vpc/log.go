package vpc

import (
	"io"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
	"cnictl/plugin/netconf"
)

// pluginLog collects the lines of one run and writes them in one go. It never
// fails: a log that cannot be written is lost.
type pluginLog struct {
	path   string // empty: stderr
	level  logline.Level
	now    func() time.Time
	stderr io.Writer
	lines  []byte
}

func newLog(conf *netconf.NetConf, now func() time.Time, stderr io.Writer) *pluginLog {
	level, _ := logline.ParseLevel(conf.PluginLogLevel)
	l := &pluginLog{path: conf.PluginLogFile, level: level, now: now, stderr: stderr, lines: make([]byte, 0, 6<<10)}
	// Lines on standard output would corrupt the result, so both words mean stderr.
	if strings.EqualFold(l.path, "stderr") || strings.EqualFold(l.path, "stdout") {
		l.path = ""
	}
	return l
}

func (l *pluginLog) line(level logline.Level, caller, msg string) {
	if level < l.level {
		return
	}
	// UTC, because reading the zone file costs as much as writing the line.
	l.lines = logline.End(logline.Append(l.lines, level, l.now().UTC(), caller, msg))
}

func (l *pluginLog) debug(caller, msg string) { l.line(logline.Debug, caller, msg) }
func (l *pluginLog) info(caller, msg string)  { l.line(logline.Info, caller, msg) }
func (l *pluginLog) warn(caller, msg string)  { l.line(logline.Warn, caller, msg) }

// error tells of a failure. Its cause follows the original's members.
func (l *pluginLog) error(caller string, why cause.Code, msg string) {
	if logline.Error < l.level {
		return
	}
	l.lines = logline.Append(l.lines, logline.Error, l.now().UTC(), caller, msg)
	if why != "" {
		l.lines = logline.AppendString(l.lines, logline.KeyCause, string(why))
	}
	l.lines = logline.End(l.lines)
}

// flush writes what was collected.
func (l *pluginLog) flush() {
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

// Callers in log lines.
const (
	callerLog     = "vpc/log.go"
	callerAdd     = "vpc/add.go"
	callerDel     = "vpc/del.go"
	callerCheck   = "vpc/check.go"
	callerGC      = "vpc/gc.go"
	callerStatus  = "vpc/status.go"
	callerWire    = "vpc/wire.go"
	callerPolicy  = "vpc/policy.go"
	callerRecords = "vpc/records.go"
	callerDriver  = "podnet/apply.go"
)
