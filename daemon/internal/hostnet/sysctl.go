package hostnet

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// readOnly holds the kernel settings that differ and could not be set. LostOfNode leaves
// them out: a container's /proc/sys stays read-only as long as the container runs.
type readOnly struct {
	mu    sync.Mutex // guards paths
	paths map[string]bool
}

func (r *readOnly) has(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paths[path]
}

func (r *readOnly) note(path string, is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paths == nil {
		r.paths = map[string]bool{}
	}
	r.paths[path] = is
}

// setSysctls sets the kernel settings that differ. It repairs the init container's work. If
// it fails, it only warns, as /proc/sys may be read-only in the daemon's container.
func (h *Host) setSysctls(c *rtnl.Conn, link netstate.Link, want []netstate.Sysctl) {
	for _, s := range want {
		now, err := os.ReadFile(filepath.Join(h.opts.ProcSys, s.Path))
		value := strings.TrimSpace(string(now))
		if err == nil && value == s.Value {
			h.readOnly.note(s.Path, false)
			continue
		}
		if err == nil {
			err = h.setSysctl(c, link, s)
		}
		h.readOnly.note(s.Path, err != nil)
		if err != nil {
			h.warnOnce("kernel setting differs and cannot be set", "sysctl", s.String(), "error", err)
			continue
		}
		h.opts.Log.Info("kernel setting changed", "sysctl", s.String(), "from", value)
	}
}

// setSysctl sets one setting. If /proc/sys is read-only, it sets rp_filter of the primary
// ENI's link over rtnetlink, which is not possible for the others.
func (h *Host) setSysctl(c *rtnl.Conn, link netstate.Link, s netstate.Sysctl) error {
	err := os.WriteFile(filepath.Join(h.opts.ProcSys, s.Path), []byte(s.Value), 0)
	if err == nil || s.Path != "net/ipv4/conf/"+link.Name+"/rp_filter" {
		return err
	}
	value, bad := strconv.ParseUint(s.Value, 10, 32)
	if bad != nil {
		return err
	}
	var b rtnl.Batch
	b.LinkIPv4Conf(link.Index, rtnl.RPFilter, uint32(value))
	return c.Do(&b)
}
