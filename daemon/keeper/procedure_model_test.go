package keeper

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// model is a small EC2 and host with a fake clock. Each call can fail once, before or after
// its effect.
type model struct {
	t     *testing.T
	now   time.Time
	end   time.Time // Sleep fails from here on; zero means never
	enis  map[ipam.ENIID]*resync.ENI
	token map[string]ipam.ENIID
	calls []string

	fail    map[string][]error // by call, in order; nil entries succeed
	lost    map[string]bool    // the effect happens, then the first error is returned
	settles time.Duration      // how long an attach or detach takes to show
	changes map[ipam.ENIID]change
	routes  []resync.PodRoute
	links   map[string]int
	setUp   error
	older   []resync.ENI // shown by the next list, although out of date
	most    int          // the most secondary IPs that the subnet has; 0 means enough
	slots   int          // the most secondary IPs that an ENI takes, −1 for none; 0 means enough
	early   bool         // an ENI is checked for them when it is created, not only when it is attached
	asked   []int        // secondary IPs in each request
	notes   []Note
	flows   []netip.Addr // of the connection tracking entries
	perFlow time.Duration
	until   time.Time // of the last Lasting, which expire ends; DeleteFlows looks at it
	expire  func()
	passes  []FlowsDone
	posted  func(Message) // nil if the test does not want them
}

type change struct {
	at     time.Time
	attach bool
}

func newModel(t *testing.T) *model {
	t.Helper()
	return &model{
		t: t, now: time.Unix(1_790_000_000, 0), enis: map[ipam.ENIID]*resync.ENI{}, token: map[string]ipam.ENIID{},
		fail: map[string][]error{}, lost: map[string]bool{}, changes: map[ipam.ENIID]change{},
	}
}

func unanswered() error {
	return &Failure{Cause: cause.EC2Error, Unanswered: true, Err: errors.New("no answer")}
}

func notFound() error {
	return &Failure{Cause: cause.EC2Error, NotFound: true, Err: errors.New("not found")}
}

// call records a call and returns its result.
func (m *model) call(name string, effect func() error) error {
	m.calls = append(m.calls, name)
	var planned error
	if todo := m.fail[name]; len(todo) > 0 {
		planned, m.fail[name] = todo[0], todo[1:]
	}
	if planned != nil && !m.lost[name] {
		return planned
	}
	if err := effect(); err != nil {
		return err
	}
	return planned
}

func (m *model) count(name string) (n int) {
	for _, c := range m.calls {
		if c == name {
			n++
		}
	}
	return n
}

// fits returns EC2's answer to more secondary IPs on an ENI.
func (m *model) fits(e *resync.ENI, more int) error {
	if m.slots == 0 || len(e.CIDRs())+more <= max(0, m.slots) {
		return nil
	}
	return &Failure{Cause: cause.PoolFull, AddressLimit: true, Err: errors.New("PrivateIpAddressLimitExceeded")}
}

// ask returns the subnet's answer to a request for secondary IPs.
func (m *model) ask(ips int) error {
	m.asked = append(m.asked, ips)
	if m.most > 0 && ips > m.most {
		return failed(cause.SubnetExhausted)
	}
	return nil
}

func (m *model) CreateENI(_ context.Context, s CreateENI) (out resync.ENI, err error) {
	err = m.call("create", func() error {
		if err := m.ask(s.IPs); err != nil {
			return err
		}
		if m.early && m.fits(&resync.ENI{}, s.IPs) != nil {
			return m.fits(&resync.ENI{}, s.IPs)
		}
		id, again := m.token[s.Token]
		if !again {
			id = ipam.ENIID(fmt.Sprintf("eni-%d", len(m.enis)+1))
			e := &resync.ENI{ID: id, Status: resync.StatusAvailable, SubnetID: s.SubnetID, PrimaryIP: netip.MustParseAddr("10.0.0.5")}
			for i := range s.IPs {
				e.SecondaryIPs = append(e.SecondaryIPs, netip.AddrFrom4([4]byte{10, 0, 1, byte(i + 1)}))
			}
			if s.IPv6 {
				e.IPv6s = []netip.Addr{netip.MustParseAddr("fd00::5")}
			}
			m.enis[id], m.token[s.Token] = e, id
		}
		out = *m.enis[id]
		return nil
	})
	return out, err
}

