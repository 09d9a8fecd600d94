package config

import "fmt"

// Validate checks combinations of settings, and settings against the instance type.
// Without facts (the zero value) the checks of the instance type are left out.
func Validate(c Config, f Facts) []Problem {
	var out []Problem
	out = append(out, checkFamilies(c, f)...)
	out = append(out, checkServed(c)...)
	out = append(out, checkPrefixDelegation(c, f)...)
	out = append(out, checkMTU(c)...)
	if c.PodENI {
		if v := c.declared("POD_SECURITY_GROUP_ENFORCING_MODE"); c.origins["POD_SECURITY_GROUP_ENFORCING_MODE"].set && v != c.PodSecurityMode {
			out = append(out, Problem{Variable: "POD_SECURITY_GROUP_ENFORCING_MODE", Value: v, Accepted: "strict, standard",
				Effect: effectNoStart, Fatal: true, Text: textPodSecurityMode})
		}
	}
	if f.MaxENIs > 0 && c.MaxENI > f.MaxENIs {
		out = append(out, Problem{Variable: "MAX_ENI", Value: c.declared("MAX_ENI"), Accepted: fmt.Sprintf("1–%d on %s", f.MaxENIs, f.InstanceType),
			Effect: fmt.Sprintf("the limit of the instance type, %d, applies", f.MaxENIs)})
	}
	return out
}

func checkFamilies(c Config, f Facts) []Problem {
	fatal := func(variable, accepted string) []Problem {
		return []Problem{{Variable: variable, Accepted: accepted, Effect: effectNoStart, Fatal: true, Text: textInvalidConfig}}
	}
	switch {
	case c.IPv4 && c.IPv6:
		return fatal("ENABLE_IPv4, ENABLE_IPv6", "exactly one of them true; both are")
	case !c.IPv4 && !c.IPv6:
		return fatal("ENABLE_IPv4, ENABLE_IPv6", "exactly one of them true; none is")
	case !c.IPv6:
		return nil
	}
	var out []Problem
	if c.CustomNetworking {
		out = append(out, fatal("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "false while ENABLE_IPv6 is true")...)
	}
	if !c.PrefixDelegation {
		out = append(out, fatal("ENABLE_PREFIX_DELEGATION", "true while ENABLE_IPv6 is true")...)
	}
	if f.InstanceType != "" && !f.PrefixDelegation {
		out = append(out, fatal("ENABLE_IPv6", "false on "+f.InstanceType+", which is neither Nitro nor bare metal")...)
	}
	return out
}

func checkPrefixDelegation(c Config, f Facts) []Problem {
	if !c.PrefixDelegation || c.IPv6 {
		return nil
	}
	if f.InstanceType != "" && !f.PrefixDelegation {
		return []Problem{{Variable: "ENABLE_PREFIX_DELEGATION", Value: c.declared("ENABLE_PREFIX_DELEGATION"),
			Accepted: "false on " + f.InstanceType + ", which is neither Nitro nor bare metal", Effect: "secondary IPs are used"}}
	}
	if c.WarmPrefix == 0 && c.WarmIP == 0 && c.MinIP == 0 {
		return []Problem{{Variable: "WARM_PREFIX_TARGET", Value: c.declared("WARM_PREFIX_TARGET"),
			Accepted: "an integer ≥ 1, or WARM_IP_TARGET or MINIMUM_IP_TARGET ≥ 1",
			Effect:   "no prefix is kept in advance, so pods wait for EC2; the entrypoint aws-vpc-cni refuses it", Text: textWarmPrefixZero}}
	}
	return nil
}

// checkMTU: EC2 links carry at most 9001; the least are those of IPv4 and IPv6.
func checkMTU(c Config) []Problem {
	least := 576
	if c.IPv6 {
		least = 1280
	}
	var out []Problem
	for _, m := range []struct {
		variable string
		mtu      int
	}{{"AWS_VPC_ENI_MTU", c.ENIMTU}, {"POD_MTU", c.PodMTU}} {
		if c.origins[m.variable].taken && (m.mtu < least || m.mtu > 9001) {
			out = append(out, Problem{Variable: m.variable, Value: c.declared(m.variable), Accepted: fmt.Sprintf("%d–9001", least),
				Effect: effectNoStart, Fatal: true, Text: textMTURange(m.variable, c.IPv6)})
		}
	}
	return out
}
