package hostnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// NoticeKind says what to check after a [Notice].
type NoticeKind int

const (
	// ChangedPod: a route or rule of a pod's address was removed or replaced, perhaps by a DEL.
	ChangedPod NoticeKind = iota + 1
	// ChangedLinks: links, addresses, or routes and rules that do not belong to one pod.
	ChangedLinks
	// ChangedNode: packet filters, rules or settings of the node itself.
	ChangedNode
	// ChangedEgress: something was removed from the chains of pods' egress, or from the
	// rules that lead there, perhaps by a DEL.
	ChangedEgress
	// LostChanges: notices were lost. Anything may have changed.
	LostChanges
)

// Notice is a change in the node's namespace, whoever made it.
type Notice struct {
	Kind NoticeKind
	Pod  netip.Addr // of ChangedPod
}

// Monitor reports changes to what the daemon and the plugin set up.
type Monitor struct {
	primary netstate.MAC
	filters atomic.Bool // nftables changes are watched

	mu    sync.Mutex // guards what follows
	links map[int32]seenLink
	views int  // views begun
	lost  bool // link notices were lost since the last view
}

// seenLink is the last known state of a link.
type seenLink struct {
	name    string
	pod     bool
	made    netstate.MAC // a pod link's first MAC
	current netstate.MAC
	up      bool
	mtu     int
	view    int // Monitor.views at the time
}

// NewMonitor makes a monitor for a node, given its primary ENI's MAC.
func NewMonitor(primaryMAC string) *Monitor {
	mac, _ := parseMAC(primaryMAC) // without a MAC all settings count
	return &Monitor{primary: mac, links: map[int32]seenLink{}}
}

// MadeWith returns the MAC that a pod's link was created with, if that was seen.
func (m *Monitor) MadeWith(index int32) (mac netstate.MAC, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.links[index]
	return l.made, ok && l.made != (netstate.MAC{})
}

// gatherTime is the pause between the first change and the read. It gathers the changes
// that a program makes in one go, and those of many pods.
const gatherTime = 120 * time.Millisecond

// Run reports changes until ctx ends, from two goroutines and in batches. It returns an error
// if the kernel cannot be watched. It reports packet filter changes only if the kernel has
// nftables.
func (m *Monitor) Run(ctx context.Context, notify func(...Notice)) error {
	routes, filters, err := openWatches()
	if err != nil {
		return err
	}
	return m.follow(ctx, routes, filters, notify)
}

// SeesFilters reports whether nftables changes are watched.
func (m *Monitor) SeesFilters() bool { return m.filters.Load() }

// openWatches opens both watches. filters is nil if packet filters cannot be watched.
func openWatches() (routes, filters *watch, _ error) {
	routes, err := openWatch("rtnetlink changes", rtnl.Watch)
	if err != nil {
		return nil, nil, err
	}
	if filters, err = openWatch("nftables changes", rtnl.WatchFilters); err != nil {
		filters = nil
	}
	return routes, filters, nil
}

// follow reads the watches until ctx ends, and closes them.
func (m *Monitor) follow(ctx context.Context, routes, filters *watch, notify func(...Notice)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return routes.read(ctx, m.noteLost(notify), m.route) })
	if filters != nil {
		m.filters.Store(true)
		defer m.filters.Store(false)
		group.Go(func() error { return filters.read(ctx, notify, filter) })
	}
	return group.Wait()
}

// noteLost wraps notify to record that link notices were lost.
func (m *Monitor) noteLost(notify func(...Notice)) func(...Notice) {
	return func(list ...Notice) {
		if slices.ContainsFunc(list, func(n Notice) bool { return n.Kind == LostChanges }) {
			m.mu.Lock()
			m.lost = true
			m.mu.Unlock()
		}
		notify(list...)
	}
}

// watch is a socket that receives changes, and the file that wakes its reader.
type watch struct {
	*rtnl.Gather
	wakeup *os.File
}

