package vpc_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"
	"github.com/google/go-cmp/cmp"

	"cnictl/plugin/vpc"
)

// podResult is the result of a pod as a test row.
type podResult struct {
	hash    string
	device  int
	vlan    int
	gateway string
	nics    []vpc.NIC
}

var podResults = map[string]podResult{
	"primary ENI":   {"0d7763386da", 0, 0, "", []vpc.NIC{{HostLink: "eni0d7763386da", PodLink: "eth0", Address: "10.0.0.12", Table: 254}}},
	"secondary ENI": {"0d7763386da", 1, 0, "", []vpc.NIC{{HostLink: "eni0d7763386da", PodLink: "eth0", Address: "10.0.0.21", Table: 2}}},
	"IPv6":          {"0d7763386da", 0, 0, "", []vpc.NIC{{HostLink: "eni0d7763386da", PodLink: "eth0", Address: "2001:db8::7", Table: 254}}},
	"branch strict": {"0d7763386da", -1, 3, "10.0.0.1", []vpc.NIC{{HostLink: "vlan0d7763386da", PodLink: "eth0", Address: "10.0.0.90"}}},
	"branch standard": {"0d7763386da", -1, 3, "10.0.0.1",
		[]vpc.NIC{{HostLink: "eni0d7763386da", PodLink: "eth0", Address: "10.0.0.90"}}},
	"branch IPv6": {"0d7763386da", -1, 120, "fe80:ec2::1", []vpc.NIC{{HostLink: "vlan0d7763386da", PodLink: "eth0", Address: "2001:db8::90"}}},
	"two": {"0d7763386da", 0, 0, "", []vpc.NIC{
		{HostLink: "eni0d7763386da", PodLink: "eth0", Address: "10.0.0.12", Table: 254},
		{HostLink: "eni123456789ab", PodLink: "mNicIf1", Address: "10.2.0.7", Table: 10102},
	}},
	"two IPv6": {"0d7763386da", 0, 0, "", []vpc.NIC{
		{HostLink: "eni0d7763386da", PodLink: "eth0", Address: "2001:db8::7", Table: 254},
		{HostLink: "eni123456789ab", PodLink: "mNicIf1", Address: "2001:db8:2::7", Table: 10102},
	}},
}

// byLibrary prints the pod with the CNI library, according to the specification of the result.
func (r podResult) byLibrary(t testing.TB, version, netns string) string {
	t.Helper()
	out := &types100.Result{CNIVersion: "1.1.0"}
	for i, n := range r.nics {
		at := 2*i + 1
		address := netip.MustParseAddr(n.Address)
		ip := &types100.IPConfig{Interface: &at, Address: net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(address.BitLen(), address.BitLen())}}
		if r.vlan != 0 {
			ip.Gateway = net.ParseIP(r.gateway)
		}
		out.IPs = append(out.IPs, ip)
		out.Interfaces = append(out.Interfaces, &types100.Interface{Name: n.HostLink}, &types100.Interface{Name: n.PodLink, Mac: fmt.Sprint(n.Table), Sandbox: netns})
	}
	dummy := &types100.Interface{Name: "dummy" + r.hash, Mac: "0", Sandbox: fmt.Sprint(r.device)}
	if r.vlan != 0 {
		dummy.Mac, dummy.Sandbox = fmt.Sprint(r.vlan), ""
	}
	out.Interfaces = append(out.Interfaces, dummy)
	converted, err := out.GetAsVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(converted, "", "    ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestResult_EveryKind(t *testing.T) {
	t.Parallel()
	for name, r := range podResults {
		for _, version := range []string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
			got := string(vpc.PodJSON(version, r.hash, "/run/netns/a", r.device, r.vlan, r.gateway, r.nics...))
			if diff := cmp.Diff(r.byLibrary(t, version, "/run/netns/a"), got); diff != "" {
				t.Errorf("%s %s (-library +ours):\n%s", name, version, diff)
			}
			if version >= "0.3.0" && strings.Contains(got, "gateway") != (r.vlan != 0) {
				t.Errorf("%s %s: gateway in\n%s", name, version, got)
			}
		}
	}
}

// TestResult_UpstreamDeletes: upstream's plugin can delete our pods from our results,
// without a daemon.
func TestResult_UpstreamDeletes(t *testing.T) {
	t.Parallel()
	for name, r := range podResults {
		for _, version := range []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
			printed := vpc.PodJSON(version, r.hash, "/run/netns/a", r.device, r.vlan, r.gateway, r.nics...)
			got, err := asUpstream(version, r.hash, printed)
			if err != nil {
				t.Errorf("%s %s: %v", name, version, err)
				continue
			}
			want := upstreamPod{vlan: r.vlan}
			if r.vlan == 0 {
				want.device = r.device
			}
			for _, n := range r.nics {
				want.addresses, want.tables = append(want.addresses, n.Address), append(want.tables, n.Table)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(upstreamPod{})); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", name, version, diff)
			}
		}
	}
}

// upstreamPod is what upstream's plugin learns about a pod from its result.
type upstreamPod struct {
	vlan, device int
	addresses    []string
	tables       []int
}

// asUpstream reads a result the way upstream's plugin does: it counts the interfaces and
// finds them by name.
func asUpstream(version, hash string, printed []byte) (o upstreamPod, err error) {
	read, err := create.Create(version, printed)
	if err != nil {
		return o, err
	}
	result, err := types100.GetResult(read)
	if err != nil {
		return o, err
	}
	at := func(name string) int {
		return slices.IndexFunc(result.Interfaces, func(i *types100.Interface) bool { return i.Name == name })
	}
	dummy := at("dummy" + hash)
	if dummy < 0 {
		return o, errors.New("no dummy")
	}
	if o.vlan, err = strconv.Atoi(result.Interfaces[dummy].Mac); err != nil {
		return o, err
	}
	if o.vlan == 0 {
		if o.device, err = strconv.Atoi(result.Interfaces[dummy].Sandbox); err != nil {
			return o, err
		}
	}
	for i := range (len(result.Interfaces) - 1) / 2 {
		name := "eth0"
		if i > 0 {
			name = fmt.Sprint("mNicIf", i)
		}
		n := at(name)
		if n < 0 {
			return o, errors.New("no " + name)
		}
		table, err := strconv.Atoi(result.Interfaces[n].Mac)
		if err != nil {
			return o, err
		}
		o.tables = append(o.tables, table)
		for _, ip := range result.IPs {
			if ip.Interface != nil && *ip.Interface == n {
				o.addresses = append(o.addresses, ip.Address.IP.String())
			}
		}
	}
	return o, nil
}
