package nodeinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cnictl/daemon/config"
	"cnictl/daemon/hostnet/rules"
)

// setting is a kernel setting of a node.
type setting struct {
	rules.Sysctl
	optional bool   // kernels without it are left alone
	failure  string // what it belongs to, as the log says it
}

// wanted are the settings of a node whose primary ENI has a link, in the order in which
// they must be made.
func wanted(c config.Config, link string) []setting {
	demux := "1"
	if c.EarlyDemuxOff {
		demux = "0"
	}
	out := []setting{
		// Replies to pods of other ENIs enter by the primary one: the strict check would
		// drop them.
		{rules.Sysctl{Key: []string{"net", "ipv4", "conf", link, "rp_filter"}, Value: "2"}, false, textSystem},
		// With it a kubelet's probe of a pod with security groups is answered to the wrong
		// link (strict mode), so users may switch it off. Some kernels do not have it.
		{rules.Sysctl{Key: []string{"net", "ipv4", "tcp_early_demux"}, Value: demux}, true, textSystem},
	}
	if c.IPv6 {
		out = append(out, setting{rules.Sysctl{Key: []string{"net", "ipv6", "conf", "all", "disable_ipv6"}, Value: "0"}, false, textIPv6})
	}
	if c.IPv6 || c.V6Egress {
		// A host that forwards takes router advertisements only with 2, and forgets the
		// default route it has from one when it starts to forward: 2 comes first.
		out = append(out,
			setting{rules.Sysctl{Key: []string{"net", "ipv6", "conf", link, "accept_ra"}, Value: "2"}, false, textIPv6},
			setting{rules.Sysctl{Key: []string{"net", "ipv6", "conf", "all", "forwarding"}, Value: "1"}, false, textIPv6})
	}
	return out
}

// write makes a setting below a directory, /proc/sys.
func (s setting) write(root string) error {
	f, err := os.OpenFile(filepath.Join(root, s.Path()), os.O_WRONLY, 0)
	if s.optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = f.WriteString(s.Value)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("%s: set %s: %w%s", s.failure, s, err, advice(err))
	}
	return nil
}

func advice(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "; the node's kernel does not have this setting"
	case errors.Is(err, fs.ErrPermission):
		return "; the init container must be privileged"
	}
	return ""
}