// openWatch opens a socket in the calling thread's namespace.
func openWatch(name string, open func() (int, error)) (*watch, error) {
	fd, err := open()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", name, err)
	}
	g, err := rtnl.NewGather(fd)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", name, err)
	}
	return &watch{g, os.NewFile(uintptr(g.FD()), name)}, nil
}

func (w *watch) close() {
	_ = w.wakeup.Close()
	_ = w.Close()
}

// read passes datagrams to parse until ctx ends, and closes the watch.
func (w *watch) read(ctx context.Context, notify func(...Notice), parse func([]byte, func(Notice)) error) error {
	defer w.close()
	// A wait in progress ends when its deadline moves into the past.
	defer context.AfterFunc(ctx, func() { _ = w.wakeup.SetReadDeadline(time.Unix(1, 0)) })()
	wait, err := w.wakeup.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		err := wait.Read(func(uintptr) bool { return w.Woken() })
		if err == nil {
			select {
			case <-ctx.Done():
			case <-time.After(gatherTime):
			}
			var list []Notice
			err = w.drain(buf, func(n Notice) { list = append(list, n) }, parse)
			if len(list) > 0 {
				notify(list...)
			}
		}
		if err == nil {
			err = w.Arm()
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// drain reads all pending datagrams.
func (w *watch) drain(buf []byte, note func(Notice), parse func([]byte, func(Notice)) error) error {
	for {
		n, err := w.Read(buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.ENOBUFS):
			note(Notice{Kind: LostChanges})
		case err != nil:
			return err
		case parse(buf[:n], note) != nil:
			note(Notice{Kind: LostChanges}) // truncated or malformed
		}
	}
}

func (m *Monitor) route(datagram []byte, notify func(Notice)) error {
	return rtnl.Notices(datagram, func(n rtnl.Notice) {
		if c := m.change(n); c.Kind != 0 {
			notify(c)
		}
	})
}

// change translates a kernel notice; Kind 0 means that it does not matter.
func (m *Monitor) change(n rtnl.Notice) Notice {
	switch n.Kind {
	case rtnl.NoticeLink:
		return m.linkChanged(n.Link)
	case rtnl.NoticeNoLink:
		return m.linkGone(n.Link)
	case rtnl.NoticeAddress, rtnl.NoticeNoAddress:
		return Notice{Kind: ChangedLinks}
	case rtnl.NoticeNoRoute, rtnl.NoticeRoute:
		return routeChanged(n)
	case rtnl.NoticeNoRule, rtnl.NoticeRule:
		return ruleChanged(n)
	case rtnl.NoticeSetting:
		if m.ofNode(n.Setting) {
			return Notice{Kind: ChangedNode}
		}
	}
	return Notice{}
}

func routeChanged(n rtnl.Notice) Notice {
	host := n.Host()
	switch {
	case n.Route.Table != netnames.MainTable && n.Route.Table != netnames.LocalTable:
		return Notice{Kind: ChangedLinks} // an ENI's, which rarely changes
	case !host.IsValid():
		return Notice{}
	}
	return Notice{Kind: ChangedPod, Pod: host} // gone, or replaced
}

func ruleChanged(n rtnl.Notice) Notice {
	gone := n.Kind == rtnl.NoticeNoRule
	host := n.Host()
	switch n.Rule.Priority {
	case netnames.RuleToPod, netnames.RuleFromPod:
		if host.IsValid() && gone {
			return Notice{Kind: ChangedPod, Pod: host}
		}
	case netnames.RuleBranch, netnames.RuleFromENI:
		if gone {
			return Notice{Kind: ChangedLinks}
		}
	case netnames.RuleLocal:
		return Notice{Kind: ChangedNode} // strict mode: the kernel's rule must not come back
	case netnames.RuleLocalStrict, netnames.RuleMark, netnames.RuleExternal:
		if gone {
			return Notice{Kind: ChangedNode}
		}
	}
	return Notice{}
}

// linkChanged records a link. A pod's new link is not a change, as it comes from an ADD.
func (m *Monitor) linkChanged(l netstate.Link) Notice {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, known := m.links[l.Index]
	now := seenLink{name: l.Name, pod: l.Kind == "veth" && endsWithHash(l.Name), current: l.MAC, up: l.Up(), mtu: l.MTU, made: was.made, view: m.views}
	if now.pod && (!known || !was.pod || was.name != now.name) { // an index can be reused
		now.made = l.MAC
	}
	m.links[l.Index] = now
	switch {
	case now.pod && known && (was.up && !now.up || was.current != now.current && now.current != now.made):
		return Notice{Kind: ChangedLinks}
	case now.pod:
		return Notice{}
	case !known || was.up != now.up || was.mtu != now.mtu || was.current != now.current || was.name != now.name:
		return Notice{Kind: ChangedLinks}
	}
	return Notice{}
}

func (m *Monitor) linkGone(l netstate.Link) Notice {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.links[l.Index]
	delete(m.links, l.Index)
	if was.pod || l.Kind == "veth" && endsWithHash(l.Name) {
		return Notice{}
	}
	return Notice{Kind: ChangedLinks}
}

// ofNode reports whether a setting is the primary ENI's or one for all links. Every pod's
// link also causes notices about its settings, which do not count.
func (m *Monitor) ofNode(index int32) bool {
	if index == rtnl.SettingOfAll {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l, known := m.links[index]
	return known && !l.pod && (l.current == m.primary || m.primary == netstate.MAC{})
}

// BeginView must be called before the kernel is read for a view passed to [Monitor.Sync].
func (m *Monitor) BeginView() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.views++
}

// Sync learns the links of a view: those from before the watch began, and those whose
// notices were lost. Links noticed before the view began that are not in it are gone.
func (m *Monitor) Sync(v *View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	there := make(map[int32]bool, len(v.Links))
	for _, l := range v.Links {
		there[l.Index] = true
		was, known := m.links[l.Index]
		switch {
		case known && was.view == m.views: // noticed since the view began
		case !known || was.name != l.Name:
			m.links[l.Index] = seenLink{name: l.Name, pod: l.Kind == "veth" && endsWithHash(l.Name), current: l.MAC, up: l.Up(), mtu: l.MTU}
		case m.lost && was.made != l.MAC:
			was.made, was.current = netstate.MAC{}, l.MAC // it may be another link of that name
			m.links[l.Index] = was
		}
	}
	for index, l := range m.links {
		if !there[index] && l.view < m.views {
			delete(m.links, index)
		}
	}
	m.lost = false
}

// Our own tables and chains, and the kernel's that hold rules of ours.
var (
	ownTables     = [][]byte{[]byte(netnames.NFTTable)}
	ownChains     = [][]byte{[]byte("AWS-")}
	kernelsTables = [][]byte{[]byte("nat"), []byte("mangle"), []byte("filter")}
	kernelsChains = [][]byte{[]byte("PREROUTING"), []byte("POSTROUTING"), []byte("FORWARD")}
)

// filter reports changes to our chains and deletions in the kernel's. It ignores
// kube-proxy's chains, which change with every Service. The chains of pods' egress have
// a separate kind of notice.
func filter(datagram []byte, notify func(Notice)) error {
	changed, egress := false, false
	err := rtnl.FilterNotices(datagram, func(n rtnl.FilterNotice) {
		changed, egress = changed || concernsFilters(n), egress || concernsEgress(n)
	})
	if changed {
		notify(Notice{Kind: ChangedNode})
	}
	if egress {
		notify(Notice{Kind: ChangedEgress})
	}
	return err
}

func concernsFilters(n rtnl.FilterNotice) bool {
	is := func(name []byte, list [][]byte, match func(a, b []byte) bool) bool {
		for _, o := range list {
			if match(name, o) {
				return true
			}
		}
		return false
	}
	switch {
	case is(n.Table, ownTables, bytes.Equal):
		return true
	case !is(n.Table, kernelsTables, bytes.Equal):
		return false
	case len(n.Chain) == 0:
		return n.Gone
	case is(n.Chain, ownChains, bytes.HasPrefix):
		return true
	}
	return n.Gone && is(n.Chain, kernelsChains, bytes.Equal)
}
