package egress

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/egress"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// link sets up the veth pair and the network on it.
type link struct {
	ns   int // the pod's namespace, held open
	v6   bool
	host *rtnl.Conn
	pod  *rtnl.Conn // nil before the pod's side
	pair egress.Pair
	made bool
}

// openNetns opens a namespace by path and checks that it is one. It never blocks,
// whatever the path is.
func openNetns(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("failed to open netns %q: %w", path, err)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil || fs.Type != unix.NSFS_MAGIC && fs.Type != unix.PROC_SUPER_MAGIC {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("failed to open netns %q: not a network namespace", path)
	}
	return fd, nil
}

func openLink(netns string, v6 bool) (*link, error) {
	ns, err := openNetns(netns)
	if err != nil {
		return nil, err
	}
	host, err := rtnl.Open()
	if err != nil {
		_ = unix.Close(ns)
		return nil, err
	}
	return &link{ns: ns, v6: v6, host: host}, nil
}

// close closes the sockets; the pair stays.
func (l *link) close() {
	_ = l.host.Close()
	if l.pod != nil {
		_ = l.pod.Close()
	}
	_ = unix.Close(l.ns)
}

// pairTries limits how often other names and indexes are tried.
const pairTries = 16

// createPair creates the pair, with the host end up. It needs no address.
func (l *link) createPair(mtu int) error {
	var b rtnl.Batch
	var last error
	for range pairTries {
		var random [20]byte
		_, _ = rand.Read(random[:]) // it never fails
		l.pair = egress.NewPair(l.v6, random, mtu)
		b.Reset()
		b.Veth(l.pair.Host, l.pair.Pod, mtu, l.ns)
		last = l.host.Do(&b)
		if !errors.Is(last, unix.EEXIST) && !errors.Is(last, unix.EBUSY) {
			break
		}
		if err := l.nameTaken(); err != nil {
			return err
		}
	}
	l.made = last == nil
	return last
}

// nameTaken returns an error if the pod has a link of that name.
func (l *link) nameTaken() error {
	pod, err := rtnl.OpenIn(l.ns)
	if err != nil {
		return err
	}
	defer pod.Close()
	_, found, err := pod.LinkByName(l.pair.Pod.Name)
	if err == nil && found {
		err = errors.New(textVethNameTaken + l.pair.Pod.Name + ") already exists")
	}
	return err
}

// undo deletes the pair, and with it everything on it. It waits for a grace period of the
// kernel.
func (l *link) undo() error {
	if !l.made {
		return nil
	}
	var b rtnl.Batch
	b.LinkDel(l.pair.Host.Index)
	b.Tolerate(unix.ENODEV)
	l.made = false
	return l.host.Do(&b)
}

// network configures the pair: the host end first, so that the pod's first packet is
// routed.
func (l *link) network(p egress.Pod) error {
	if err := setSysctls(p.HostSysctls); err != nil {
		return err
	}
	if err := l.outside(p); err != nil {
		return err
	}
	if err := l.enter(p.PodSysctls); err != nil {
		return err
	}
	return l.inside(p)
}

func (l *link) outside(p egress.Pod) error {
	var b rtnl.Batch
	b.AddrAdd(p.HostAddress)
	if err := l.host.Do(&b); err != nil {
		return wrapStep("failed to add IP addr "+p.HostAddress.Prefix.String()+" to "+p.Pair.Host.Name, err)
	}
	return l.addHostRoute(p.HostRoute)
}

// Retries of adding the host's route while a dying pod's route still exists (#3702).
const (
	routeTries = 5
	routePause = 100 * time.Millisecond
)

