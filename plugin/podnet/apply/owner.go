package apply

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/rtnl"
)

// LeadsElsewhere reports whether the host's route to a pod address goes through a
// link other than hostLink, which means that another pod has the address. It lists
// routes, so it is not for the usual path.
func LeadsElsewhere(address netip.Addr, hostLink string) (_ bool, err error) {
	host, err := rtnl.Open()
	if err != nil {
		return false, failed(StepOpen, err)
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	fam := uint8(unix.AF_INET)
	if address.Is6() {
		fam = unix.AF_INET6
	}
	routes, err := host.Routes(fam, netnames.MainTable)
	if err != nil {
		return false, err
	}
	own := netip.PrefixFrom(address, address.BitLen())
	for _, r := range routes {
		if r.Dst != own {
			continue
		}
		link, found, err := host.LinkByIndex(r.Link)
		return found && link.Name != hostLink, err
	}
	return false, nil
}
