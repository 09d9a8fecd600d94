package egress

// Upstream's messages, word for word, which appear in events and guides.
const (
	aboutText         = "egress CNI plugin "
	textParse         = "failed to parse config: "
	textChained       = "must be called as a chained plugin"
	textIPAM          = "running IPAM plugin failed: "
	textZeroIPs       = "IPAM plugin returned zero IPs"
	textManyIPs       = "IPAM plugin is expected to return 1 IP address, but returned "
	textManyIPsEnd    = " IPs, "
	textNoGlobal      = "global unicast IPv6 not found in host primary interface which is mandatory to support IPv6 egress"
	textStaleRoute    = "failed to add route on host: stale route still exists after 5 attempts: "
	textStaleRoute6   = "stale route still exists after 5 attempts: "
	textPrevResult    = "could not parse prevResult: "
	textVethPair      = "failed to make veth pair: "
	textVethNameTaken = "container veth name provided ("
)
