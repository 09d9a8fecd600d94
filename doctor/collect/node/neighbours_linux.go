package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/rtnl"
	"cnictl/doctor/evidence"
)

// neighbour is the entry of a gateway in a namespace whose veth has its other end on the
// host.
type neighbour struct {
	evidence.Neighbour
	link string // on the host
}

// maxNamespaces bounds how many namespaces are examined.
const maxNamespaces = 1_000

// neighbours examines the namespaces of pods. The entries get their names when all sources are
// read: the host's link shows whose they are.
func (c *collector) neighbours(ctx context.Context) ([]neighbour, error) {
	list, err := ask((*rtnl.Conn).Links)
	if err != nil {
		return nil, err
	}
	names := linkNames(list)
	files, err := c.namespaces()
	if err != nil {
		return nil, err
	}
	out, entered := []neighbour{}, 0
	for _, file := range files[:min(len(files), maxNamespaces)] {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		found, ok, err := gateways(c.path(file), names)
		if err != nil {
			return nil, fmt.Errorf("network namespace %s: %w", path.Base(file), err)
		}
		if ok {
			entered++
		}
		out = append(out, found...)
	}
	if entered == 0 && len(files) > 0 {
		return nil, errNoNamespace
	}
	return out, nil
}

// errNoNamespace means that the files exist, but not what the runtime mounted on them.
var errNoNamespace = errors.New("the pods' network namespaces are not visible here")

// namespaces returns the namespace files that container runtimes keep.
func (c *collector) namespaces() (files []string, _ error) {
	var none error
	for _, dir := range []string{"/var/run/docker/netns", "/var/run/netns"} {
		var entries []fs.DirEntry
		entries, none = c.list(dir)
		for _, e := range entries {
			files = append(files, path.Join(dir, e.Name()))
		}
	}
	if files != nil {
		return files, nil
	}
	return nil, none
}

// gateways returns the entries of one namespace that lead to a link of the host. ok is false if
// the file is not, or no longer, a namespace.
func gateways(file string, names map[int32]string) (out []neighbour, ok bool, _ error) {
	ns, err := unix.Open(file, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, ignore(err, unix.ENOENT)
	}
	defer unix.Close(ns)
	conn, err := rtnl.OpenIn(ns)
	if err != nil {
		return nil, false, ignore(err, unix.EINVAL)
	}
	defer conn.Close()
	links, err := conn.Links()
	if err != nil {
		return nil, false, err
	}
	peers := map[int32]string{}
	for _, l := range links {
		if l.Kind == "veth" {
			peers[l.Index] = names[l.Parent]
		}
	}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		entries, err := conn.Neighbours(family)
		if err != nil {
			return nil, false, err
		}
		for _, e := range entries {
			if link := peers[e.Link]; link != "" && isGateway(e) {
				out = append(out, neighbour{evidence.Neighbour{Address: e.IP, MAC: e.MAC.String(), State: neighbourState(e.State)}, link})
			}
		}
	}
	return out, true, nil
}

// isGateway reports whether the plugin makes an entry for the address.
func isGateway(e rtnl.NeighbourEntry) bool {
	for i := range maxGateways {
		if e.IP == netnames.GatewayIPv4(i) || e.IP == netnames.GatewayIPv6(i) {
			return true
		}
	}
	return false
}

// maxGateways allows one for each interface of a pod.
const maxGateways = 16

func neighbourState(state uint16) string {
	for _, s := range []struct {
		bit  uint16
		name string
	}{
		{unix.NUD_PERMANENT, "permanent"}, {unix.NUD_REACHABLE, "reachable"}, {unix.NUD_STALE, "stale"}, {unix.NUD_DELAY, "delay"},
		{unix.NUD_PROBE, "probe"}, {unix.NUD_INCOMPLETE, "incomplete"}, {unix.NUD_FAILED, "failed"}, {unix.NUD_NOARP, "noarp"},
	} {
		if state&s.bit != 0 {
			return s.name
		}
	}
	return strconv.Itoa(int(state))
}

// named gives the entries the pods of their links. It drops entries of namespaces whose pod is
// unknown.
func named(s evidence.Source[[]neighbour], links []evidence.Link) evidence.Source[[]evidence.Neighbour] {
	if !s.OK() {
		return evidence.Lacking[[]evidence.Neighbour](s.Missing)
	}
	pods := map[string]evidence.Pod{}
	for _, l := range links {
		pods[l.Name] = l.Pod
	}
	out := []evidence.Neighbour{}
	for _, n := range s.Content {
		if n.Pod = pods[n.link]; n.Pod != "" {
			out = append(out, n.Neighbour)
		}
	}
	return evidence.Read(out)
}
