package apply

import (
	"errors"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/rtnl"
	"cnictl/plugin/podnet/rules"
)

// Options of Begin.
type Options struct {
	// Stay leaves a thread of the process in the pod's namespace instead of opening
	// the socket there from a throw-away thread. For a process that ends soon.
	Stay bool
}

// Setup is the making of one pod's network.
type Setup struct {
	ns   *Netns
	opts Options
	host *rtnl.Conn
	pod  *rtnl.Conn

	batch rtnl.Batch
	made  *rules.Pair // set once the veth pair exists
	undo  rtnl.Batch  // for the host's routes and rules, in order of making

	// Replaced tells that a host link of the same name, left by an older sandbox of
	// the pod, was deleted.
	Replaced bool
}

// Begin opens the socket on the host, in the namespace of the calling thread.
func Begin(ns *Netns, opts Options) (*Setup, error) {
	host, err := rtnl.Open()
	if err != nil {
		return nil, failed(StepOpen, err)
	}
	return &Setup{ns: ns, opts: opts, host: host}, nil
}

// Own reports whether the pod's namespace is the host's. False when the kernel cannot
// tell.
func (s *Setup) Own() bool {
	same, err := s.host.In(s.ns.fd)
	return err == nil && same
}

// Close closes the sockets. What was made stays.
func (s *Setup) Close() error {
	err := s.host.Close()
	if s.pod != nil {
		err = errors.Join(err, s.pod.Close())
	}
	return err
}

// Network makes the pod's network on the pair that CreatePair made.
func (s *Setup) Network(p rules.Pod) error {
	if s.made == nil {
		return failed(StepCreatePair, errors.New("the veth pair was not created"))
	}
	p.Pair = *s.made // its indexes may have moved
	if err := s.enter(); err != nil {
		return err
	}
	if err := s.inside(p); err != nil {
		return err
	}
	crashpoint.Here(crashpoint.PluginAfterPodSide)
	return s.outside(p)
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

// inside is the part in the pod's namespace; it needs no undoing beyond the pair's.
func (s *Setup) inside(p rules.Pod) error {
	steps := [...]Step{StepPodLinkUp, StepGateway, StepDefaultRoute, StepAddress, StepNeighbour}
	link := p.Pair.Pod.Index
	b := &s.batch
	b.Reset()
	b.LinkUp(link)
	b.RouteReplace(route(p.Gateway, link))
	b.RouteAdd(route(p.Default, link))
	b.AddrAdd(rtnl.Address{Link: link, Prefix: p.Address})
	b.NeighAdd(rtnl.Neighbour{Link: link, IP: p.Neighbour.IP, MAC: rtnl.MAC(p.Pair.Host.MAC)})
	crashpoint.Here(crashpoint.PluginBeforePodSide)
	return stepError(s.pod.Do(b), steps[:])
}

// outside is the route and the rules on the host. The kernel goes on after a
// message that failed, so what took effect is noted message by message.
func (s *Setup) outside(p rules.Pod) error {
	steps := [...]Step{StepHostRoute, StepFromPodRule, StepToPodRule, StepFromPodRule}
	to := route(p.ToPod, p.Pair.Host.Index)
	b := &s.batch
	b.Reset()
	b.RouteReplace(to)
	b.RuleDel(rule(p.StaleRule))
	b.Tolerate(unix.ENOENT)
	for _, r := range p.Rules {
		b.RuleAdd(rule(r))
		b.Tolerate(unix.EEXIST)
	}
	crashpoint.Here(crashpoint.PluginBeforeHostRules)
	err := stepError(s.host.Do(b), steps[:])
	crashpoint.Here(crashpoint.PluginAfterHostRules)
	if b.Errno(0) == 0 {
		s.undo.RouteDel(to)
		s.undo.Tolerate(unix.ESRCH)
	}
	for i, r := range p.Rules {
		if b.Errno(2+i) == 0 {
			s.undo.RuleDel(rule(r))
			s.undo.Tolerate(unix.ENOENT)
		}
	}
	if err == nil && b.Errno(1) == 0 {
		crashpoint.Here(crashpoint.PluginBeforeOldRules)
		return s.dropStale(p)
	}
	return err
}

// dropStale goes on after one stale rule was found: there may be more, and the
// first may have been the very rule wanted, so the rules are added once more.
func (s *Setup) dropStale(p rules.Pod) error {
	b := &s.batch
	if err := deleteAll(s.host, b, p.StaleRule); err != nil {
		return failed(StepFromPodRule, err)
	}
	crashpoint.Here(crashpoint.PluginAfterOldRules)
	b.Reset()
	for _, r := range p.Rules {
		b.RuleAdd(rule(r))
		b.Tolerate(unix.EEXIST)
	}
	return stepError(s.host.Do(b), []Step{StepToPodRule, StepFromPodRule})
}

// Undo takes back what was made, the pair last. It goes on after failures and returns
// them joined. Deleting the pair waits for a grace period of the kernel.
func (s *Setup) Undo() error {
	crashpoint.Here(crashpoint.PluginBeforeUndo)
	var errs []error
	if s.undo.Len() > 0 {
		errs = append(errs, s.host.Do(&s.undo))
	}
	if s.made != nil {
		s.batch.Reset()
		s.batch.LinkDel(s.made.Host.Index)
		s.batch.Tolerate(unix.ENODEV)
		errs = append(errs, s.host.Do(&s.batch))
		s.made = nil
	}
	crashpoint.Here(crashpoint.PluginAfterUndo)
	s.undo.Reset()
	return errors.Join(errs...)
}

// stepError turns the failure of a batch into that of the step of its message.
func stepError(err error, steps []Step) error {
	var refused *rtnl.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return failed(steps[refused.Index], refused)
	default:
		return failed(steps[0], err)
	}
}

func route(r rules.Route, link int32) rtnl.Route {
	out := rtnl.Route{Dst: r.Dst, Gateway: r.Gateway, Link: link}
	if !r.Gateway.IsValid() {
		out.Scope = rtnl.OnLink
	}
	return out
}

func rule(r rules.Rule) rtnl.Rule {
	return rtnl.Rule{Priority: r.Priority, From: r.From, To: r.To, Table: r.Table, IPv6: r.IPv6}
}
