package apply

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
	"cnictl/plugin/podnet/rules"
)

// Options of Begin.
type Options struct {
	// Stay leaves a thread of the process in the pod's namespace instead of opening the
	// socket there from a throw-away thread. It is for processes that end soon.
	Stay bool
}

// Setup sets up one pod's network.
type Setup struct {
	ns   *Netns
	opts Options
	host *rtnl.Conn
	pod  *rtnl.Conn

	wanted rules.Pod
	batch  rtnl.Batch
	lines  []line       // of the batch
	made   []rules.Pair // by interface: the veth pairs that exist
	early  error        // from setting the sysctls of the pair that TryPair created
	done   []change     // in order, apart from the pairs
	vlan   int32        // index of the VLAN device that was created; 0 if unknown
	usable *readiness   // of an IPv6 pod; nil otherwise

	// Replaced means that a host link of the same name, left by an older sandbox of the
	// pod, was deleted.
	Replaced bool
	// ReplacedVLAN is the VLAN device that existed already and was deleted. It belonged to
	// an older sandbox or, judging by its MAC, to another pod.
	ReplacedVLAN *netstate.Link
}

// line describes a message of a batch.
type line struct {
	step Step
	of   int    // index of the interface
	made change // what to undo once the message has taken effect
}

// change is something created that does not go away with a pair.
type change struct {
	kind changeKind
	of   int // index of the interface
	rule int // index of the rule
}

type changeKind uint8

const (
	noChange changeKind = iota
	madeRoute
	madeRule
	madeVLAN
	madePodRule // rules do not go away with a link
)

// Begin opens the socket on the host, in the namespace of the calling thread.
func Begin(ns *Netns, opts Options) (*Setup, error) {
	host, err := rtnl.Open()
	if err != nil {
		return nil, failed(StepOpen, err)
	}
	return &Setup{ns: ns, opts: opts, host: host}, nil
}

// Own reports whether the pod's namespace is the host's; false if the kernel does not say.
func (s *Setup) Own() bool {
	same, err := s.host.In(s.ns.fd)
	return err == nil && same
}

// Close closes the sockets. The pod's network stays.
func (s *Setup) Close() error {
	if s.usable != nil {
		s.usable.close()
	}
	err := s.host.Close()
	if s.pod != nil {
		err = errors.Join(err, s.pod.Close())
	}
	return err
}

// Network sets up the pod's network.
func (s *Setup) Network(p rules.Pod) error {
	err := s.Links(p)
	if err == nil && p.VLAN != nil {
		err = s.VLAN()
	}
	if err == nil {
		err = s.Connect()
	}
	return err
}

// Links is the first part of Network: the pod's links. Network is split for a caller that
// keeps others from using a VLAN id during VLAN, but not during all of Network, which may
// have to wait.
func (s *Setup) Links(p rules.Pod) error {
	s.wanted = p
	for i := range p.Interfaces {
		if err := s.createPair(i, p.Interfaces[i].Pair); err != nil {
			return of(i, err)
		}
	}
	if p.Interfaces[0].HostAddress.IsValid() {
		usable, err := s.prepareIPv6()
		if err != nil {
			return err
		}
		s.usable = usable
	}
	return nil
}

// VLAN is the second part of Network, for a pod with a branch ENI: its device. It comes
// before Connect because its sysctls must be set by a thread in the host's namespace.
func (s *Setup) VLAN() error {
	if err := s.clearVLAN(); err != nil {
		return err
	}
	return s.createVLAN(s.usable)
}

// Connect is the last part of Network: addresses, routes and rules. It waits until an IPv6
// pod is reachable.
func (s *Setup) Connect() error {
	if err := s.enter(); err != nil {
		return err
	}
	if err := s.inside(); err != nil {
		return err
	}
	crashpoint.Here(crashpoint.PluginAfterPodSide)
	if err := s.outside(); err != nil {
		return err
	}
	for i := range s.made { // they have had a carrier since the pod ends came up
		s.host.SettleCarrier(s.made[i].Host.Name)
	}
	return s.usable.wait()
}

func (s *Setup) enter() error {
	if s.pod != nil {
		return nil
	}
	open := rtnl.OpenIn
	if s.opts.Stay {
		open = rtnl.OpenAndStay
	}
	pod, err := open(s.ns.fd)
	if err != nil {
		return failed(StepOpen, err)
	}
	s.pod = pod
	return nil
}

// begin starts a batch; say records the purpose of each message.
func (s *Setup) begin() *rtnl.Batch {
	s.batch.Reset()
	s.lines = s.lines[:0]
	return &s.batch
}

func (s *Setup) say(step Step, of int, made change) { s.lines = append(s.lines, line{step, of, made}) }

// send sends the batch. The kernel continues after a message that failed, so what took
// effect is recorded message by message.
func (s *Setup) send(to *rtnl.Conn) error {
	err := to.Do(&s.batch)
	for i := range s.lines {
		if made := s.lines[i].made; made.kind != noChange && s.batch.Errno(i) == 0 {
			s.done = append(s.done, made)
		}
	}
	var refused *rtnl.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		l := s.lines[refused.Index]
		return of(l.of, failed(l.step, refused))
	default:
		return failed(s.lines[0].step, err)
	}
}

