package cluster

import (
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/lazy"
)

// DefaultENIConfig is the name used if the Node names none or is unknown.
const DefaultENIConfig = "default"

// externalENIConfigLabel takes precedence over the configured keys.
const externalENIConfigLabel = "vpc.amazonaws.com/externalEniConfig"

// maxSecurityGroups is the highest quota of security groups per network interface that EC2
// grants.
const maxSecurityGroups = 16

// AWS ids had 8 digits until 2016 and have 17 since.
var (
	subnetID        = lazy.Regexp(`^subnet-[0-9a-f]{8,17}$`)
	securityGroupID = lazy.Regexp(`^sg-[0-9a-f]{8,17}$`)
)

// maxENIConfigName is the longest name that Kubernetes accepts, in bytes. A longer one is
// cut to one byte above that, so that it stays invalid but can be shown to people.
const maxENIConfigName = 253

// ENIConfigName selects the ENIConfig of a node (amazon-vpc-cni-k8s: README.md,
// ENI_CONFIG_LABEL_DEF). A present but empty value wins, as in upstream; ParseENIConfig then
// reports it. The zero Node gets the default.
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

// ParseENIConfig checks the spec of an ENIConfig. Repeated groups count once, because EC2
// refuses duplicates.
func ParseENIConfig(name, subnet string, groups []string) (ENIConfig, error) {
	if name == "" {
		return ENIConfig{}, fmt.Errorf("read ENIConfig: its name is empty; give the node's ENIConfig label or annotation a value, or remove it")
	}
	if !subnetID().MatchString(subnet) {
		return ENIConfig{}, fmt.Errorf("read ENIConfig %s: spec.subnet is %s, want a subnet id such as subnet-0123456789abcdef0", name, brief(subnet))
	}
	out := ENIConfig{Name: name, Subnet: subnet}
	for _, g := range groups {
		if !securityGroupID().MatchString(g) {
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

// brief quotes a value for an error, cut to a bounded length.
func brief(s string) string {
	const most = 64
	if len(s) > most {
		return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
	}
	return fmt.Sprintf("%q", s)
}
