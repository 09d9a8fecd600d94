package vpc

import (
	"io"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
	"cnictl/plugin/netconf"
	"cnictl/plugin/pluginlog"
)

// pluginLog is the log of one run.
type pluginLog struct{ lines *pluginlog.Log }

func newLog(conf *netconf.NetConf, now func() time.Time, stderr io.Writer) *pluginLog {
	return &pluginLog{pluginlog.New(conf.PluginLogFile, conf.PluginLogLevel, now, stderr)}
}

func (l *pluginLog) debug(caller, msg string) { l.lines.Line(logline.Debug, caller, msg) }
func (l *pluginLog) info(caller, msg string)  { l.lines.Line(logline.Info, caller, msg) }
func (l *pluginLog) warn(caller, msg string)  { l.lines.Line(logline.Warn, caller, msg) }

// error tells of a failure. Its cause follows the original's members.
func (l *pluginLog) error(caller string, why cause.Code, msg string) {
	l.lines.Error(caller, why, msg)
}

// flush writes what was collected.
func (l *pluginLog) flush() { l.lines.Flush() }

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
