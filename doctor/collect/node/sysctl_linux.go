package node

import (
	"context"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/rtnl"
	"cnictl/doctor/collect/reading"
)

// sysctls reads the settings; for links, those for all, for new ones and for each interface. A
// kernel without IPv6 lacks the IPv6 settings.
func (c *collector) sysctls(context.Context) (map[string]string, error) {
	list, err := ask((*rtnl.Conn).Links)
	if err != nil {
		return nil, err
	}
	links := []string{"all", "default"}
	for _, l := range list {
		if l.Flags&unix.IFF_LOOPBACK == 0 && !reading.IsPodLink(l.Name) {
			links = append(links, l.Name)
		}
	}
	out := map[string]string{}
	for _, name := range reading.SysctlFiles(links) {
		text, readErr := c.read("/proc/sys/" + name)
		if readErr != nil {
			err = readErr
			continue
		}
		out[strings.ReplaceAll(name, "/", ".")] = strings.TrimSpace(string(text))
	}
	if len(out) == 0 {
		return nil, err
	}
	return out, nil
}
