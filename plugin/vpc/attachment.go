package vpc

import (
	"errors"
	"net/netip"
	"strconv"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/plugin/netconf"
	"cnictl/plugin/podnet/apply"
)

// attachment is the pod's part of the previous result. There, the MAC of the dummy
// interface is the VLAN id, its sandbox the device number of the first interface, and the
// MAC of a container interface its route table; see podResult.
type attachment struct {
	result *netconf.PrevResult
	dummy  netconf.Interface
	ifName string
}

// newAttachment returns nil unless the previous result has this pod's dummy.
func newAttachment(c *command, prev *netconf.PrevResult) *attachment {
	if prev == nil {
		return nil
	}
	i := prev.Named(netnames.Dummy(c.pod.podNamespace, c.pod.podName))
	if i < 0 {
		return nil
	}
	return &attachment{result: prev, dummy: prev.Interfaces[i], ifName: c.ifName}
}

func (a *attachment) onlyAddress() (netip.Addr, error) {
	i := a.result.Named(a.ifName)
	if i < 0 {
		return netip.Addr{}, errors.New("cannot find contVethName " + a.ifName + " in prevResult")
	}
	list := a.result.AddressesOf(i)
	if len(list) != 1 {
		return netip.Addr{}, errors.New("found " + strconv.Itoa(len(list)) + " containerIPs for " + a.ifName + " in prevResult")
	}
	return list[0], nil
}

// hostLink is the host end of the first interface, which precedes the pod end in ADD's
// result; empty if it is missing.
func (a *attachment) hostLink() string {
	if i := a.result.Named(a.ifName); i > 0 {
		return a.result.Interfaces[i-1].Name
	}
	return ""
}

// gateway is the gateway of the first interface's address; empty if none.
func (a *attachment) gateway() string {
	first := a.result.Named(a.ifName)
	for _, ip := range a.result.IPs {
		if ip.Interface != nil && *ip.Interface == first {
			return ip.Gateway
		}
	}
	return ""
}

// attached is one interface to tear down.
type attached struct {
	address  netip.Addr
	table    int
	hostLink string
}

// interfaces lists the pod's interfaces; none if any part cannot be parsed.
func (a *attachment) interfaces() ([]attached, error) {
	device, err := strconv.Atoi(a.dummy.Sandbox)
	if err != nil {
		return nil, errors.New("device number " + strconv.Quote(a.dummy.Sandbox) + " in prevResult is not a number")
	}
	var out []attached
	for n := 0; ; n++ {
		i := a.result.Named(netnames.PodInterface(a.ifName, n))
		if i < 0 {
			return out, nil
		}
		table := netnames.RouteTable(0, device)
		// Plugins before v1.20 left the table out.
		if mac := a.result.Interfaces[i].MAC; mac != "" {
			if table, err = strconv.Atoi(mac); err != nil {
				return nil, errors.New("route table " + strconv.Quote(mac) + " in prevResult is not a number")
			}
		}
		host := ""
		if i > 0 {
			host = a.result.Interfaces[i-1].Name // in the order in which ADD writes them
		}
		for _, address := range a.result.AddressesOf(i) {
			out = append(out, attached{address: address, table: table, hostLink: host})
		}
	}
}

// noPrevResult is logged when only the previous result would show what to tear down.
const noPrevResult = "Could not teardown pod using prevResult: there is none for this pod"

// byPrevResult tears down an ordinary pod when the daemon does not answer or does not know
// it. It never fails: a runtime may not retry, and the daemon itself may be waiting for
// pods to go. The address stays allocated until the daemon notices.
func (c *command) byPrevResult(prev *attachment, newer []cniwire.Allocation) {
	if prev == nil {
		c.log.Error(cause.InvalidRequest, noPrevResult)
		return
	}
	list, err := prev.interfaces()
	why := cause.InvalidRequest
	if err == nil {
		err, why = c.teardownAll(list, newer), cause.PodNetworkTeardown
	}
	if err != nil {
		c.log.Error(why, "Could not teardown pod using prevResult: "+err.Error())
		return
	}
	c.log.Info("Handled pod teardown using prevResult: " + string(c.conf.RawPrevResult))
}

func (c *command) teardownAll(list []attached, newer []cniwire.Allocation) error {
	var errs []error
	noted, err := c.allocations()
	if err != nil {
		c.log.Debug("Cannot read the daemon's allocations, checking only the kernel for the pod's addresses: " + err.Error())
	}
	for _, a := range list {
		if holds(newer, a.address) {
			// A late DEL: links are named after pods, so the kernel does not show it.
			c.log.Info("Address " + a.address.String() + " belongs to a newer sandbox of the pod now")
			continue
		}
		other, err := apply.LeadsElsewhere(a.address, a.hostLink)
		// An ADD in progress has not added its route yet.
		if err == nil && other || c.assignedToOther(noted, &a) {
			// A late DEL: the address has been given to another pod since.
			c.log.Info("Address " + a.address.String() + " belongs to another pod now")
			continue
		}
		errs = append(errs, err)
		if err := c.teardown(a.address, a.table, 0); err != nil {
			errs = append(errs, errors.New(teardownText(err, a.address, a.table)))
		}
	}
	return errors.Join(errs...)
}

// assignedToOther reports whether the daemon has recorded the address for another sandbox,
// and not for this one.
func (c *command) assignedToOther(noted []netconf.Allocation, a *attached) bool {
	elsewhere := false
	for i := range noted {
		n := &noted[i]
		if n.Address != a.address {
			continue
		}
		if n.Attachment.ContainerID == c.containerID || n.NetworkName == netnames.RecoveredNetwork && n.Attachment.ContainerID == a.hostLink {
			return false
		}
		elsewhere = true
	}
	return elsewhere
}

func holds(all []cniwire.Allocation, address netip.Addr) bool {
	text := address.String()
	for _, a := range all {
		if a.IPv4 == text || a.IPv6 == text {
			return true
		}
	}
	return false
}
