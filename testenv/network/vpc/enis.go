package vpc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"cnictl/testenv/network/netns"
)

// attached is the fabric's state of one attached ENI.
type attached struct {
	ENI
	primary   netip.Addr
	prefixes  map[netip.Prefix]bool // everything it owns, /32s included
	unchecked bool                  // SourceDestCheck=false
	public    bool                  // primary may reach the outside host
	branch    branch                // zero unless the ENI is behind a trunk

	ready bool          // the link delay is over
	gone  chan struct{} // closed on detach
	link  string        // fabric's end, "" while there is none
	index int
}

// branch locates a branch ENI, which has no link of its own but a VLAN on its trunk's link.
type branch struct {
	trunk string // ENI id; "" if it is not a branch
	vlan  int
}

// links keeps the kernel's state in sync with the attached ENIs. All methods are safe
// for concurrent use. Errors that occur later, after the link delay, go to report.
type links struct {
	router   *router
	firewall firewall
	delay    time.Duration
	name     func(ENI) string
	report   func(error)

	stopped chan struct{} // closed by stop: ends the pending link delays
	wg      sync.WaitGroup

	mu     sync.Mutex // guards what follows and the kernel's state
	enis   map[string]*attached
	owners map[netip.Prefix]string // prefix → ENI id
	nodes  map[string]*netns.NS    // instance id → its namespace, while joined
	next   int                     // number of the next link
}

// attach adds an ENI. Its link appears after the delay, or when its node joins if that
// is later.
func (l *links) attach(e ENI, primary netip.Addr, prefixes []netip.Prefix, unchecked, public bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.enis[e.ID] != nil {
		return fmt.Errorf("attach %s: attached already", e.ID)
	}
	a := &attached{
		ENI: e, primary: primary, prefixes: map[netip.Prefix]bool{},
		unchecked: unchecked, public: public, gone: make(chan struct{}),
	}
	l.enis[e.ID] = a
	err := l.assignLocked(a, prefixes)
	if public {
		err = errors.Join(err, l.firewall.setPublic(primary, true))
	}
	if l.delay <= 0 {
		a.ready = true
		return errors.Join(err, l.linkUpLocked(a))
	}
	l.wg.Go(func() {
		timer := time.NewTimer(l.delay)
		defer timer.Stop()
		select {
		case <-a.gone:
			return
		case <-l.stopped:
			return
		case <-timer.C:
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.enis[a.ID] != a {
			return
		}
		a.ready = true
		if err := l.linkUpLocked(a); err != nil {
			l.report(err)
		}
	})
	return err
}

// associate adds a branch ENI. Its link exists while its trunk's does. If two branches use the
// same VLAN id, the later one gets the link: EC2's behaviour is not documented.
func (l *links) associate(b branch, e ENI, primary netip.Addr, prefixes []netip.Prefix, unchecked bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.enis[e.ID] != nil {
		return fmt.Errorf("associate %s: attached already", e.ID)
	}
	a := &attached{
		ENI: e, primary: primary, prefixes: map[netip.Prefix]bool{},
		unchecked: unchecked, branch: b, ready: true, gone: make(chan struct{}),
	}
	var errs []error
	for _, other := range l.enis {
		if other.branch == b {
			errs = append(errs, l.linkDownLocked(other))
		}
	}
	l.enis[e.ID] = a
	errs = append(errs, l.assignLocked(a, prefixes), l.linkUpLocked(a))
	return errors.Join(errs...)
}

// detach removes an ENI and its link. Unknown ENIs are ignored.
func (l *links) detach(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.enis[id]
	if a == nil {
		return nil
	}
	close(a.gone)
	delete(l.enis, id)
	for p := range a.prefixes {
		if l.owners[p] == id {
			delete(l.owners, p)
		}
	}
	err := l.linkDownLocked(a)
	if a.public {
		err = errors.Join(err, l.firewall.setPublic(a.primary, false))
	}
	for _, other := range l.enis {
		if a.branch.trunk != "" && other.branch == a.branch { // it was waiting for the VLAN id
			err = errors.Join(err, l.linkUpLocked(other))
		}
	}
	return err
}

// assign adds addresses and prefixes to an ENI, taking them from other ENIs. It is effective
// on return.
func (l *links) assign(id string, prefixes []netip.Prefix) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.enis[id]
	if a == nil {
		return nil // not attached: nothing to reach
	}
	return l.assignLocked(a, prefixes)
}

func (l *links) assignLocked(a *attached, prefixes []netip.Prefix) error {
	var errs []error
	for _, p := range prefixes {
		if before := l.enis[l.owners[p]]; before != nil && before != a {
			errs = append(errs, l.unassignLocked(before, p))
		}
		a.prefixes[p] = true
		l.owners[p] = a.ID
		if a.link != "" {
			errs = append(errs, l.router.addRoute(p, a.index))
		}
	}
	return errors.Join(errs...)
}

// unassign removes addresses and prefixes from an ENI, effective on return.
func (l *links) unassign(id string, prefixes []netip.Prefix) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.enis[id]
	if a == nil {
		return nil
	}
	var errs []error
	for _, p := range prefixes {
		errs = append(errs, l.unassignLocked(a, p))
	}
	return errors.Join(errs...)
}

func (l *links) unassignLocked(a *attached, p netip.Prefix) error {
	if !a.prefixes[p] {
		return nil
	}
	delete(a.prefixes, p)
	delete(l.owners, p)
	if a.link == "" {
		return nil
	}
	return l.router.delRoute(p, a.index)
}

