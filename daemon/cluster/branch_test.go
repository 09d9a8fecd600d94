package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/cluster"
)

// written is what the controller writes (amazon-vpc-resource-controller-k8s).
const written = `[{"eniId":"eni-0123456789abcdef0","ifAddress":"06:25:70:70:b1:69","privateIp":"192.168.53.199","ipv6Addr":"","vlanId":1,"subnetCidr":"192.168.32.0/19","subnetV6Cidr":"","associationID":"trunk-assoc-0123456789abcdef0"}]`

// with returns the annotation with one member changed.
func with(t *testing.T, key string, value any) string {
	t.Helper()
	var elements []map[string]any
	if err := json.Unmarshal([]byte(written), &elements); err != nil {
		t.Fatal(err)
	}
	elements[0]["ipv6Addr"], elements[0]["subnetV6Cidr"] = "2600:1f14::5", "2600:1f14::/64"
	if value == nil {
		delete(elements[0], key)
	} else {
		elements[0][key] = value
	}
	out, err := json.Marshal(elements)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

var (
	branch4 = cluster.Branch{
		ENI: "eni-0123456789abcdef0", MAC: "06:25:70:70:b1:69", VLAN: 1,
		Address: netip.MustParseAddr("192.168.53.199"), Gateway: netip.MustParseAddr("192.168.32.1"),
	}
	branch6 = cluster.Branch{
		ENI: "eni-0123456789abcdef0", MAC: "06:25:70:70:b1:69", VLAN: 1,
		Address: netip.MustParseAddr("2600:1f14::5"), Gateway: netip.MustParseAddr("fe80:ec2::1"),
	}
)

func TestParseBranch(t *testing.T) {
	t.Parallel()
	changed := func(b cluster.Branch, f func(*cluster.Branch)) cluster.Branch { f(&b); return b }
	for name, tc := range map[string]struct {
		text string
		ipv6 bool
		want cluster.Branch
	}{
		"as written":         {written, false, branch4},
		"IPv6":               {with(t, "privateIp", ""), true, branch6},
		"the CNI's spelling": {strings.Replace(written, "vlanId", "vlanID", 1), false, branch4},
		"of 2021":            {`[{"eniId":"eni-01234567","ifAddress":"06:25:70:70:b1:69","privateIp":"192.168.53.199","vlanId":1,"subnetCidr":"192.168.32.0/19"}]`, false, changed(branch4, func(b *cluster.Branch) { b.ENI = "eni-01234567" })},
		"of later":           {with(t, "managed", map[string]int{"x": 1}), false, branch4},
		"several":            {strings.TrimSuffix(written, "]") + `,{"vlanId":2}]`, false, branch4},
		"several kinds":      {strings.TrimSuffix(written, "]") + `,"later",7]`, false, branch4},
		"no id":              {with(t, "eniId", nil), false, changed(branch4, func(b *cluster.Branch) { b.ENI = "" })},
		"an id of junk":      {with(t, "eniId", "eni-1; rm"), false, changed(branch4, func(b *cluster.Branch) { b.ENI = "" })},
		"upper-case MAC":     {with(t, "ifAddress", "06:25:70:70:B1:69"), false, branch4},
		"last VLAN":          {with(t, "vlanId", 120), false, changed(branch4, func(b *cluster.Branch) { b.VLAN = 120 })},
		"host bits":          {with(t, "subnetCidr", "192.168.53.199/19"), false, branch4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cluster.ParseBranch(tc.text, tc.ipv6)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestParseBranch_Faults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		ipv6 bool
		kind cluster.BranchFault
		says string
	}{
		"not there":        {"", false, cluster.BranchMissing, "controller"},
		"no JSON":          {"eni", false, cluster.BranchMalformed, ""},
		"no array":         {`{}`, false, cluster.BranchMalformed, ""},
		"none":             {`[]`, false, cluster.BranchMalformed, "no branch ENI"},
		"null":             {`null`, false, cluster.BranchMalformed, "no branch ENI"},
		"no object":        {`["eni"]`, false, cluster.BranchMalformed, ""},
		"VLAN as a text":   {with(t, "vlanId", "1"), false, cluster.BranchMalformed, "vlanId"},
		"broken VLAN":      {with(t, "vlanId", 1.5), false, cluster.BranchMalformed, "vlanId"},
		"long":             {with(t, "x", strings.Repeat("x", 64<<10)), false, cluster.BranchMalformed, "at most"},
		"null element":     {`[null]`, false, cluster.BranchInvalid, "ifAddress"},
		"no VLAN":          {with(t, "vlanId", nil), false, cluster.BranchInvalid, "vlanId is 0"},
		"VLAN 121":         {with(t, "vlanId", 121), false, cluster.BranchInvalid, "vlanId is 121, want 1 to 120"},
		"VLAN of main":     {with(t, "vlanId", 154), false, cluster.BranchInvalid, "154"},
		"VLAN 4095":        {with(t, "vlanId", 4095), false, cluster.BranchInvalid, "4095"},
		"negative VLAN":    {with(t, "vlanId", -1), false, cluster.BranchInvalid, "-1"},
		"no MAC":           {with(t, "ifAddress", nil), false, cluster.BranchInvalid, "ifAddress"},
		"multicast MAC":    {with(t, "ifAddress", "07:25:70:70:b1:69"), false, cluster.BranchInvalid, "unicast"},
		"no MAC at all":    {with(t, "ifAddress", "00:00:00:00:00:00"), false, cluster.BranchInvalid, "unicast"},
		"MAC of dashes":    {with(t, "ifAddress", "06-25-70-70-b1-69"), false, cluster.BranchInvalid, "ifAddress"},
		"MAC of letters":   {with(t, "ifAddress", "0g:25:70:70:b1:69"), false, cluster.BranchInvalid, "ifAddress"},
		"no address":       {with(t, "privateIp", nil), false, cluster.BranchInvalid, "privateIp"},
		"other family":     {with(t, "privateIp", "2600:1f14::5"), false, cluster.BranchInvalid, "privateIp"},
		"loopback":         {with(t, "privateIp", "127.0.0.1"), false, cluster.BranchInvalid, "privateIp"},
		"no IPv6":          {written, true, cluster.BranchInvalid, "ipv6Addr"},
		"IPv6 with a zone": {with(t, "ipv6Addr", "2600:1f14::5%eth0"), true, cluster.BranchInvalid, "ipv6Addr"},
		"mapped IPv4":      {with(t, "ipv6Addr", "::ffff:192.168.53.199"), true, cluster.BranchInvalid, "ipv6Addr"},
		"no subnet":        {with(t, "subnetCidr", nil), false, cluster.BranchSubnet4, "subnetCidr"},
		"no range":         {with(t, "subnetCidr", "192.168.32.0"), false, cluster.BranchSubnet4, "subnetCidr"},
		"range of IPv6":    {with(t, "subnetCidr", "2600:1f14::/64"), false, cluster.BranchSubnet4, "subnetCidr"},
		"outside":          {with(t, "privateIp", "192.168.64.1"), false, cluster.BranchSubnet4, "delete the pod"},
		"the gateway":      {with(t, "privateIp", "192.168.32.1"), false, cluster.BranchSubnet4, "not an address for pods"},
		"the network":      {with(t, "privateIp", "192.168.32.0"), false, cluster.BranchSubnet4, "not an address for pods"},
		"one address":      {with(t, "subnetCidr", "192.168.53.199/32"), false, cluster.BranchSubnet4, "not an address for pods"},
		"no IPv6 subnet":   {with(t, "subnetV6Cidr", ""), true, cluster.BranchSubnet6, "subnetV6Cidr"},
		"outside of IPv6":  {with(t, "ipv6Addr", "2600:1f15::5"), true, cluster.BranchSubnet6, "outside"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cluster.ParseBranch(tc.text, tc.ipv6)
			var fault *cluster.BranchError
			if !errors.As(err, &fault) || fault.Kind != tc.kind || !strings.Contains(err.Error(), tc.says) || len(err.Error()) > 400 {
				t.Errorf("error %v, want %v with %q", err, tc.kind, tc.says)
			}
			if got != (cluster.Branch{}) {
				t.Errorf("and yet %+v", got)
			}
		})
	}
}

// FuzzParseBranch: accepted annotations are consistent, and of the node's family.
func FuzzParseBranch(f *testing.F) {
	f.Add(written, false)
	f.Add(written, true)
	f.Add(`[{"ifAddress":"06:25:70:70:B1:69","ipv6Addr":"2600:1f14::5","VLANID":120,"subnetV6Cidr":"2600:1f14::/64"}]`, true)
	f.Add(strings.Replace(written, `"vlanId":1`, `"vlanId":121`, 1), false)
	f.Add(strings.Replace(written, `"vlanId":1`, `"vlanId":154`, 1), false)
	f.Add(`[{"vlanId":1,"vlanID":2}]`, false)
	f.Add(`[]`, false)
	f.Fuzz(func(t *testing.T, text string, ipv6 bool) {
		b, err := cluster.ParseBranch(text, ipv6)
		if err != nil {
			var fault *cluster.BranchError
			if !errors.As(err, &fault) || fault.Kind.String() == "" || b != (cluster.Branch{}) {
				t.Errorf("%+v, %v", b, err)
			}
			return
		}
		if b.Address.Is6() != ipv6 || !b.Address.IsGlobalUnicast() || b.Address == b.Gateway || b.VLAN < 1 || b.VLAN > 120 {
			t.Errorf("%+v of %q", b, text)
		}
		var a, c, d, e, g, h byte
		if n, err := fmt.Sscanf(b.MAC, "%02x:%02x:%02x:%02x:%02x:%02x", &a, &c, &d, &e, &g, &h); n != 6 || err != nil || a&1 != 0 || b.MAC != strings.ToLower(b.MAC) {
			t.Errorf("MAC %q", b.MAC)
		}
	})
}
