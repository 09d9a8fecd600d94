package netconf

import (
	"strconv"
	"strings"

	"cnictl/daemon/api/logline"
)

// Replaced is a setting with an invalid value that is not an error, because upstream
// tolerates it.
type Replaced struct {
	Key      string
	Value    string
	Accepted string
	Used     string // what is used instead
}

// Replaced lists the settings whose values are not used as given.
func (c *NetConf) Replaced() []Replaced {
	var out []Replaced
	if mtu, ok := c.PodMTU(); !ok {
		out = append(out, Replaced{"mtu", c.MTU, strconv.Itoa(minMTU) + " to " + strconv.Itoa(maxMTU), strconv.Itoa(mtu)})
	}
	if c.PodSGEnforcingMode != "strict" && c.PodSGEnforcingMode != "standard" {
		out = append(out, Replaced{"podSGEnforcingMode", c.PodSGEnforcingMode, "strict or standard",
			"strict, which matters to pods with a branch ENI only"})
	}
	if _, ok := logline.ParseLevel(c.PluginLogLevel); !ok && c.PluginLogLevel != "" {
		out = append(out, Replaced{"pluginLogLevel", c.PluginLogLevel, "debug, info, warn, error or fatal", "debug"})
	}
	if strings.EqualFold(c.PluginLogFile, "stdout") {
		out = append(out, Replaced{"pluginLogFile", c.PluginLogFile, "a path or stderr", "stderr, because standard output carries the result"})
	}
	return out
}
