package apply

import (
	"time"

	"cnictl/daemon/rtnl"
)

// usableDeadline bounds the wait for addresses, which takes some 0.1 ms. It is the
// original's, whose wait includes the detection of duplicates.
const usableDeadline = 10 * time.Second

// readiness waits until the addresses of an IPv6 pod are in use on both sides, so that
// the first packet either way finds its neighbour.
type readiness struct {
	host, pod         *rtnl.AddressWatch
	onHost, insidePod []rtnl.Address
}

// prepareIPv6 sets what IPv6 needs before the pod ends come up, and begins to listen.
func (s *Setup) prepareIPv6() (_ *readiness, err error) {
	w := &readiness{}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.host, err = rtnl.WatchAddresses(); err != nil {
		return w, failed(StepOpen, err)
	}
	b := s.begin()
	for i := range s.wanted.Interfaces {
		f := &s.wanted.Interfaces[i]
		if err := setSysctls(f.Pair.Host.Name, f.HostSysctls, hostStep); err != nil {
			return w, of(i, err)
		}
		local := rtnl.Address{Link: s.made[i].Host.Index, Prefix: f.HostAddress, NoDAD: true}
		b.AddrAdd(local)
		s.say(StepHostAddress, i, change{})
		w.onHost = append(w.onHost, local)
		w.insidePod = append(w.insidePod, rtnl.Address{Link: s.made[i].Pod.Index, Prefix: f.Address})
	}
	if err := s.send(s.host); err != nil {
		return w, err
	}
	err = s.ns.do(func() (err error) {
		if w.pod, err = rtnl.WatchAddresses(); err != nil {
			return failed(StepOpen, err)
		}
		for i := range s.wanted.Interfaces {
			if err := setNamedSysctls(s.wanted.Interfaces[i].PodSysctls, podStep); err != nil {
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

// wait is for a pod of either family.
func (w *readiness) wait() error {
	if w == nil {
		return nil
	}
	err := w.pod.Wait(w.insidePod, usableDeadline)
	if err == nil {
		err = w.host.Wait(w.onHost, usableDeadline)
	}
	if err != nil {
		return failed(StepAddressUsable, err)
	}
	return nil
}

func (w *readiness) close() {
	for _, a := range []*rtnl.AddressWatch{w.host, w.pod} {
		if a != nil {
			_ = a.Close()
		}
	}
}

// add has the wait include another address of the host.
func (w *readiness) add(a rtnl.Address) {
	if w != nil {
		w.onHost = append(w.onHost, a)
	}
}
