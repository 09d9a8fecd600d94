package hostnet

// Upstream's messages that people and tools match on. A colon and the cause follow.
const (
	textBackend     = "failed to detect iptables mode vpc-cni is using"
	textNoPrimary   = "setupHostNetwork: failed to find the link primary ENI with MAC address %s: no interface found which uses mac address %s (attempt 5/5)"
	textNoENI       = "setupENINetwork: failed to find the link which uses MAC address %s"
	textPrimaryMTU  = "setupHostNetwork: failed to set primary interface MTU to %d"
	textDeleteRule  = "host network setup: failed to delete old main ENI rule"
	textAddRule     = "host network setup: failed to add main ENI rule"
	textNoIPTables  = "host network setup: failed to create iptables"
	textCheckRule   = "host network setup: failed to check existence of %s"
	textChangeRule  = "host network setup: failed to %s %s" // add|delete, rule
	textChangeChain = "host network setup: failed to add chain"
	textEnableIPv6  = "failed to enable IPv6"
	textBlockIPv6   = "failed to block node local v6 access"

	textLocalRule       = "ChangeLocalRulePriority: unable to update local rule priority"
	textDeleteLocalRule = "ChangeLocalRulePriority: failed to delete priority 0 local rule"
	textGatewayRule     = "failed to install IPv6 gateway rule"

	textNoInterface = "failed to SetupHostNetwork: no primary interface found"
)
