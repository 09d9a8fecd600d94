package vpc

import (
	"io"
	"time"

	"cnictl/plugin/netconf"
	"cnictl/plugin/pluginlog"
)

// newLog is the log of one run.
func newLog(conf *netconf.NetConf, now func() time.Time, stderr io.Writer) *pluginlog.Log {
	return pluginlog.New(conf.PluginLogFile, conf.PluginLogLevel, now, stderr)
}