// inside configures the pod's side, in its namespace.
func (s *Setup) inside() error {
	b := s.begin()
	for i := range s.wanted.Interfaces {
		f := &s.wanted.Interfaces[i]
		link := s.made[i].Pod.Index
		b.LinkUp(link)
		s.say(StepPodLinkUp, i, change{})
		b.RouteReplace(over(f.Gateway, link))
		s.say(StepGateway, i, change{})
		if f.Rule.Priority != 0 {
			b.RuleAdd(f.Rule)
			b.Tolerate(unix.EEXIST)
			s.say(StepInterfaceRule, i, change{kind: madePodRule, of: i})
		}
		b.RouteAdd(over(f.Default, link))
		s.say(StepDefaultRoute, i, change{})
		b.AddrAdd(netstate.Address{Link: link, Prefix: f.Address, NoDAD: f.Address.Addr().Is6()})
		s.say(StepAddress, i, change{})
		b.NeighAdd(netstate.Neighbour{Link: link, IP: f.Neighbour.IP, MAC: s.made[i].Host.MAC})
		s.say(StepNeighbour, i, change{})
	}
	crashpoint.Here(crashpoint.PluginBeforePodSide)
	return s.send(s.pod)
}

// outside configures the routes and rules on the host.
func (s *Setup) outside() error {
	b := s.begin()
	strict := s.strict()
	for i := range s.wanted.Interfaces {
		f := &s.wanted.Interfaces[i]
		b.RouteReplace(over(f.ToPod, s.made[i].Host.Index))
		if strict {
			s.say(StepBranchRoute, i, change{kind: madeRoute, of: i})
		} else {
			s.say(StepHostRoute, i, change{kind: madeRoute, of: i})
		}
		b.RuleDel(f.StaleRule)
		b.Tolerate(unix.ENOENT)
		s.say(StepFromPodRule, i, change{})
		s.addRules(b, i)
	}
	crashpoint.Here(crashpoint.PluginBeforeHostRules)
	err := s.send(s.host)
	crashpoint.Here(crashpoint.PluginAfterHostRules)
	if err != nil {
		return err
	}
	// If a stale rule was found, there may be more, and it may have been the wanted rule
	// itself, so the rules are added again.
	stale := false
	at := 0
	for i := range s.wanted.Interfaces {
		stale = stale || s.batch.Errno(at+1) == 0
		at += 2 + len(s.wanted.Interfaces[i].Rules)
	}
	if stale {
		crashpoint.Here(crashpoint.PluginBeforeOldRules)
		return s.dropStale()
	}
	return nil
}

// strict reports whether the pod's packets are routed by the link on which they arrive.
func (s *Setup) strict() bool {
	return s.wanted.VLAN != nil && s.wanted.Interfaces[0].ToPod.Table != netnames.MainTable
}

func (s *Setup) addRules(b *rtnl.Batch, i int) {
	for n, r := range s.wanted.Interfaces[i].Rules {
		b.RuleAdd(r)
		b.Tolerate(unix.EEXIST)
		step := StepToPodRule
		switch {
		case r.InLink != "" && n == 0:
			step = StepFromVLANRule
		case r.InLink != "":
			step = StepFromVethRule
		case r.Priority == netnames.RuleFromPod:
			step = StepFromPodRule
		}
		s.say(step, i, change{kind: madeRule, of: i, rule: n})
	}
}

func (s *Setup) dropStale() error {
	for i := range s.wanted.Interfaces {
		if err := deleteAll(s.host, &s.batch, s.wanted.Interfaces[i].StaleRule); err != nil {
			return of(i, failed(StepFromPodRule, err))
		}
	}
	crashpoint.Here(crashpoint.PluginAfterOldRules)
	b := s.begin()
	for i := range s.wanted.Interfaces {
		s.addRules(b, i)
	}
	return s.send(s.host)
}

// Undo reverts what was done, in reverse order, the pairs last. It continues after
// failures and returns them joined. Deleting a pair waits for a grace period of the
// kernel.
func (s *Setup) Undo() error {
	crashpoint.Here(crashpoint.PluginBeforeUndo)
	b, inPod := &s.batch, &rtnl.Batch{}
	b.Reset()
	for n := len(s.done) - 1; n >= 0; n-- {
		switch c := s.done[n]; c.kind {
		case madeRoute:
			b.RouteDel(over(s.wanted.Interfaces[c.of].ToPod, s.made[c.of].Host.Index))
			b.Tolerate(unix.ESRCH)
		case madeRule:
			b.RuleDel(s.wanted.Interfaces[c.of].Rules[c.rule])
			b.Tolerate(unix.ENOENT)
		case madeVLAN: // and with it the routes of its table
			if s.vlan != 0 {
				b.LinkDel(s.vlan) // by now another pod's device may have its name
			} else {
				b.LinkDelName(s.wanted.VLAN.Name)
			}
			b.Tolerate(unix.ENODEV)
		case madePodRule:
			inPod.RuleDel(s.wanted.Interfaces[c.of].Rule)
			inPod.Tolerate(unix.ENOENT)
		}
	}
	errs := []error{s.host.Do(b)}
	if inPod.Len() > 0 {
		errs = append(errs, s.pod.Do(inPod))
	}
	b.Reset()
	for n := len(s.made) - 1; n >= 0; n-- {
		b.LinkDel(s.made[n].Host.Index)
		b.Tolerate(unix.ENODEV)
	}
	errs = append(errs, s.host.Do(b))
	s.done, s.made = s.done[:0], s.made[:0]
	crashpoint.Here(crashpoint.PluginAfterUndo)
	return errors.Join(errs...)
}

// LeaveVLAN makes Undo keep the rules that now belong to another pod, which took the VLAN
// id: those that match link names and, if that pod also has the address, the others.
func (s *Setup) LeaveVLAN(withAddress bool) {
	s.done = slices.DeleteFunc(s.done, func(c change) bool {
		return c.kind == madeRule && (withAddress || s.wanted.Interfaces[c.of].Rules[c.rule].InLink != "")
	})
}

// over returns the route over a link.
func over(r netstate.Route, link int32) netstate.Route {
	r.Link = link
	return r
}
