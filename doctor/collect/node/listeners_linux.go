package node

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"cnictl/doctor/evidence"
)

// runDirs is the directory of the daemon's sockets, by both of its names.
var runDirs = []string{"/var/run/aws-node/", "/run/aws-node/"}

// listeners reads the listening sockets: all of TCP, and the daemons' Unix sockets.
func (c *collector) listeners(ctx context.Context) ([]evidence.Listener, error) {
	sockets := map[string]string{} // address by inode
	for file, parse := range map[string]func([]string) (address, inode string){
		"tcp": tcpListener, "tcp6": tcpListener, "unix": unixListener,
	} {
		text, err := c.read("/proc/thread-self/net/" + file)
		if err != nil {
			if file == "tcp6" && !c.exists("/proc/thread-self/net/tcp6") {
				continue // a kernel without IPv6
			}
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if address, inode := parse(strings.Fields(line)); address != "" {
				sockets[inode] = address
			}
		}
	}
	owners, err := c.owners(ctx, sockets)
	if err != nil {
		return nil, err
	}
	out := []evidence.Listener{}
	for inode, address := range sockets {
		out = append(out, evidence.Listener{Address: address, Process: owners[inode]})
	}
	slices.SortFunc(out, func(a, b evidence.Listener) int {
		return strings.Compare(a.Address+"\x00"+a.Process, b.Address+"\x00"+b.Process)
	})
	return slices.Compact(out), nil
}

// tcpListener reads a line of /proc/net/tcp or tcp6.
func tcpListener(f []string) (address, inode string) {
	if len(f) < 10 || f[3] != "0A" { // TCP_LISTEN
		return "", ""
	}
	host, port, _ := strings.Cut(f[1], ":")
	raw, err := hex.DecodeString(host)
	n, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(raw)%4 != 0 {
		return "", ""
	}
	for i := 0; i < len(raw); i += 4 { // words in the machine's byte order
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	if !ok {
		return "", ""
	}
	return netip.AddrPortFrom(ip, uint16(n)).String(), f[9]
}

// unixListener reads a line of /proc/net/unix.
func unixListener(f []string) (address, inode string) {
	if len(f) < 8 || f[3] != "00010000" { // it accepts connections
		return "", ""
	}
	for _, dir := range runDirs {
		if name, ok := strings.CutPrefix(f[7], dir); ok {
			return runDirs[0] + strings.TrimSuffix(name, ".new"), f[6] // our daemon renames its sockets into place
		}
	}
	return "", ""
}

// owners names the processes that hold the sockets, as far as they are visible.
func (c *collector) owners(ctx context.Context, sockets map[string]string) (map[string]string, error) {
	pids, err := c.pids()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, pid := range pids {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		open, err := c.list(proc(pid, "fd"))
		if err != nil {
			continue // it has ended, or is another user's
		}
		for _, e := range open {
			target, err := os.Readlink(c.path(proc(pid, "fd/"+e.Name())))
			inode, ok := strings.CutPrefix(target, "socket:[")
			inode = strings.TrimSuffix(inode, "]")
			if err != nil || !ok || sockets[inode] == "" || out[inode] != "" {
				continue
			}
			if name, err := c.read(proc(pid, "comm")); err == nil {
				out[inode] = strings.TrimSpace(string(name))
			}
		}
	}
	return out, nil
}

// runFiles returns the names in the daemon's directory.
func (c *collector) runFiles(context.Context) ([]string, error) {
	entries, err := c.list(runDirs[0])
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out, nil
}

// bpfPins returns the programs and maps that a network policy agent has pinned.
func (c *collector) bpfPins(context.Context) ([]string, error) {
	out := []string{}
	for _, dir := range []string{"programs", "maps"} {
		entries, err := c.list("/sys/fs/bpf/globals/aws/" + dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			out = append(out, dir+"/"+e.Name())
		}
	}
	return out, nil
}
