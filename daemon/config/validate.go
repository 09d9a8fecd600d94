package config

import (
	"fmt"
	"slices"
)

// Validate checks combinations of settings, and settings against the instance type. Without
// facts (the zero value) it skips the checks of the instance type.
func Validate(c Config, f Facts) []Problem {
	var out []Problem
	out = append(out, checkFamilies(c, f)...)
	out = append(out, checkPrefixDelegation(c, f)...)
	out = append(out, checkMTU(c)...)
	out = append(out, checkPodSecurityMode(c)...)
	if c.PodENI && c.IMDSOnly {
		out = append(out, Problem{Variable: "ENABLE_POD_ENI", Value: c.declared("ENABLE_POD_ENI"), Accepted: "false while ENABLE_IMDS_ONLY_MODE is true",
			Fault: "needs EC2, because only EC2 shows which ENI is the trunk", Effect: "pods that request a branch ENI get none"})
	}
	if f.MaxENIs > 0 && c.MaxENI > f.MaxENIs {
		p := c.at("MAX_ENI")
		p.Accepted = fmt.Sprintf("1–%d on %s", f.MaxENIs, f.InstanceType)
		p.Fault = "exceeds what a network card of " + f.InstanceType + " supports"
		p.Effect = fmt.Sprintf("the limit of the instance type, %d, applies", f.MaxENIs)
		out = append(out, p)
	}
	if c.V6Egress && !c.IPv6 && f.NoIPv6 {
		out = append(out, Problem{Variable: "ENABLE_V6_EGRESS", Value: c.declared("ENABLE_V6_EGRESS"),
			Accepted: "false on a node whose primary ENI has no global IPv6 address",
			Effect:   "pods run without IPv6 egress; give the subnet an IPv6 CIDR block and the primary ENI an IPv6 address, then restart aws-node",
			Text:     TextNoGlobalIPv6})
	}
	return out
}

// ValidateEntrypoint checks what the entrypoint aws-vpc-cni refuses before it starts ipamd,
// as upstream's does, in the same order, besides the values that Load finds fatal. It is
// stricter than ipamd itself about the cooldown and about prefix delegation without a target.
func ValidateEntrypoint(c Config) []Problem {
	out := checkPodSecurityMode(c)
	if o := c.origins["IP_COOLDOWN_PERIOD"]; o.set && !o.taken {
		r, _ := lookup("IP_COOLDOWN_PERIOD")
		out = append(out, Problem{Variable: r.Name, Value: o.declared, Accepted: r.Accepts(), Effect: effectNoStart, Fatal: true, Text: textCooldown(o.declared)})
	}
	out = append(out, checkMTU(c)...)
	if c.PrefixDelegation && !slices.ContainsFunc([]string{"WARM_IP_TARGET", "WARM_PREFIX_TARGET", "MINIMUM_IP_TARGET"}, c.notZeroText) {
		out = append(out, Problem{Variable: "WARM_PREFIX_TARGET", Value: c.declared("WARM_PREFIX_TARGET"),
			Accepted: "an integer ≥ 1, or WARM_IP_TARGET or MINIMUM_IP_TARGET ≥ 1", Effect: effectNoStart, Fatal: true, Text: textWarmPrefixZero})
	}
	return out
}

// notZeroText is upstream's test of a target: it compares the text with "0" and treats an
// unset variable as "0". So "-1" passes, and existing manifests depend on that to start.
func (c Config) notZeroText(variable string) bool {
	o := c.origins[variable]
	return o.set && o.declared != "0"
}

// checkPodSecurityMode refuses an unknown mode. The mode matters only with pod ENIs.
func checkPodSecurityMode(c Config) []Problem {
	o := c.origins["POD_SECURITY_GROUP_ENFORCING_MODE"]
	if !c.PodENI || !o.set || o.declared == c.PodSecurityMode {
		return nil
	}
	return []Problem{{Variable: "POD_SECURITY_GROUP_ENFORCING_MODE", Value: o.declared, Accepted: "strict, standard",
		Effect: effectNoStart, Fatal: true, Text: textPodSecurityMode}}
}

func checkFamilies(c Config, f Facts) []Problem {
	fatal := func(variable, accepted, fault string) []Problem {
		return []Problem{{Variable: variable, Accepted: accepted, Fault: fault, Effect: effectNoStart, Fatal: true, Text: textInvalidConfig}}
	}
	switch {
	case c.IPv4 && c.IPv6:
		return fatal("ENABLE_IPv4, ENABLE_IPv6", "exactly one of them true", "are both true, but exactly one must be")
	case !c.IPv4 && !c.IPv6:
		return fatal("ENABLE_IPv4, ENABLE_IPv6", "exactly one of them true", "are both false, but exactly one must be true")
	case !c.IPv6:
		return nil
	}
	var out []Problem
	if c.CustomNetworking {
		out = append(out, fatal("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "false while ENABLE_IPv6 is true", "")...)
	}
	if !c.PrefixDelegation {
		out = append(out, fatal("ENABLE_PREFIX_DELEGATION", "true while ENABLE_IPv6 is true", "")...)
	}
	if f.InstanceType != "" && !f.PrefixDelegation {
		out = append(out, fatal("ENABLE_IPv6", "false on "+f.InstanceType+", which is neither Nitro nor bare metal", "")...)
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
		p := c.at("WARM_PREFIX_TARGET")
		p.Accepted, p.Text = "an integer ≥ 1, or WARM_IP_TARGET or MINIMUM_IP_TARGET ≥ 1", textWarmPrefixZero
		if p.Effect = "no free prefix is kept, so pods wait for EC2"; p.Label == "" {
			p.Effect += "; the entrypoint aws-vpc-cni rejects it"
		}
		return []Problem{p}
	}
	return nil
}

// checkMTU: EC2 links carry at most 9001; the minimum is that of IPv4 or IPv6.
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
				Effect: effectNoStart, Fatal: true, Text: textMTURange(m.variable, m.mtu, c.IPv6)})
		}
	}
	return out
}
