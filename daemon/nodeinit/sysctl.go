package nodeinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cnictl/daemon/config"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
)

// setting is a kernel setting of a node.
type setting struct {
	netstate.Sysctl
	optional bool   // ignored if the kernel lacks it
	failure  string // log text for its area
}

// wanted returns the settings of a node, given the link of its primary ENI, in the order in
// which they must be made.
func wanted(c config.Config, link string) []setting {
	demux := "1"
	if c.EarlyDemuxOff {
		demux = "0"
	}
	var out []setting
	for _, s := range rules.Sysctls(c.IPv6, c.V6Egress, link) {
		failure := textSystem
		if strings.HasPrefix(s.Path, "net/ipv6/") {
			failure = textIPv6
		}
		out = append(out, setting{s, false, failure})
	}
	// With early demux, the reply to a kubelet's probe of a pod with security groups goes
	// to the wrong link (strict mode), so users may switch it off. Some kernels do not have
	// it.
	early := setting{netstate.Sysctl{Path: "net/ipv4/tcp_early_demux", Value: demux}, true, textSystem}
	return slices.Insert(out, 1, early)
}

// write makes a setting below root, which is /proc/sys.
func (s setting) write(root string) error {
	f, err := os.OpenFile(filepath.Join(root, s.Path), os.O_WRONLY, 0)
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
