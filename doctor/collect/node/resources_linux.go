package node

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/doctor/evidence"
)

// disks are the places that the CNI and the runtime write to.
var disks = []string{"/", "/run", "/var/run/aws-node", "/var/log/aws-routed-eni", "/etc/cni/net.d", "/opt/cni/bin", "/var/lib/kubelet",
	"/var/lib/containerd"}

// resources reads the state of the host's resources.
func (c *collector) resources(ctx context.Context) (out evidence.Resources, err error) {
	stat, err := c.read("/proc/stat")
	if err != nil {
		return out, err
	}
	cpus := 0
	for line := range strings.Lines(string(stat)) {
		if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, "cpu") && name != "cpu" {
			cpus++
		}
	}
	out.CPUs = &cpus
	if text, err := c.read("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		if load, err := strconv.ParseFloat(first, 64); err == nil && load >= 0 {
			out.Load1 = &load
		}
	}
	out.MemoryFreeMiB = c.memory()
	out.Disks = c.disks()
	out.Denials = c.denials()
	out.Throttled, err = c.throttled(ctx)
	return out, err
}

// memory returns what the kernel can give without swapping.
func (c *collector) memory() *int {
	text, err := c.read("/proc/meminfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemAvailable:" {
			if kib, err := strconv.Atoi(f[1]); err == nil {
				mib := kib >> 10
				return &mib
			}
		}
	}
	return nil
}

// images are file systems that are always full and read-only: the root of an immutable system.
var images = []uint32{unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1, unix.ISOFS_SUPER_MAGIC}

// disks reads each file system once, under the first path that leads to it. The root of a
// container may be read-only, which says nothing about the node's.
func (c *collector) disks() []evidence.Disk {
	out := []evidence.Disk{}
	seen := map[uint64]bool{}
	for _, name := range disks {
		var stat unix.Stat_t
		var fs unix.Statfs_t
		if unix.Stat(c.path(name), &stat) != nil || seen[stat.Dev] || unix.Statfs(c.path(name), &fs) != nil {
			continue
		}
		seen[stat.Dev] = true
		kind := uint32(fs.Type)
		if slices.Contains(images, kind) {
			continue
		}
		d := evidence.Disk{Path: name, ReadOnly: fs.Flags&unix.ST_RDONLY != 0 && kind != unix.OVERLAYFS_SUPER_MAGIC}
		d.UsedPercent = percent(fs.Blocks-fs.Bfree, fs.Blocks-fs.Bfree+fs.Bavail)
		d.InodesUsedPercent = percent(fs.Files-fs.Ffree, fs.Files)
		out = append(out, d)
	}
	return out
}

// percent returns one decimal, nil if there is nothing to count, such as inodes of btrfs.
func percent(used, all uint64) *float64 {
	if all == 0 {
		return nil
	}
	p := float64(used*1000/all) / 10
	return &p
}

// throttleWait is the time between two looks at a counter that grows while a process is
// throttled.
const throttleWait = 500 * time.Millisecond

// throttled names the programs that are being throttled, judging by the control group that limits
// their CPU.
func (c *collector) throttled(ctx context.Context) ([]string, error) {
	list, err := c.processes()
	if err != nil {
		return nil, err
	}
	before := c.throttles(list)
	if len(before) == 0 {
		return []string{}, nil
	}
	timer := time.NewTimer(throttleWait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
	}
	return grown(before, c.throttles(list)), nil
}

// grown returns the names whose counts rose.
func grown(before, now map[string]int) []string {
	out := []string{}
	for name, count := range now {
		if first, ok := before[name]; ok && count > first {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// throttles counts, by program, the periods in which its group ran out of CPU.
func (c *collector) throttles(list []process) map[string]int {
	out := map[string]int{}
	for _, p := range list {
		text, err := c.read(proc(p.pid, "cgroup"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(f) != 3 || f[1] != "" && !slices.Contains(strings.Split(f[1], ","), "cpu") {
				continue
			}
			stat, err := c.read(path.Join("/sys/fs/cgroup", f[1], f[2], "cpu.stat"))
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(stat)) {
				var n int
				if _, err := fmt.Sscanf(line, "nr_throttled %d", &n); err == nil {
					out[p.name] += n
				}
			}
		}
	}
	return out
}

const (
	auditLog   = "/var/log/audit/audit.log"
	auditTail  = 1 << 20 // bytes
	maxDenials = 20
)

// denials returns the last lines of the audit log that deny something to the CNI.
func (c *collector) denials() []string {
	out := []string{}
	text, err := c.tail(auditLog, auditTail)
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "denied") && !strings.Contains(line, `"DENIED"`) {
			continue
		}
		for _, name := range []string{"aws-k8s-agent", "aws-cni", "aws-vpc-cni", "aws-node", "aws-routed-eni", "egress-cni", "iptables",
			"xtables"} {
			if strings.Contains(line, name) {
				out = append(out, clean(strings.TrimSpace(line)))
				break
			}
		}
	}
	return out[max(0, len(out)-maxDenials):]
}
