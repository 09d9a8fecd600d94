package vpc

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"cnictl/testenv/network/netns"
)

// outsideGateway is the fabric's address towards the outside host. 198.51.100.0/24
// (TEST-NET-2) represents the Internet.
var outsideGateway = netip.MustParsePrefix("198.51.100.1/24")

// outside is the host beyond the VPC.
type outside struct {
	ns       *netns.NS
	tcp, udp *netns.Echo
}

func newOutside(r *router) (*outside, error) {
	ns, err := netns.Create("")
	if err != nil {
		return nil, err
	}
	o := &outside{ns: ns}
	if err := o.start(r); err != nil {
		return nil, errors.Join(fmt.Errorf("outside host: %w", err), o.close())
	}
	return o, nil
}

func (o *outside) start(r *router) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = internetLink, MTU
	pair := netlink.NewVeth(attrs)
	pair.PeerName, pair.PeerMTU, pair.PeerNamespace = "eth0", MTU, netlink.NsFd(o.ns.FD())
	if err := r.nl.LinkAdd(pair); err != nil {
		return fmt.Errorf("add link: %w", err)
	}
	if err := configure(r.nl, internetLink, outsideGateway); err != nil {
		return err
	}
	err := o.ns.Do(func() error {
		nl, err := netlink.NewHandle()
		if err != nil {
			return err
		}
		defer nl.Close()
		host := netip.PrefixFrom(Outside.Addr(), outsideGateway.Bits())
		if err := configure(nl, "eth0", host); err != nil {
			return err
		}
		// Addresses of the VPC are reachable only through the fabric's checks.
		return nl.RouteAdd(&netlink.Route{
			Dst: ipNet(netip.MustParsePrefix("0.0.0.0/0")), Gw: outsideGateway.Addr().AsSlice(),
		})
	})
	if err != nil {
		return err
	}
	if o.tcp, err = o.ns.EchoTCP(Outside); err != nil {
		return err
	}
	o.udp, err = o.ns.EchoUDP(Outside)
	return err
}

// configure gives a link an address and sets it up.
func configure(nl *netlink.Handle, name string, a netip.Prefix) error {
	link, err := nl.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find link %s: %w", name, err)
	}
	if err := nl.AddrReplace(link, &netlink.Addr{IPNet: ipNet(a)}); err != nil {
		return fmt.Errorf("add address to %s: %w", name, err)
	}
	if err := nl.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return nil
}

func (o *outside) close() error {
	var errs []error
	for _, e := range []*netns.Echo{o.tcp, o.udp} {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	return errors.Join(append(errs, o.ns.Close())...)
}
