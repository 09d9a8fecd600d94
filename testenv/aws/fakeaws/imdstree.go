package fakeaws

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tree is what IMDS shows of an instance at one moment.
type tree struct {
	region, account string
	instance        Instance
	view            view
	started, now    time.Time
}

const macs = "meta-data/network/interfaces/macs"

// read finds a path below /latest. known reports whether any instance could have it;
// an empty body means that this one does not. Paths of absent MACs are known:
// interfaces come and go.
func (t tree) read(path string) (body string, directory, known bool) {
	if rest, ok := strings.CutPrefix(path, macs+"/"); ok {
		return t.readMAC(rest)
	}
	if body, ok := t.leaf(path); ok {
		return body, path == macs || path == "meta-data/iam/security-credentials", true
	}
	return t.list(path)
}

func (t tree) leaf(path string) (string, bool) {
	i := t.instance
	switch path {
	case "dynamic/instance-identity/document":
		return t.identity(), true
	case "meta-data/placement/availability-zone":
		return i.AZ, true
	case "meta-data/placement/region":
		return t.region, true
	case "meta-data/local-ipv4":
		return i.PrimaryIP.String(), true
	case "meta-data/ipv6":
		return first(lines(t.primary().IPv6s)), true
	case "meta-data/instance-id":
		return i.ID, true
	case "meta-data/instance-type":
		return i.Type, true
	case "meta-data/mac":
		return i.PrimaryMAC, true
	case "meta-data/local-hostname", "meta-data/hostname":
		return hostname(i.PrimaryIP, t.region), true
	case "meta-data/security-groups":
		return t.groupNames(t.primary()), true
	case "meta-data/iam/security-credentials":
		return i.Role, true
	case "meta-data/iam/security-credentials/" + i.Role:
		return t.credentials(), true
	case macs:
		var all []string
		for _, e := range t.view.enis {
			all = append(all, e.MAC+"/")
		}
		slices.Sort(all)
		return strings.Join(all, "\n"), true
	case "meta-data/tags/instance", "meta-data/public-ipv4", "meta-data/public-hostname", "meta-data/spot/instance-action",
		"meta-data/autoscaling/target-lifecycle-state", "meta-data/events/recommendations/rebalance":
		return "", true // real paths that no instance in this world has
	}
	return "", false
}

// directories of the tree above those of the interfaces.
var directories = map[string][]string{
	"":                               {"dynamic", "meta-data"},
	"dynamic":                        {"instance-identity/"},
	"dynamic/instance-identity":      {"document"},
	"meta-data":                      {"hostname", "iam/", "instance-id", "instance-type", "ipv6", "local-hostname", "local-ipv4", "mac", "network/", "placement/", "security-groups"},
	"meta-data/iam":                  {"security-credentials/"},
	"meta-data/placement":            {"availability-zone", "region"},
	"meta-data/network":              {"interfaces/"},
	"meta-data/network/interfaces":   {"macs/"},
	"meta-data/instance-identity":    nil,
	"meta-data/services":             nil,
	"meta-data/block-device-mapping": nil,
}

func (t tree) list(path string) (string, bool, bool) {
	names, known := directories[path]
	var there []string
	for _, n := range names {
		if n == "ipv6" && len(t.primary().IPv6s) == 0 {
			continue
		}
		there = append(there, n)
	}
	return strings.Join(there, "\n"), true, known
}

func (t tree) primary() ENI {
	for _, e := range t.view.enis {
		if e.MAC == t.instance.PrimaryMAC {
			return e
		}
	}
	return ENI{}
}

// eniPaths are the names below an interface's MAC.
var eniPaths = []string{"device-number", "interface-id", "ipv4-prefix", "ipv6-prefix", "ipv6s", "local-hostname", "local-ipv4s", "mac",
	"network-card", "owner-id", "security-group-ids", "security-groups", "subnet-id", "subnet-ipv4-cidr-block", "subnet-ipv6-cidr-blocks",
	"vpc-id", "vpc-ipv4-cidr-block", "vpc-ipv4-cidr-blocks", "vpc-ipv6-cidr-blocks"}