// setUnchecked turns the source check of an ENI off or on.
func (l *links) setUnchecked(id string, unchecked bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.enis[id]
	if a == nil || a.unchecked == unchecked {
		return nil
	}
	a.unchecked = unchecked
	if a.link == "" {
		return nil
	}
	return l.firewall.setUnchecked(a.link, unchecked)
}

// join registers an instance's namespace; the links of its attached ENIs appear.
func (l *links) join(instanceID string, node *netns.NS) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nodes[instanceID] != nil {
		return fmt.Errorf("join %s: joined already", instanceID)
	}
	node, err := node.Dup() // links may be added long after the caller has closed its own handle
	if err != nil {
		return fmt.Errorf("join %s: %w", instanceID, err)
	}
	l.nodes[instanceID] = node
	var errs []error
	for _, a := range l.enis {
		if a.InstanceID != instanceID {
			continue
		}
		// ENIs attached before the instance started are there when it boots.
		a.ready = true
		errs = append(errs, l.linkUpLocked(a))
	}
	return errors.Join(errs...)
}

// leave removes an instance's links, as when the instance stops. Its ENIs stay attached.
func (l *links) leave(instanceID string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	node := l.nodes[instanceID]
	if node == nil {
		return nil
	}
	delete(l.nodes, instanceID)
	errs := []error{node.Close()}
	for _, a := range l.enis {
		if a.InstanceID == instanceID {
			errs = append(errs, l.linkDownLocked(a))
		}
	}
	return errors.Join(errs...)
}

func (l *links) linkUpLocked(a *attached) error {
	node := l.nodes[a.InstanceID]
	if node == nil || !a.ready || a.link != "" {
		return nil
	}
	if err := l.addLinkLocked(a, node); err != nil {
		return fmt.Errorf("link of %s: %w", a.ID, err)
	}
	if a.link == "" {
		return nil
	}
	var errs []error
	if a.unchecked {
		errs = append(errs, l.firewall.setUnchecked(a.link, true))
	}
	for p := range a.prefixes {
		errs = append(errs, l.router.addRoute(p, a.index))
	}
	for _, b := range l.enis {
		if b.branch.trunk == a.ID {
			errs = append(errs, l.linkUpLocked(b))
		}
	}
	return errors.Join(errs...)
}

// addLinkLocked creates an ENI's link, unless it is a branch whose trunk has no link or whose
// VLAN id is in use.
func (l *links) addLinkLocked(a *attached, node *netns.NS) error {
	mac, err := net.ParseMAC(a.MAC)
	if err != nil {
		return err
	}
	if a.branch.trunk == "" {
		l.next++
		link := fmt.Sprintf("f%d", l.next)
		if a.index, err = l.router.addLink(link, l.name(a.ENI), mac, node); err != nil {
			return err
		}
		a.link = link
		return nil
	}
	trunk := l.enis[a.branch.trunk]
	if trunk == nil || trunk.link == "" {
		return nil
	}
	for _, other := range l.enis {
		if other.branch == a.branch && other.link != "" {
			return nil
		}
	}
	link := fmt.Sprintf("%s.%d", trunk.link, a.branch.vlan)
	a.index, err = l.router.addVLAN(link, trunk.index, a.branch.vlan, mac)
	if errors.Is(err, errNoVLAN) {
		return nil // nothing is behind the VLAN
	}
	if err == nil {
		a.link = link
	}
	return err
}

func (l *links) linkDownLocked(a *attached) error {
	if a.link == "" {
		return nil
	}
	var errs []error
	for _, b := range l.enis {
		if b.branch.trunk == a.ID {
			errs = append(errs, l.linkDownLocked(b))
		}
	}
	link := a.link
	a.link = ""
	errs = append(errs, l.router.delLink(a.index))
	if a.unchecked {
		errs = append(errs, l.firewall.setUnchecked(link, false))
	}
	return errors.Join(errs...)
}

// instanceOf returns the instance that owns a source address, or "" if no attached ENI has
// the address itself or a prefix that contains it.
func (l *links) instanceOf(addr netip.Addr) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	owned := []int{32, 28} // an ENI owns addresses and /28 prefixes
	if addr.Is6() {
		owned = []int{128, 80}
	}
	for _, bits := range owned {
		p, err := addr.Prefix(bits)
		if err != nil {
			return ""
		}
		if a := l.enis[l.owners[p]]; a != nil {
			return a.InstanceID
		}
	}
	return ""
}

// linkOf returns the name of the fabric's end of an ENI's link.
func (l *links) linkOf(id string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.enis[id]
	if a == nil || a.link == "" {
		return "", false
	}
	return a.link, true
}

// stop cancels pending link delays, waits for them and releases the nodes.
func (l *links) stop() error {
	close(l.stopped)
	l.wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for id, node := range l.nodes {
		delete(l.nodes, id)
		errs = append(errs, node.Close())
	}
	return errors.Join(errs...)
}

// list returns the links that exist in the kernel.
func (l *links) list() ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	owners := map[string]string{}
	for _, a := range l.enis {
		if a.link != "" {
			owners[a.link] = a.ID
		}
	}
	all, err := l.router.nl.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list links of the fabric: %w", err)
	}
	var out []string
	for _, link := range all {
		name := link.Attrs().Name
		if link.Type() != "veth" && link.Type() != "vlan" || name == internetLink {
			continue
		}
		if owners[name] == "" {
			owners[name] = "no attached ENI"
		}
		out = append(out, "link "+name+" of "+owners[name])
	}
	return out, nil
}
