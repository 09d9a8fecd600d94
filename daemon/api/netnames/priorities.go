package netnames

// Priorities of policy rules, lowest number first. The doctor and the setup pages of
// several distributions name these numbers.
const (
	RuleLocal         = 0     // from all lookup local (the kernel's)
	RulePodInterface  = 1     // in a pod with several interfaces: from <address> lookup <index>
	RuleBranch        = 10    // iif vlan.eth.<n> or iif vlan<hash> lookup 100+n
	RuleLocalStrict   = 20    // from all lookup local, moved here in strict pod-ENI mode
	RuleToPod         = 512   // to <pod address> lookup main
	RuleMark          = 1024  // fwmark 0x80/0x80 lookup main
	RuleExternal      = 1535  // to <external service CIDR> lookup main
	RuleFromPod       = 1536  // from <pod address> lookup <table of its ENI>
	RuleFromENI       = 32765 // from <primary address of an ENI> lookup <its table>
	RuleKernelMain    = 32766
	RuleKernelDefault = 32767
)

// DefaultConnmark is the bit that marks connections that entered by the primary ENI.
// AWS_VPC_K8S_CNI_CONNMARK overrides it.
const DefaultConnmark = 0x80

// Chains and tables of packet filters.
const (
	SNATChain     = "AWS-SNAT-CHAIN-0"
	ConnmarkChain = "AWS-CONNMARK-CHAIN-0"

	NFTTable           = "aws-cni" // family ip
	NFTPreroutingChain = "nat-prerouting"
	NFTMarkChain       = "snat-mark"

	EgressChainPrefixV4 = "CNI-E4-"
	EgressChainPrefixV6 = "CNI-E6-"
)
