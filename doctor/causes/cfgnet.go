package causes

import (
	"errors"
	"fmt"
	"slices"

	"cnictl/daemon/config"
	"cnictl/daemon/resync"
	"cnictl/doctor/evidence"
)

var cfgnetRules = []Rule{
	{Code: "cfgnet/eniconfig-missing", Node: eniConfigMissing},
	{Code: "cfgnet/eniconfig-invalid", Node: eniConfigInvalid},
	{Code: "cfgnet/changed-live", Node: customChanged},
}

func (c *Case) customNetworking() Fact {
	return c.Setting("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "false", func(s config.Config) bool { return s.CustomNetworking })
}

// errNoENIConfig means that a node's ENIConfig does not exist.
var errNoENIConfig = errors.New("no such ENIConfig")

// eniConfig returns the ENIConfig that the node maps to, and whether that is known.
func (c *Case) eniConfig() (e evidence.ENIConfig, err error, known bool) {
	name, ok := c.eniConfigName()
	if !ok || !c.R.ENIConfigs.OK() && c.R.ENIConfigs.Missing != evidence.MissingAbsent {
		return e, nil, false
	}
	e, there := find(c.R.ENIConfigs.Content, func(e evidence.ENIConfig) bool { return e.Name == name })
	if !there {
		err = errNoENIConfig
	}
	return e, err, true
}

func eniConfigMissing(c *Case) []Result {
	name, _ := c.eniConfigName()
	_, err, known := c.eniConfig()
	missing := c.active(pattern{sources: []string{"log.ipamd", "k8s.evt"},
		texts: []string{"error while retrieving eniconfig:", "eniconfig is not available", "EniConfigNameNotFound"}, cured: grown})
	if known {
		missing = c.Known("k8s.eniconfig", "ENIConfig "+name, "there", map[bool]string{true: "missing", false: "there"}[err != nil], err != nil)
	}
	cd := Result{
		Summary:  fmt.Sprintf("custom networking is on, and ENIConfig %q, which the node maps to, does not exist", name),
		Decisive: []Fact{missing, c.customNetworking()}, names: map[string]string{"NAME": name},
	}
	if zone := c.R.Node.Content.Labels["topology.kubernetes.io/zone"]; zone != "" && zone != name &&
		slices.ContainsFunc(c.R.ENIConfigs.Content, func(e evidence.ENIConfig) bool { return e.Name == zone }) {
		cd.Summary += "; there is one for its zone, " + zone
		return []Result{cd.WithFixes(4)}
	}
	return []Result{cd.WithFixes(1, 2, 3)}
}

func eniConfigInvalid(c *Case) []Result {
	e, err, known := c.eniConfig()
	found := c.Unread("k8s.eniconfig", "ENIConfig "+e.Name, "in the node's zone and VPC",
		or(c.R.ENIConfigs.Missing, "the node's ENIConfig is unknown"))
	why := ""
	if known {
		state := No
		if err == nil {
			why, state = c.fault(e)
		}
		found = c.Known("k8s.eniconfig", "ENIConfig "+e.Name, "in the node's zone and VPC", or(why, "in both"), state == Yes)
		if found.State = state; state == Unread {
			found.Value, found.Reason = "", or(c.R.Subnets.Missing, "the node's subnet is unknown")
		}
	}
	return []Result{{
		Summary:  fmt.Sprintf("ENIConfig %q cannot be used: %s", e.Name, why),
		Decisive: []Fact{found, c.customNetworking()}, names: map[string]string{"NAME": e.Name, "SUBNET": e.Subnet},
	}}
}

// fault returns what is wrong with an ENIConfig.
func (c *Case) fault(e evidence.ENIConfig) (string, State) {
	if !e.Valid {
		return "it is malformed: securityGroups is not a list", Yes
	}
	for _, id := range e.SecurityGroups {
		group, there := find(c.R.Groups.Content, func(g evidence.SecurityGroup) bool { return g.ID == id })
		if own, _ := c.subnet(e.Subnet); c.R.Groups.OK() && (!there || own.VPC != "" && group.VPC != "" && group.VPC != own.VPC) {
			return "security group " + id + " is not in the VPC", Yes
		}
	}
	own, ok := c.subnet(c.subnetOfNode())
	if !c.R.Subnets.OK() || !ok || own.VPC == "" { // nodes report only subnets that they use
		return "", Unread
	}
	s, ok := c.subnet(e.Subnet)
	switch {
	case !ok:
		return e.Subnet + " was not found", Yes
	case s.Zone != own.Zone:
		return fmt.Sprintf("%s is in zone %s, the node in %s", s.ID, s.Zone, own.Zone), Yes
	case s.VPC != own.VPC:
		return s.ID + " is in another VPC", Yes
	}
	if len(e.SecurityGroups) > 0 && !c.R.Groups.OK() && c.R.Groups.Missing != evidence.MissingMode {
		return "", Unread
	}
	return "", No
}

func customChanged(c *Case) []Result {
	e, err, known := c.eniConfig()
	var differ string
	for _, eni := range c.R.ENIs.Content {
		switch {
		case eni.Primary:
			for a := range eni.Records() {
				if a.Pod != nil {
					differ = "pods have addresses of the primary interface"
				}
			}
		case known && err == nil && e.Subnet != "" && eni.Subnet != "" && eni.Subnet != e.Subnet && !eni.Trunk && c.madeHere(eni.ID):
			differ = or(differ, fmt.Sprintf("%s is in %s, not in %s of ENIConfig %q", eni.ID, eni.Subnet, e.Subnet, e.Name))
		}
	}
	const path, expected = "subnets and pods of the interfaces", "as the ENIConfig says"
	changed := On(c, c.R.ENIs, "intro.enis", path, expected, func([]evidence.ENI) (any, State) {
		return or(differ, "as it says"), stateOf(differ != "")
	})
	if changed.State == No && !known && len(c.R.ENIs.Content) > 1 {
		changed = c.Unread("k8s.eniconfig", path, expected, or(c.R.ENIConfigs.Missing, c.R.Node.Missing, "the node's ENIConfig is unknown"))
	}
	return []Result{{
		Summary:  "custom networking changed under the running node: " + differ,
		Decisive: []Fact{c.customNetworking(), changed}, // without it pods use the primary interface everywhere
	}}
}

// madeHere reports whether a daemon made the interface. It assumes so if EC2 does not show it.
func (c *Case) madeHere(id string) bool {
	e, shown := find(c.R.Interfaces.Content, func(e evidence.Interface) bool { return e.ID == id })
	return !shown || e.Tags[resync.TagInstanceID] != ""
}
