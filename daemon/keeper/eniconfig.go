package keeper

import (
	"time"

	"cnictl/daemon/cluster"
)

// ENIConfigRead is what the API server returned for the node's ENIConfig. No ENI is created
// until one has been read without error; after that, the last good one is used while the API
// server is unreachable.
type ENIConfigRead struct {
	Name   string // the name that the Node selects
	Config cluster.ENIConfig
	Err    error // it is missing or invalid
	// Unread: the object could not be read; Err says nothing about its content.
	Unread bool
}

// customNetworking is the node's ENIConfig as far as known.
type customNetworking struct {
	name    string
	config  cluster.ENIConfig // zero Subnet if none can be used
	problem string            // why none can be used; "" if not read yet
	unread  bool              // the problem is that it could not be read
	last    cluster.ENIConfig // the one last used, possibly still in use
}

func (m ENIConfigRead) handle(k *Keeper, now time.Time) {
	c := &k.custom
	selected := c.name
	c.name = m.Name
	switch {
	case m.Err == nil:
		k.useENIConfig(m.Config, now)
		return
	case m.Unread && c.config.Subnet != "" && selected == m.Name:
		return // keep the last known one
	}
	// It is retried every few seconds, and the errors for an unreachable server vary.
	known := c.problem != "" && selected == m.Name && (c.unread && m.Unread || c.problem == m.Err.Error())
	c.config, c.problem, c.unread = cluster.ENIConfig{}, m.Err.Error(), m.Unread
	k.settings.Subnets.CustomSubnet = ""
	if !known {
		k.record(now, ENIConfigFailed{Name: m.Name, Err: m.Err})
	}
}

// useENIConfig makes new ENIs follow a configuration. Existing ENIs stay as they are, as in
// upstream.
func (k *Keeper) useENIConfig(config cluster.ENIConfig, now time.Time) {
	c := &k.custom
	if sameENIConfig(c.config, config) {
		return
	}
	c.config, c.problem = config, ""
	k.settings.Subnets.CustomSubnet = config.Subnet
	if !sameENIConfig(c.last, config) {
		// It may fix earlier failures: a group that did not exist, a full subnet.
		k.backoff.attach = BackoffTimer{}
		k.subnets.expire()
	}
	c.last = config
	k.record(now, ENIConfigUsed{Name: config.Name, Subnet: config.Subnet})
}

func sameENIConfig(a, b cluster.ENIConfig) bool {
	return a.Subnet == b.Subnet && a.Name == b.Name && sameGroups(a.SecurityGroups, b.SecurityGroups)
}

// ENIConfigName is the name of the ENIConfig that the Node selects; "" if unknown.
func (k *Keeper) ENIConfigName() string { return k.custom.name }

// groupsOfNew are the security groups of new ENIs.
func (k *Keeper) groupsOfNew() []string {
	if k.settings.Subnets.Custom && len(k.custom.config.SecurityGroups) > 0 {
		return k.custom.config.SecurityGroups
	}
	return k.groups
}

// awaitsENIConfig reports whether it is still uncertain that an ENI can be created under
// custom networking: either the API server has not yet returned the ENIConfig, or the list of
// subnets is older than the ENIConfig and is about to be read again.
func (k *Keeper) awaitsENIConfig(now time.Time) bool {
	c := &k.custom
	switch {
	case !k.settings.Subnets.Custom:
		return false
	case c.config.Subnet == "":
		return k.settings.NodeWait > 0 && (c.problem == "" || c.unread)
	}
	return k.noENIConfig() != "" && (k.subnets.refreshing || k.subnets.stale(now))
}

// noENIConfig returns why no ENI can be created under custom networking, "" if one can.
func (k *Keeper) noENIConfig() string {
	c := &k.custom
	switch {
	case !k.settings.Subnets.Custom:
		return ""
	case c.config.Subnet == "" && c.problem == "":
		return "the ENIConfig of the node has not been read from the API server yet"
	case c.config.Subnet == "":
		return c.problem
	case k.subnets.known() && len(k.settings.Subnets.Candidates(k.subnets.all)) == 0:
		return "ENIConfig " + c.config.Name + " names " + c.config.Subnet + ", which is not a subnet of the node's VPC and availability zone"
	}
	return ""
}
