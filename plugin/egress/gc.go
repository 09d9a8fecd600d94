package egress

import (
	"errors"
	"strconv"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/hostnet/egress"
	"cnictl/daemon/iptables"
	"cnictl/plugin/netconf"
	"cnictl/plugin/skel"
)

// gc is the GC command. It removes leases and chains of this network without a valid
// attachment, as DEL does, and calls host-local; failures do not stop it. Without a list
// it does nothing.
func (c *command) gc() *skel.Error {
	valid, given, err := netconf.ValidAttachments(c.Stdin)
	if err != nil {
		return &skel.Error{Code: skel.CodeDecoding, Msg: err.Error(), Cause: cause.InvalidRequest}
	}
	if !given {
		return nil
	}
	c.logRequest()
	keep := make(map[netconf.Attachment]bool, len(valid))
	containers := make(map[string]bool, len(valid))
	for _, a := range valid {
		keep[a], containers[a.ContainerID] = true, true
	}
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
			c.log.Warn("Garbage collection skipped: " + err.Error())
		}
	}
	stale, err := c.leases(func(l lease) bool {
		if l.ifName == "" {
			return !containers[l.containerID]
		}
		return !keep[netconf.Attachment{ContainerID: l.containerID, IfName: l.ifName}]
	})
	note(err)
	for _, l := range stale {
		note(c.collect(l, containers[l.containerID]))
	}
	for _, v6 := range []bool{false, true} {
		note(c.collectChains(v6, func(id string) bool { return containers[id] }))
	}
	if c.conf.On() {
		if err := c.run("GC"); err != nil {
			note(errors.New(textIPAM + err.Error()))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return internal(cause.PodNetworkTeardown, "gc: "+strconv.Itoa(len(errs))+" steps failed, the last: "+errs[len(errs)-1].Error())
}

// collect releases a lease. The chain belongs to the container, so it stays while another
// attachment of the container is valid.
func (c *command) collect(l lease, chainInUse bool) error {
	d := *c
	r := *c.Request
	d.Request, r.ContainerID, r.IfName = &r, l.containerID, l.ifName
	if !chainInUse {
		if err := d.removeChain(l.address.Is6(), ""); err != nil && !errors.Is(err, errNoIPTables) {
			return err
		}
	}
	if err := dropHostRoute(l.address); err != nil {
		return err
	}
	ifName := l.ifName
	if ifName == "" {
		ifName = "eth0" // host-local requires one, but finds these leases by container only
	}
	if err := d.run("DEL", "CNI_CONTAINERID="+l.containerID, "CNI_IFNAME="+ifName, "CNI_NETNS="); err != nil {
		return errors.New(textIPAM + err.Error())
	}
	return nil
}

func (c *command) collectChains(v6 bool, keep func(containerID string) bool) error {
	n, err := c.openNAT(v6)
	if errors.Is(err, errNoIPTables) {
		return nil
	}
	if err != nil {
		return err
	}
	return n.change(func(now iptables.Table) string {
		return egress.Remove(now, egress.Stale(now, c.conf.Name, keep)...)
	})
}
