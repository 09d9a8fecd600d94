package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// DefaultENIConfig is the name used when the Node names none, or is not known.
const DefaultENIConfig = "default"

// externalENIConfigLabel goes before whatever keys are configured.
const externalENIConfigLabel = "vpc.amazonaws.com/externalEniConfig"

// maxSecurityGroups is EC2's limit of groups per network interface at its highest
// quota.
const maxSecurityGroups = 16

// AWS gave ids of 8 digits until 2016 and gives 17 since.
var (
	subnetID        = regexp.MustCompile(`^subnet-[0-9a-f]{8,17}$`)
	securityGroupID = regexp.MustCompile(`^sg-[0-9a-f]{8,17}$`)
)

// maxENIConfigName is what Kubernetes takes for a name, in bytes. A longer one is
// cut a little above that: it stays invalid, and is shown to people.
const maxENIConfigName = 253

// ENIConfigName chooses the ENIConfig of a node (spec/ipamd.md §9.3). A present but
// empty value wins, as in upstream: ParseENIConfig then says what is wrong. The
// zero Node has the default one.
func ENIConfigName(n Node, annotationKey, labelKey string) string {
	if name, ok := n.Labels[externalENIConfigLabel]; ok {
		return name
	}
	if name, ok := n.Annotations[annotationKey]; ok {
		return strings.Clone(name[:min(len(name), maxENIConfigName+1)])
	}
	if name, ok := n.Labels[labelKey]; ok {
		return name
	}
	return DefaultENIConfig
}

// ParseENIConfig checks the spec of an ENIConfig. Groups that are named twice count
// once: EC2 refuses the second.
func ParseENIConfig(name, subnet string, groups []string) (ENIConfig, error) {
	if name == "" {
		return ENIConfig{}, fmt.Errorf("read ENIConfig: its name is empty; give the node's ENIConfig label or annotation a value, or remove it")
	}
	if !subnetID.MatchString(subnet) {
		return ENIConfig{}, fmt.Errorf("read ENIConfig %s: spec.subnet is %s, want a subnet id such as subnet-0123456789abcdef0", name, brief(subnet))
	}
	out := ENIConfig{Name: name, Subnet: subnet}
	for _, g := range groups {
		if !securityGroupID.MatchString(g) {
			return ENIConfig{}, fmt.Errorf("read ENIConfig %s: spec.securityGroups has %s, want ids such as sg-0123456789abcdef0", name, brief(g))
		}
		if slices.Contains(out.SecurityGroups, g) {
			continue
		}
		if len(out.SecurityGroups) == maxSecurityGroups {
			return ENIConfig{}, fmt.Errorf("read ENIConfig %s: spec.securityGroups has more than %d groups, which no network interface can have; remove some", name, maxSecurityGroups)
		}
		out.SecurityGroups = append(out.SecurityGroups, g)
	}
	return out, nil
}

// brief quotes a value for an error, however long it is.
func brief(s string) string {
	const most = 64
	if len(s) > most {
		return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
	}
	return fmt.Sprintf("%q", s)
}
