package causes

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// awsObservers look at what EC2 shows of the node's interfaces, security groups and routes.
var awsObservers = []observer{
	{kind: "obs/eni-attaching", find: eniAttaching},
	{kind: "obs/eni-empty", find: eniEmpty},
	{kind: "obs/eni-groups", find: eniGroups},
	{kind: "obs/groups-closed", find: groupsClosed},
	{kind: "obs/vpc-route", find: vpcRoute},
}

// attachLate is how long EC2 takes at most to attach an interface.
const attachLate = 5 * time.Minute

func eniAttaching(c *Case) (out []observation) {
	severity := c.ifStarving(catalogue.Warning) // pods wait for the addresses that it would have
	for _, e := range c.attached() {
		if e.Status == "attaching" && !e.CreatedAt.IsZero() && c.Now.Sub(e.CreatedAt) > attachLate {
			out = append(out, observation{subject: e.ID, is: "EC2 has been attaching it for " + age(c.Now.Sub(e.CreatedAt)),
				should: "attached within seconds", severity: severity, since: e.CreatedAt, names: map[string]string{"ENI": e.ID}})
		}
	}
	return out
}

// ifStarving returns Error if pods wait for an address that the pool does not have.
func (c *Case) ifStarving(otherwise catalogue.Severity) catalogue.Severity {
	if c.dry().State == Yes && c.failing().State == Yes {
		return catalogue.Error
	}
	return otherwise
}

// ofPool reports whether an interface serves ordinary pods.
func (c *Case) ofPool(e evidence.ENI) bool {
	return !e.Trunk && !e.Excluded && !(e.Primary && c.Settings.CustomNetworking)
}

func eniEmpty(c *Case) (out []observation) {
	if c.Settings.IPv6 {
		return nil
	}
	for _, e := range c.R.ENIs.Content {
		if !c.ofPool(e) || e.Primary || len(e.IPs)+len(e.Prefixes) > 0 || c.settling(e.ID) {
			continue
		}
		out = append(out, observation{subject: e.ID, is: "it has no address for pods", should: "addresses, while pods wait for one",
			severity: c.ifStarving(catalogue.Info), names: map[string]string{"ENI": e.ID}})
	}
	return out
}

func sorted(groups []string) []string { return slices.Sorted(slices.Values(groups)) }

func eniGroups(c *Case) (out []observation) {
	id, _ := c.primary()
	want, by := []string(nil), "those of "+id
	if p, there := c.inEC2(id); there {
		want = sorted(p.Groups)
	}
	if c.Settings.CustomNetworking {
		config, err, known := c.eniConfig()
		if !known || err != nil || len(config.SecurityGroups) == 0 {
			return nil
		}
		want, by = sorted(config.SecurityGroups), "those of ENIConfig "+config.Name
	}
	for _, e := range c.R.ENIs.Content {
		d, there := c.inEC2(e.ID)
		if !there || e.Primary || !c.ofPool(e) || len(want) == 0 || len(d.Groups) == 0 || c.settling(e.ID) ||
			slices.Equal(sorted(d.Groups), want) {
			continue
		}
		pods := c.onENI(e.ID)
		out = append(out, observation{subject: e.ID, is: fmt.Sprintf("it has %s; %s are %s", every(sorted(d.Groups)), by, every(want)),
			should: "the same groups", severity: catalogue.Warning, pods: pods, source: "ec2.eni",
			names: map[string]string{"ENI": e.ID, "GROUPS": strings.Join(want, separator)}})
	}
	return out
}

// letsClusterIn reports whether a rule of a security group lets nodes or pods of the cluster in: by a group that interfaces of
// instances have, or by addresses of the VPC.
func (c *Case) letsClusterIn(r evidence.GroupRule) bool {
	if p, err := netip.ParsePrefix(r.Peer); err == nil {
		return c.overVPC(p)
	}
	return slices.ContainsFunc(c.R.Interfaces.Content, func(e evidence.Interface) bool {
		return e.Instance != "" && slices.Contains(e.Groups, r.Peer)
	})
}

