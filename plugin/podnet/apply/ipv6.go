package apply

import (
	"time"

	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// readyDeadline limits the wait for addresses, which takes some 0.1 ms. The value is
// upstream's, whose wait includes duplicate address detection.
const readyDeadline = 10 * time.Second

// readiness waits until the links and addresses of an IPv6 pod are usable on both sides,
// so that the first packet either way finds its neighbour.
type readiness struct{ host, pod side }

// side is what readiness waits for in one namespace.
type side struct {
	watch     *rtnl.ReadyWatch
	links     []int32
	addresses []netstate.Address
}

func (d *side) wait() error { return d.watch.Wait(d.links, d.addresses, readyDeadline) }

// prepareIPv6 sets what IPv6 needs before the pod ends come up, and starts listening.
func (s *Setup) prepareIPv6() (_ *readiness, err error) {
	w := &readiness{}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.host.watch, err = rtnl.WatchReady(); err != nil {
		return nil, failed(StepOpen, err)
	}
	b := s.begin()
	for i := range s.wanted.Interfaces {
		f := &s.wanted.Interfaces[i]
		if err := setSysctls(f.HostSysctls, hostStep); err != nil {
			return nil, of(i, err)
		}
		host, pod := s.made[i].Host.Index, s.made[i].Pod.Index
		local := netstate.Address{Link: host, Prefix: f.HostAddress, NoDAD: true}
		b.AddrAdd(local)
		s.say(StepHostAddress, i, change{})
		w.host.links, w.host.addresses = append(w.host.links, host), append(w.host.addresses, local)
		w.pod.links, w.pod.addresses = append(w.pod.links, pod), append(w.pod.addresses, netstate.Address{Link: pod, Prefix: f.Address})
	}
	if err := s.send(s.host); err != nil {
		return nil, err
	}
	err = s.ns.do(func() (err error) {
		if w.pod.watch, err = rtnl.WatchReady(); err != nil {
			return failed(StepOpen, err)
		}
		for i := range s.wanted.Interfaces {
			if err := setSysctls(s.wanted.Interfaces[i].PodSysctls, podStep); err != nil {
				return of(i, err)
			}
		}
		return nil
	})
	if err != nil && FailedStep(err) == 0 {
		err = failed(StepOpen, err) // entering the namespace
	}
	return w, err
}

// wait does nothing for an IPv4 pod, whose w is nil.
func (w *readiness) wait() error {
	if w == nil {
		return nil
	}
	err := w.pod.wait()
	if err == nil {
		err = w.host.wait()
	}
	if err != nil {
		return failed(StepReady, err)
	}
	return nil
}

func (w *readiness) close() {
	for _, d := range []side{w.host, w.pod} {
		if d.watch != nil {
			_ = d.watch.Close()
		}
	}
}

// add makes the wait include another address of the host.
func (w *readiness) add(a netstate.Address) {
	if w != nil {
		w.host.addresses = append(w.host.addresses, a)
	}
}
