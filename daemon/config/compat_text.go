package config

import "strconv"

// Texts that guides, issues and support tools search for. They are kept verbatim.
const (
	textInvalidConfig      = "ipamd: failed to validate configuration"
	textNetworkPolicyMode  = "invalid Network policy mode, supported modes: none, strict, standard"
	textVethPrefixLong     = "AWS_VPC_K8S_CNI_VETHPREFIX cannot be longer than 4 characters"
	textVethPrefixReserved = "AWS_VPC_K8S_CNI_VETHPREFIX cannot be set to reserved values 'eth', 'vlan', or 'lo'"
	textPodSecurityMode    = "POD_SECURITY_GROUP_ENFORCING_MODE must be set to either 'strict' or 'standard'"
	textWarmPrefixZero     = "Setting WARM_PREFIX_TARGET = 0 is not supported while WARM_IP_TARGET/MINIMUM_IP_TARGET is not set. Please configure either one of the WARM_{PREFIX/IP}_TARGET or MINIMUM_IP_TARGET env variables"
)

// TextNoGlobalIPv6 is also the entrypoint's, which adds why there is none.
const TextNoGlobalIPv6 = "To support IPv6 egress, node primary ENI must have a global IPv6 address"

func textPluginLogStdout(variable string) string { return variable + " cannot be set to stdout" }

func textCooldown(value string) string {
	return "IP_COOLDOWN_PERIOD MUST be a valid positive integer. " + value + " is invalid"
}

func textMTUInteger(variable, value string) string {
	return variable + " MUST be a valid integer. " + value + " is invalid"
}

func textMTURange(variable string, value int, ipv6 bool) string {
	least, family := "576", "IPv4"
	if ipv6 {
		least, family = "1280", "IPv6"
	}
	return variable + " cannot be less than " + least + " or greater than 9001 in " + family + ". " + strconv.Itoa(value) + " is invalid"
}
