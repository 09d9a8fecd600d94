package apply

import (
	"errors"

	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// clearVLAN removes what older pods left: rules for the host link's name and for the
// VLAN's table, and the device. The VLAN id is now this pod's, so an existing device
// belongs to a pod that no longer has its branch ENI.
func (s *Setup) clearVLAN() error {
	v := s.wanted.VLAN
	for _, r := range v.Stale {
		if err := deleteAll(s.host, &s.batch, r); err != nil {
			return failed(StepBranchStaleRules, err)
		}
	}
	old, found, err := s.host.LinkByName(v.Name)
	if err != nil {
		return failed(StepOldVLAN, err)
	}
	if !found {
		return nil
	}
	s.ReplacedVLAN = &old
	b := s.begin()
	b.LinkDel(old.Index)
	b.Tolerate(unix.ENODEV)
	s.say(StepOldVLAN, 0, change{})
	return s.send(s.host)
}

// createVLAN creates the device of the branch ENI and the routes over it.
func (s *Setup) createVLAN(usable *readiness) error {
	v := s.wanted.VLAN
	b := s.begin()
	b.VLAN(v.Name, v.Parent, v.ID, v.MAC)
	s.say(StepCreateVLAN, 0, change{kind: madeVLAN})
	if err := s.send(s.host); err != nil {
		return err
	}
	device, found, err := s.host.LinkByName(v.Name)
	if err == nil && !found {
		err = errors.New("the link is gone")
	}
	if err != nil {
		return failed(StepCreateVLAN, err)
	}
	s.vlan = device.Index
	if err := setSysctls(v.Sysctls, vlanStep); err != nil {
		return err
	}
	b = s.begin()
	b.LinkUp(device.Index)
	s.say(StepVLANUp, 0, change{})
	if v.Address.IsValid() {
		local := netstate.Address{Link: device.Index, Prefix: v.Address, NoDAD: true}
		b.AddrAdd(local)
		b.Tolerate(unix.EEXIST) // the link assigns itself the same address when it comes up
		s.say(StepHostAddress, 0, change{})
		usable.add(local)
	}
	b.RouteReplace(over(v.Gateway, device.Index))
	s.say(StepVLANGateway, 0, change{})
	b.RouteReplace(over(v.Default, device.Index))
	s.say(StepVLANDefault, 0, change{})
	return s.send(s.host)
}