func (t tree) readMAC(rest string) (body string, directory, known bool) {
	mac, name, _ := strings.Cut(rest, "/")
	if !isMAC(mac) || (name != "" && !slices.Contains(eniPaths, name)) {
		return "", false, false
	}
	at := slices.IndexFunc(t.view.enis, func(e ENI) bool { return e.MAC == mac })
	if at < 0 {
		return "", name == "", true
	}
	e := t.view.enis[at]
	if name != "" {
		return t.eniLeaf(e, name), false, true
	}
	var names []string
	for _, n := range eniPaths {
		if t.eniLeaf(e, n) != "" {
			names = append(names, n)
		}
	}
	return strings.Join(names, "\n"), true, true
}

func isMAC(s string) bool {
	if len(s) != 17 {
		return false
	}
	for i, c := range s {
		if i%3 == 2 && c != ':' || i%3 != 2 && !strings.ContainsRune("0123456789abcdef", c) {
			return false
		}
	}
	return true
}

func (t tree) eniLeaf(e ENI, name string) string {
	subnet, vpc := t.view.subnets[e.SubnetID], t.view.vpc
	switch name {
	case "device-number":
		return strconv.Itoa(e.Attachment.Device)
	case "interface-id":
		return e.ID
	case "ipv4-prefix":
		return lines(e.Prefixes)
	case "ipv6-prefix":
		return lines(e.IPv6Prefixes)
	case "ipv6s":
		return lines(e.IPv6s)
	case "local-hostname":
		return hostname(e.PrimaryIP, t.region)
	case "local-ipv4s":
		if !e.PrimaryIP.IsValid() {
			return ""
		}
		return lines(append([]netip.Addr{e.PrimaryIP}, e.SecondaryIPs...))
	case "mac":
		return e.MAC
	case "network-card":
		return strconv.Itoa(e.Attachment.Card)
	case "owner-id":
		return t.account
	case "security-group-ids":
		return strings.Join(e.SecurityGroups, "\n")
	case "security-groups":
		return t.groupNames(e)
	case "subnet-id":
		return e.SubnetID
	case "subnet-ipv4-cidr-block":
		return valid(subnet.CIDR)
	case "subnet-ipv6-cidr-blocks":
		return valid(subnet.IPv6CIDR)
	case "vpc-id":
		return e.VPCID
	case "vpc-ipv4-cidr-block":
		return first(lines(vpc.CIDRs))
	case "vpc-ipv4-cidr-blocks":
		return lines(vpc.CIDRs)
	case "vpc-ipv6-cidr-blocks":
		return lines(vpc.IPv6CIDRs)
	}
	return ""
}

func (t tree) groupNames(e ENI) string {
	var names []string
	for _, g := range e.SecurityGroups {
		names = append(names, t.view.groupName[g])
	}
	return strings.Join(names, "\n")
}

func (t tree) identity() string {
	return encode(struct {
		AccountID   string  `json:"accountId"`
		AZ          string  `json:"availabilityZone"`
		InstanceID  string  `json:"instanceId"`
		Type        string  `json:"instanceType"`
		PendingTime string  `json:"pendingTime"`
		PrivateIP   string  `json:"privateIp"`
		Region      string  `json:"region"`
		Version     string  `json:"version"`
		KernelID    *string `json:"kernelId"`
	}{t.account, t.instance.AZ, t.instance.ID, t.instance.Type, t.started.Format(time.RFC3339), t.instance.PrimaryIP.String(), t.region, "2017-09-30", nil})
}

// credentials returns the role's credentials. They grant access to nothing.
func (t tree) credentials() string {
	return encode(struct {
		Code            string
		LastUpdated     string
		Type            string
		AccessKeyID     string `json:"AccessKeyId"`
		SecretAccessKey string
		Token           string
		Expiration      string
	}{"Success", t.started.Format(time.RFC3339), "AWS-HMAC", accessKeyOf(t.instance.ID), "fake", "fake", t.now.UTC().Add(6 * time.Hour).Format(time.RFC3339)})
}

func encode(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "" // strings always encode
	}
	return string(b)
}

func hostname(a netip.Addr, region string) string {
	if !a.IsValid() {
		return ""
	}
	return "ip-" + strings.ReplaceAll(a.String(), ".", "-") + "." + region + ".compute.internal"
}

func lines[T interface{ String() string }](all []T) string {
	var s []string
	for _, v := range all {
		s = append(s, v.String())
	}
	return strings.Join(s, "\n")
}

func first(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func valid(p netip.Prefix) string {
	if !p.IsValid() {
		return ""
	}
	return p.String()
}