// addHostRoute adds the route to the pod. The route of the pod that had the address before
// disappears with its namespace, a moment after its DEL; a route that stays over a link
// that no pod can use any more is replaced.
func (l *link) addHostRoute(r netstate.Route) (err error) {
	var b rtnl.Batch
	for try := range routeTries {
		if try > 0 {
			<-time.After(routePause)
		}
		b.Reset()
		b.RouteAdd(r)
		if err = l.host.Do(&b); !errors.Is(err, unix.EEXIST) {
			break
		}
	}
	if !errors.Is(err, unix.EEXIST) {
		return wrapStep("failed to add route on host", err)
	}
	stale, lookErr := l.ownerGone(r.Dst)
	if lookErr != nil {
		return wrapStep("failed to add route on host", lookErr)
	}
	if !stale {
		text := textStaleRoute
		if l.v6 {
			text = textStaleRoute6
		}
		return errors.New(text + err.Error())
	}
	b.Reset()
	b.RouteReplace(r)
	return wrapStep("failed to replace stale route on host", l.host.Do(&b))
}

// ownerGone reports whether no pod is behind the host's route to an address: its link does
// not exist, is down, or has lost its peer.
func (l *link) ownerGone(dst netip.Prefix) (bool, error) {
	fam := uint8(unix.AF_INET)
	if l.v6 {
		fam = unix.AF_INET6
	}
	routes, err := l.host.Routes(fam, netnames.MainTable)
	if err != nil {
		return false, err
	}
	for _, r := range routes {
		if r.Dst != dst || r.Link == 0 {
			continue
		}
		owner, found, err := l.host.LinkByIndex(r.Link)
		if err != nil {
			return false, err
		}
		const alive = unix.IFF_UP | unix.IFF_RUNNING
		if found && owner.Flags&alive == alive {
			return false, nil
		}
	}
	return true, nil
}

// enter opens the socket in the pod and sets the sysctls there. /proc/sys/net shows the
// namespace of the calling thread; this thread ends with its goroutine.
func (l *link) enter(sysctls []netstate.Sysctl) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends
		err := unix.Setns(l.ns, unix.CLONE_NEWNET)
		if err == nil {
			l.pod, err = rtnl.Open()
		}
		if err == nil {
			err = setSysctls(sysctls)
		}
		done <- err
	}()
	return wrapStep("failed to enter the pod's network namespace", <-done)
}

func (l *link) inside(p egress.Pod) error {
	var b rtnl.Batch
	b.LinkUp(p.Pair.Pod.Index)
	for _, a := range p.PodAddresses {
		b.AddrAdd(a)
	}
	if p.KernelRoute.Dst.IsValid() {
		b.RouteDel(p.KernelRoute)
		b.Tolerate(unix.ESRCH)
	}
	for _, r := range p.PodRoutes {
		if l.v6 {
			b.RouteReplace(r)
		} else {
			b.RouteAdd(r)
		}
	}
	return wrapStep("failed to set up "+p.Pair.Pod.Name, l.pod.Do(&b))
}

// dropHostRoute deletes the route to an address that no other pod can have, because its
// lease still exists.
func dropHostRoute(address netip.Addr) error {
	host, err := rtnl.Open()
	if err != nil {
		return err
	}
	defer host.Close()
	var b rtnl.Batch
	b.RouteDel(netstate.Route{Dst: netip.PrefixFrom(address, address.BitLen()), Scope: netstate.Nowhere})
	b.Tolerate(unix.ESRCH)
	return host.Do(&b)
}

// setSysctls only writes values that differ, because a write may have to wait for the
// kernel's network lock. A kernel without IPv6 has no such files, and nothing to set.
func setSysctls(list []netstate.Sysctl) error {
	for _, s := range list {
		fd, err := unix.Open("/proc/sys/"+s.Path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) && strings.HasPrefix(s.Path, "net/ipv6/") {
			continue
		}
		if err == nil {
			err = setSysctl(fd, s.Value)
			_ = unix.Close(fd)
		}
		if err != nil {
			return wrapStep("failed to set "+s.Path+" = "+s.Value, err)
		}
	}
	return nil
}

func setSysctl(fd int, value string) error {
	var now [16]byte
	n, err := unix.Pread(fd, now[:], 0)
	if err == nil && strings.TrimSpace(string(now[:max(n, 0)])) == value {
		return nil
	}
	for {
		_, err := unix.Pwrite(fd, []byte(value), 0)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// wrapStep prefixes an error with the step that failed.
func wrapStep(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
