package node

import (
	"context"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/rtnl"
	"cnictl/doctor/reading"
)

// Settings that the daemon, the init container or the host make, below /proc/sys.
var (
	settings      = []string{"net/ipv4/ip_forward", "net/ipv4/tcp_early_demux"}
	linkSettings  = []string{"rp_filter", "send_redirects", "forwarding"}                   // net/ipv4/conf/LINK
	linkSettings6 = []string{"accept_ra", "accept_redirects", "disable_ipv6", "forwarding"} // net/ipv6/conf/LINK
)

// sysctls reads the settings, those of links for all, for new ones and for each interface.
// A kernel without IPv6 has none of its.
func (c *collector) sysctls(context.Context) (map[string]string, error) {
	list, err := ask((*rtnl.Conn).Links)
	if err != nil {
		return nil, err
	}
	names := settings
	links := []string{"all", "default"}
	for _, l := range list {
		if l.Flags&unix.IFF_LOOPBACK == 0 && !reading.IsPodLink(l.Name) {
			links = append(links, l.Name)
		}
	}
	for _, link := range links {
		for _, s := range linkSettings {
			names = append(names, path.Join("net/ipv4/conf", link, s))
		}
		for _, s := range linkSettings6 {
			names = append(names, path.Join("net/ipv6/conf", link, s))
		}
	}
	out := map[string]string{}
	for _, name := range names {
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
