package rules

// Texts that other tools match.
const (
	textNoExemptCIDRs = "exemptCIDRs cannot be empty"
	textNotPrimary    = "setupENINetwork should never be called on the primary ENI"

	// Upstream's names of its iptables rules, used in its error messages.
	nameSNATJump    = "first SNAT rules for non-VPC outbound traffic"
	nameSNATLast    = "last SNAT rule for non-VPC outbound traffic"
	nameSetMark     = "connmark for primary ENI"
	nameRestore     = "connmark restore for primary ENI"
	nameRestoreVLAN = "connmark restore for primary ENI from vlan"
)
