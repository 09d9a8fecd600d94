package apply

import (
	"errors"
	"net/netip"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
	"cnictl/plugin/podnet/rules"
)

// AnothersLink reports whether a host link with the pair's name exists but is not the
// pair's: it neither has the MAC that our sandbox would give it, nor is it the peer of the
// link in the sandbox's namespace, as with upstream's pods. Such a link belongs to another
// sandbox of the same pod.
func AnothersLink(p rules.Pair, netns string) (_ bool, err error) {
	host, err := rtnl.Open()
	if err != nil {
		return false, failed(StepOpen, err)
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	link, found, err := host.LinkByName(p.Host.Name)
	if err != nil || !found || link.MAC == p.Host.MAC {
		return false, err
	}
	ns, err := OpenNetns(netns)
	if err != nil {
		return true, nil // the sandbox's namespace is gone, and its links with it
	}
	defer ns.Close()
	pod, err := rtnl.OpenIn(ns.fd)
	if err != nil {
		return false, failed(StepOpen, err)
	}
	defer func() { err = errors.Join(err, pod.Close()) }()
	end, found, err := pod.LinkByName(p.Pod.Name)
	return err == nil && (!found || end.Parent != link.Index), err
}

// LeadsElsewhere reports whether the host's route to a pod address goes through a link
// other than hostLink, which means that another pod has the address. It lists routes, so
// it is not for the common path.
func LeadsElsewhere(address netip.Addr, hostLink string) (_ bool, err error) {
	host, err := rtnl.Open()
	if err != nil {
		return false, failed(StepOpen, err)
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	routes, err := host.Routes(rtnl.Family(address), netnames.MainTable)
	if err != nil {
		return false, err
	}
	own := netstate.Only(address)
	for _, r := range routes {
		if r.Dst != own {
			continue
		}
		link, found, err := host.LinkByIndex(r.Link)
		return found && link.Name != hostLink, err
	}
	return false, nil
}
