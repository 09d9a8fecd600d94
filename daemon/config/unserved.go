package config

// unserved lists the modes that this version refuses, in one place: serving one
// means removing its line here and changing its row's Support. A mode that is
// refused stops the start; running without it would do something else than asked.
var unserved = []struct {
	variable string
	on       func(Config) bool
	mode     string
}{
	{"ENABLE_IPv6", func(c Config) bool { return c.IPv6 }, "IPv6 clusters"},
	{"ENABLE_V6_EGRESS", func(c Config) bool { return c.V6Egress }, "IPv6 egress from IPv4 clusters"},
	{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", func(c Config) bool { return c.CustomNetworking }, "custom networking"},
	{"ENABLE_POD_ENI", func(c Config) bool { return c.PodENI }, "security groups for pods"},
	{"ENABLE_MULTI_NIC", func(c Config) bool { return c.MultiNIC }, "several interfaces per pod"},
	{"ANNOTATE_POD_IP", func(c Config) bool { return c.AnnotatePodIP }, "pod address annotations"},
	{"DISABLE_NETWORK_RESOURCE_PROVISIONING", func(c Config) bool { return c.ProvisioningOff }, "running without changing EC2"},
	{"NETWORK_POLICY_ENFORCING_MODE", func(c Config) bool { return c.NetworkPolicyMode != "" }, "calls of the network policy agent"},
	{"ENABLE_IMDS_ONLY_MODE", func(c Config) bool { return c.IMDSOnly }, "running on instance metadata alone"},
}

func checkServed(c Config) []Problem {
	var out []Problem
	for _, u := range unserved {
		if !u.on(c) {
			continue
		}
		p := Problem{
			Variable: u.variable, Value: c.declared(u.variable), Accepted: "unset",
			Fault: "is refused: this version does not serve " + u.mode, Effect: "unset it", Fatal: true,
		}
		if r, _ := lookup(u.variable); r.Kind() == Bool {
			p.Accepted, p.Effect = "unset or false", "unset it or set it to false"
		}
		out = append(out, p)
	}
	return out
}
