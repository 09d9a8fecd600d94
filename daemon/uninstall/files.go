package uninstall

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/subnethistory"
)

// Paths are the directories of a node, as this process sees them.
type Paths struct {
	Config     string // of CNI configurations
	Binaries   string // of CNI plugins
	Run        string // of the daemon's sockets and state
	Checkpoint string // of the address book; may be outside Run
	Host       string // where a container sees the host's files
	State      string // of plugins, on the host: contains leases of egress addresses
}

// Where the daemon and the plugins keep their state, and where the manifests mount files of
// the host.
const (
	DefaultRun   = "/var/run/aws-node"
	DefaultHost  = "/host"
	DefaultState = "/run/cni"
)

// leases returns the directories of egress address leases, in both places where they can
// be.
func (p Paths) leases() (list []string) {
	for _, state := range []string{filepath.Join(p.Host, p.State), p.State} {
		for _, family := range []string{"v6pd/egress-v4-ipam/aws-cni", "v4pd/egress-v6-ipam/aws-cni"} {
			list = append(list, filepath.Join(state, family))
		}
	}
	return list
}

// unseen returns the directory that a container needs for the leases but lacks. In a container,
// directories of the host are mounted below Host. That Host exists does not make a container: a
// daemon that was started by hand leaves its log there. mounts is /proc/self/mountinfo.
func (p Paths) unseen(mounts string) (path string, ok bool) {
	path = filepath.Join(p.Host, p.State)
	return path, mountedBelow(p.Host, mounts) && len(present(path)) == 0
}

// mountedBelow reports whether something is mounted below a directory.
func mountedBelow(dir, mounts string) bool {
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") { // see proc_pid_mountinfo(5)
			return true
		}
	}
	return false
}

// sockets returns the sockets of a running daemon.
func (p Paths) sockets() []string {
	return []string{filepath.Join(p.Run, "ipamd.sock"), filepath.Join(p.Run, "cni.sock")}
}

// running returns a socket that answers.
func (p Paths) running(ctx context.Context) (socket string, ok bool) {
	d := net.Dialer{Timeout: time.Second}
	for _, path := range p.sockets() {
		c, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			_ = c.Close()
			return path, true
		}
	}
	return "", false
}

// runtimeFiles returns the files through which a container runtime calls us. They are removed
// first, so that no pod is added meanwhile.
func (p Paths) runtimeFiles() []string {
	return present(filepath.Join(p.Config, "10-aws.conflist"),
		filepath.Join(p.Binaries, "aws-cni"), filepath.Join(p.Binaries, "aws-cni-grpc"), filepath.Join(p.Binaries, "egress-cni"), filepath.Join(p.Binaries, "aws-cni-support.sh"))
}

// state returns the sockets and the files of the address book. They are removed last: with
// them the node can be repaired until everything else is gone.
func (p Paths) state() []string {
	list := p.sockets()
	books, _ := filepath.Glob(filepath.Join(p.Run, "ipam*.json*")) // the pattern is valid
	list = append(list, books...)
	if p.Checkpoint != "" {
		list = append(list, p.Checkpoint)
		list = append(list, startingWith(p.Checkpoint+".tmp")...)
		list = append(list, startingWith(subnethistory.Path(p.Checkpoint))...)
	}
	slices.Sort(list)
	return present(slices.Compact(list)...)
}

// startingWith lists the files of a directory whose path starts with path.
func startingWith(path string) (out []string) {
	dir, prefix := filepath.Split(path)
	entries, _ := os.ReadDir(dir) // none if unreadable
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}

// records returns directories: the plugin's records of pods, and the leases of addresses.
func (p Paths) records() []string {
	return present(append([]string{filepath.Join(p.Run, "attachments")}, p.leases()...)...)
}

// writable returns why nothing can be removed from a file's directory, or from path itself
// if it is a directory.
func writable(path string) error {
	err := unix.Access(filepath.Dir(path), unix.W_OK)
	if info, e := os.Lstat(path); err == nil && e == nil && info.IsDir() {
		err = unix.Access(path, unix.W_OK)
	}
	if err != nil {
		return &fs.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}

func present(paths ...string) (out []string) {
	for _, path := range paths {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			out = append(out, path)
		}
	}
	return out
}