func (m *model) AttachENI(_ context.Context, id ipam.ENIID, card, device int) (attachment string, err error) {
	err = m.call("attach", func() error {
		e := m.enis[id]
		if e == nil {
			return notFound()
		}
		if err := m.fits(e, 0); err != nil {
			return err
		}
		attachment = "eni-attach-" + string(id)
		e.AttachmentID, e.AttachmentStatus, e.Status, e.Card, e.Device = attachment, "attaching", "in-use", card, device
		m.changes[id] = change{m.now.Add(m.settles), true}
		return nil
	})
	return attachment, err
}

func (m *model) SetDeleteOnTermination(_ context.Context, id ipam.ENIID, _ string) error {
	return m.call("modify", func() error { m.enis[id].DeleteOnTermination = true; return nil })
}

func (m *model) DetachENI(_ context.Context, attachment string) error {
	return m.call("detach", func() error {
		for id, e := range m.enis {
			if e.AttachmentID == attachment {
				e.AttachmentStatus = "detaching"
				m.changes[id] = change{m.now.Add(m.settles), false}
				return nil
			}
		}
		return notFound()
	})
}

func (m *model) DeleteENI(_ context.Context, id ipam.ENIID) error {
	return m.call("delete", func() error {
		if e := m.enis[id]; e != nil && e.Status != resync.StatusAvailable {
			return failed(cause.EC2Error)
		}
		delete(m.enis, id)
		return nil
	})
}

func (m *model) AssignIPs(_ context.Context, id ipam.ENIID, n int) (out []netip.Addr, err error) {
	err = m.call("assign", func() error {
		if err := m.ask(n); err != nil {
			return err
		}
		if err := m.fits(m.enis[id], n); err != nil {
			return err
		}
		for i := range n {
			out = append(out, netip.AddrFrom4([4]byte{10, 0, 2, byte(len(m.enis[id].SecondaryIPs) + i)}))
		}
		m.enis[id].SecondaryIPs = append(m.enis[id].SecondaryIPs, out...)
		return nil
	})
	if err != nil {
		out = nil
	}
	return out, err
}

func (m *model) AssignIPv6Prefix(_ context.Context, id ipam.ENIID) (out netip.Prefix, err error) {
	err = m.call("assign", func() error {
		e := m.enis[id]
		out = ipv6Block(len(e.IPv6Prefixes))
		e.IPv6Prefixes = append(e.IPv6Prefixes, out)
		return nil
	})
	return out, err
}

// ipv6Block returns the nth /80 that an ENI gets.
func ipv6Block(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 9: byte(n + 1)}), 80)
}

func (m *model) SetSecurityGroups(context.Context, ipam.ENIID, []string) error { return nil }

func (m *model) AssignPrefixes(_ context.Context, id ipam.ENIID, n int) (out []netip.Prefix, err error) {
	err = m.call("assign", func() error {
		for i := range n {
			out = append(out, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 3, byte(16 * i)}), 28))
		}
		m.enis[id].Prefixes = append(m.enis[id].Prefixes, out...)
		return nil
	})
	return out, err
}

func (m *model) Unassign(_ context.Context, id ipam.ENIID, cidrs []netip.Prefix) error {
	return m.call("unassign", func() error {
		m.enis[id].SecondaryIPs = slices.DeleteFunc(m.enis[id].SecondaryIPs, func(a netip.Addr) bool {
			return slices.Contains(cidrs, netip.PrefixFrom(a, 32))
		})
		return nil
	})
}