// groupsClosed finds interfaces whose security groups allow no egress, no ingress, or, where pods have groups of their own, no
// ingress from the cluster. It skips interfaces with a group that was not read.
func groupsClosed(c *Case) (out []observation) {
	primary, _ := c.primary()
	for _, e := range c.attached() {
		if managed, there := c.managed(e.ID); len(e.Groups) == 0 || known(c.R.Groups.Content, e.Groups) < len(e.Groups) || there &&
			managed.Trunk {
			continue
		}
		egress, ingress, unread, cluster := 0, 0, false, false
		for _, g := range c.R.Groups.Content {
			if slices.Contains(e.Groups, g.ID) {
				cluster = cluster || slices.ContainsFunc(g.Ingress, c.letsClusterIn)
				egress, ingress, unread = egress+len(g.Egress), ingress+len(g.Ingress), unread || g.Egress == nil || g.Ingress == nil
			}
		}
		pods := c.onENI(e.ID)
		o := observation{subject: e.ID, pods: pods, should: "traffic of the cluster in and out", source: "ec2.sg",
			names: map[string]string{"ENI": e.ID, "GROUP": e.Groups[0]}}
		switch {
		case unread:
			continue
		case egress == 0:
			o.is, o.severity, o.fixes = every(e.Groups)+" let nothing out: what node or pods connect to is not reached", bySeverity(pods,
				catalogue.Error), []int{1}
		case ingress == 0:
			o.is, o.severity, o.fixes = every(e.Groups)+" let nothing in: other nodes and the control plane reach neither kubelet nor pods", catalogue.Error, []int{2}
		case !cluster && c.Settings.CustomNetworking && e.ID != primary && primary != "":
			o.is, o.severity, o.fixes = every(e.Groups)+" let neither nodes nor other pods in", catalogue.Warning, []int{2}
		default:
			continue
		}
		out = append(out, o)
	}
	return out
}

// isEverything reports whether a route of a VPC is for everything.
func isEverything(to string) bool { return to == "0.0.0.0/0" || to == "::/0" }

// Fixes of obs/vpc-route, from 1.
const (
	fixRoute = iota + 1
	fixNewRoute
	fixGone
)

func vpcRoute(c *Case) (out []observation) {
	for _, t := range c.R.RouteTables.Content {
		if !c.uses(t.Subnet) {
			continue
		}
		name := strings.TrimSpace("route table " + t.ID)
		add := func(to, is string, severity catalogue.Severity, fix int) {
			out = append(out, observation{subject: name + " of " + t.Subnet, is: is,
				should: "a route to a NAT gateway, or endpoints for what is needed", severity: severity,
				source: "ec2.rtb", fixes: []int{fix}, names: map[string]string{"TABLE": t.ID, "SUBNET": t.Subnet, "DESTINATION": to}})
		}
		leaves := false
		for _, r := range t.Routes {
			leaves = leaves || isEverything(r.To)
			switch {
			case r.Target != "blackhole":
			case isEverything(r.To):
				add(r.To, "its route "+r.To+" leads to a target that is gone (blackhole): nothing outside the VPC is reached", catalogue.Error,
					fixRoute)
			default:
				add(r.To, "its route "+r.To+" leads to a target that is gone (blackhole)", catalogue.Warning, fixGone)
			}
		}
		if !leaves && len(t.Routes) > 0 { // so are private clusters, on purpose
			severity, is := catalogue.Info, "it has no default route: nothing outside the VPC is reached but by endpoints"
			if target := c.outsideFails(); target != "" {
				severity, is = catalogue.Error, is+"; "+target+" was not reached"
			}
			add("0.0.0.0/0", is, severity, fixNewRoute)
		}
	}
	return out
}

// outsideFails returns the target of a failed probe outside the VPC, empty if none failed.
func (c *Case) outsideFails() string {
	for _, p := range c.R.Probes.Content {
		a := targetAddr(p.Target)
		if p.Result != "ok" && a.IsValid() && !a.IsPrivate() && !a.IsLinkLocalUnicast() && !a.IsLoopback() && a != netip.IPv4Unspecified() {
			return p.Target
		}
	}
	return ""
}