func (m *model) DescribeENIs(_ context.Context, ids []ipam.ENIID) (out []resync.ENI, err error) {
	err = m.call("describe", func() error {
		for id, c := range m.changes {
			e := m.enis[id]
			if e == nil || c.at.After(m.now) {
				continue
			}
			delete(m.changes, id)
			if e.AttachmentStatus = resync.AttachmentAttached; !c.attach {
				e.AttachmentID, e.AttachmentStatus, e.Status = "", "", resync.StatusAvailable
			}
		}
		if out, m.older = m.older, nil; out != nil {
			return nil
		}
		for id, e := range m.enis {
			if len(ids) == 0 || slices.Contains(ids, id) {
				out = append(out, *e)
			}
		}
		return nil
	})
	return out, err
}

func (m *model) DescribeSubnets(context.Context) ([]resync.Subnet, error) { return nil, nil }

func (m *model) DescribeOrphans(context.Context) ([]resync.ENI, error) { return nil, nil }

func (m *model) DescribeLeaked(context.Context) (out []resync.ENI, err error) {
	err = m.call("describe", func() error {
		for _, e := range m.enis {
			if e.Status == resync.StatusAvailable {
				out = append(out, *e)
			}
		}
		return nil
	})
	return out, err
}

func (m *model) TagENI(context.Context, ipam.ENIID, map[string]string) error {
	return m.call("tag", func() error { return nil })
}

func (m *model) TagCreated(_ context.Context, id ipam.ENIID, now time.Time) error {
	return m.call("tag", func() error {
		m.enis[id].Tags[resync.TagCreatedAt] = now.UTC().Format(time.RFC3339)
		return nil
	})
}

func (m *model) Interfaces(context.Context) ([]resync.Interface, error) { return nil, nil }

func (m *model) SetUpENI(context.Context, ipam.ENI) error {
	return m.call("set up", func() error { return m.setUp })
}

func (m *model) TeardownENI(context.Context, netip.Addr) error {
	return m.call("tear down", func() error { return nil })
}

func (m *model) PodRoutes(context.Context) ([]resync.PodRoute, error) {
	return m.routes, m.call("routes", func() error { return nil })
}

func (m *model) PodLinks(context.Context) (map[string]int, error) {
	return m.links, m.call("links", func() error { return nil })
}

func (m *model) DropPod(context.Context, netip.Addr) error {
	return m.call("drop", func() error { return nil })
}

// DeleteFlows takes perFlow for each entry.
func (m *model) DeleteFlows(ctx context.Context, of func(netip.Addr) bool) (int, error) {
	before := len(m.flows)
	err := m.call("flows", func() error {
		m.flows = slices.DeleteFunc(m.flows, func(a netip.Addr) bool {
			if m.now = m.now.Add(m.perFlow); m.expire != nil && m.now.After(m.until) {
				m.expire()
			}
			return ctx.Err() == nil && of(a)
		})
		return ctx.Err()
	})
	return before - len(m.flows), err
}

func (m *model) Now() time.Time { return m.now }

func (m *model) Sleep(_ context.Context, d time.Duration) error {
	if len(m.calls) > 100_000 {
		panic("a procedure without an end")
	}
	m.now = m.now.Add(d)
	if !m.end.IsZero() && !m.now.Before(m.end) {
		return errors.New("the process ends")
	}
	return nil
}

func (m *model) Jitter(n time.Duration) time.Duration { return n / 2 }

func (m *model) Lasting(ctx context.Context, limit time.Duration) (context.Context, func()) {
	ctx, m.expire = context.WithCancel(ctx)
	m.until = m.now.Add(limit)
	return ctx, m.expire
}

func (m *model) Post(msg Message) {
	if m.posted != nil {
		m.posted(msg)
	}
	switch msg := msg.(type) {
	case ENICreated:
		m.calls = append(m.calls, "(created)")
	case FlowsDone:
		m.passes = append(m.passes, msg)
	case AttachAccepted:
		m.calls = append(m.calls, "(attached)")
	case Noted:
		if msg.Err != nil {
			msg.What += Note(": " + msg.Err.Error())
		}
		m.notes = append(m.notes, msg.What)
	}
}
