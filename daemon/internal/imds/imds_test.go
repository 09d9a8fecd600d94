package imds_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/internal/imds"
	"cnictl/daemon/ipam"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

var compareNetip = cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })}

// node is a simulated world with one instance that has two network cards.
type node struct {
	world    *fakeaws.World
	instance *fakeaws.Instance
	subnet   fakeaws.Subnet
	url      string
}

func newNode(t *testing.T, o fakeaws.Options) *node {
	t.Helper()
	w := fakeaws.NewWorld(o)
	v := w.AddVPC(netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("2001:db8::/56"))
	if err := w.AddVPCCIDR(v.ID, netip.MustParsePrefix("100.64.0.0/16")); err != nil {
		t.Fatal(err)
	}
	subnet, err := w.AddSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix("10.0.0.0/22"), IPv6CIDR: netip.MustParsePrefix("2001:db8:0:1::/64")})
	if err != nil {
		t.Fatal(err)
	}
	i, err := w.AddInstance(fakeaws.InstanceSpec{Type: "i7ie.48xlarge", SubnetID: subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	server, err := fakeaws.NewServer(w, i.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		w.Close()
		for _, v := range w.Violations() {
			t.Errorf("violation: %s", v)
		}
	})
	return &node{w, i, subnet, server.IMDSURL}
}

func (n *node) attach(t *testing.T, card, device int, s fakeaws.ENISpec) fakeaws.ENI {
	t.Helper()
	s.SubnetID = n.subnet.ID
	e, err := n.world.CreateENI(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.world.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: n.instance.ID, Card: card, Device: device}); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	n := newNode(t, fakeaws.Options{Region: "eu-central-1"})
	got, err := imds.New(imds.Config{Endpoint: n.url}).Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := imds.Identity{Account: "111122223333", Region: "eu-central-1", AZ: "eu-central-1a", InstanceID: n.instance.ID, InstanceType: "i7ie.48xlarge", VPCID: n.instance.VPCID,
		SubnetID: n.subnet.ID, PrimaryIPv4: netip.MustParseAddr("10.0.0.4"), PrimaryMAC: "02:fa:4e:00:00:01", PrimaryENI: ipam.ENIID(n.instance.PrimaryENI)}
	if diff := cmp.Diff(want, got, compareNetip); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	if calls := n.world.IMDSCalls(); len(calls) != 6 {
		t.Errorf("%d requests, want a token and 5 reads: %+v", len(calls), calls)
	}
}

func TestInterfaces(t *testing.T) {
	t.Parallel()
	n := newNode(t, fakeaws.Options{})
	n.attach(t, 1, 1, fakeaws.ENISpec{Type: "efa-only"})
	n.attach(t, 0, 3, fakeaws.ENISpec{IPs: 2})
	n.attach(t, 0, 2, fakeaws.ENISpec{Prefixes: 2, IPv6s: 1, IPv6Prefixes: 0})
	if _, err := n.world.Assign(n.instance.PrimaryENI, fakeaws.AssignSpec{IPv6Prefixes: 1}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	missing := map[string]bool{}
	got, err := imds.New(imds.Config{Endpoint: n.url, IPv6: true, Observe: func(c imds.Call) {
		mu.Lock()
		defer mu.Unlock()
		if c.NotFound {
			missing[c.Path[strings.LastIndex(c.Path, "/")+1:]] = true
		}
	}}).Interfaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	base := imds.Interface{SubnetID: n.subnet.ID, SubnetCIDR: prefix("10.0.0.0/22"), SubnetIPv6CIDR: prefix("2001:db8:0:1::/64"), SecurityGroups: []string{"sg-0fa4e000000000001"}}
	want := []imds.Interface{base, base, base, base}
	want[0].MAC, want[0].ENI, want[0].IPv4s, want[0].IPv6Prefixes = "02:fa:4e:00:00:01", "eni-0fa4e000000000001", []netip.Addr{addr("10.0.0.4")}, []netip.Prefix{prefix("2001:db8:0:1:2::/80")}
	want[1].MAC, want[1].ENI, want[1].Device, want[1].IPv4s, want[1].IPv6s = "02:fa:4e:00:00:04", "eni-0fa4e000000000004", 2, []netip.Addr{addr("10.0.0.8")}, []netip.Addr{addr("2001:db8:0:1::4")}
	want[1].Prefixes = []netip.Prefix{prefix("10.0.0.16/28"), prefix("10.0.0.32/28")}
	want[2].MAC, want[2].ENI, want[2].Device, want[2].IPv4s = "02:fa:4e:00:00:03", "eni-0fa4e000000000003", 3, []netip.Addr{addr("10.0.0.5"), addr("10.0.0.6"), addr("10.0.0.7")}
	want[3].MAC, want[3].ENI, want[3].Device, want[3].Card = "02:fa:4e:00:00:02", "eni-0fa4e000000000002", 1, 1
	want[0].IPv6Prefixes = []netip.Prefix{prefix("2001:db8:0:1:1::/80")}
	if diff := cmp.Diff(want, got, compareNetip); diff != "" {
		t.Errorf("interfaces (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"ipv4-prefix": true, "ipv6-prefix": true}, missing); diff != "" {
		t.Errorf("paths that were asked for and not there (-want +got):\n%s", diff)
	}
}

func TestVPCCIDRs(t *testing.T) {
	t.Parallel()
	n := newNode(t, fakeaws.Options{})
	c := imds.New(imds.Config{Endpoint: n.url})
	got, err := c.VPCCIDRs(t.Context(), n.instance.PrimaryMAC)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("100.64.0.0/16")}, got, compareNetip); diff != "" {
		t.Errorf("VPC CIDRs (-want +got):\n%s", diff)
	}
	if _, err := c.VPCCIDRs(t.Context(), "02:fa:4e:00:00:99"); !errors.Is(err, imds.ErrNotThere) || !strings.Contains(err.Error(), "02:fa:4e:00:00:99/vpc-ipv4-cidr-blocks") {
		t.Errorf("of an interface that is not there: %v", err)
	}
	if _, err := c.VPCCIDRs(t.Context(), "../mac"); err == nil {
		t.Error("a MAC that is none is accepted")
	}
}

// A failed read, of any path, is an error that names the path, and never an empty answer.
func TestInterfaces_FailureIsNoAbsence(t *testing.T) {
	t.Parallel()
	const base = "meta-data/network/interfaces/macs"
	paths := []string{base, base + "/02:fa:4e:00:00:02"}
	for _, leaf := range []string{"interface-id", "device-number", "network-card", "subnet-id", "subnet-ipv4-cidr-block", "local-ipv4s", "ipv4-prefix", "ipv6s", "ipv6-prefix", "subnet-ipv6-cidr-blocks", "security-group-ids"} {
		paths = append(paths, base+"/02:fa:4e:00:00:02/"+leaf)
	}
	for _, path := range paths {
		t.Run(path[strings.LastIndex(path, "/")+1:], func(t *testing.T) {
			t.Parallel()
			n := newNode(t, fakeaws.Options{})
			n.attach(t, 0, 1, fakeaws.ENISpec{IPs: 1, IPv6s: 1})
			n.world.SetIMDSFaults(func(p string, nth int) int {
				if p == path {
					return http.StatusForbidden // the SDK does not retry it
				}
				return 0
			})
			got, err := imds.New(imds.Config{Endpoint: n.url, IPv6: true}).Interfaces(t.Context())
			if err == nil || got != nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%v (%v), want an error about %s", got, err, path)
			}
		})
	}
}

// A temporary failure is retried, and a stale token replaced.
func TestIdentity_Retries(t *testing.T) {
	t.Parallel()
	n := newNode(t, fakeaws.Options{})
	n.world.SetIMDSFaults(func(p string, nth int) int {
		if p == "meta-data/mac" && nth == 1 {
			return http.StatusInternalServerError
		}
		return 0
	})
	c := imds.New(imds.Config{Endpoint: n.url})
	for range 2 {
		if _, err := c.Identity(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.world.RevokeTokens()
	}
}

// metadata is a service with fixed answers.
func metadata(t *testing.T, answers map[string]string) *imds.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			rw.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "60")
			_, _ = io.WriteString(rw, "token")
			return
		}
		body, ok := answers[strings.TrimPrefix(r.URL.Path, "/latest/")]
		if !ok {
			http.NotFound(rw, r)
			return
		}
		_, _ = io.WriteString(rw, body)
	}))
	t.Cleanup(s.Close)
	return imds.New(imds.Config{Endpoint: s.URL, IPv6: true})
}

const (
	document = "dynamic/instance-identity/document"
	macs     = "meta-data/network/interfaces/macs/"
	one      = macs + "02:00:00:00:00:01/"
)

func goodAnswers() map[string]string {
	return map[string]string{
		document:        `{"region":"us-west-2","availabilityZone":"us-west-2a","instanceId":"i-0a","instanceType":"m5.large","privateIp":"10.0.0.4"}`,
		"meta-data/mac": "02:00:00:00:00:01\n", macs: "02:00:00:00:00:01/\n", one: "device-number\nlocal-ipv4s\nipv6s\nnetwork-card\nsecret/\n",
		one + "interface-id": "eni-0a", one + "device-number": "0", one + "network-card": "0", one + "subnet-id": "subnet-0a", one + "vpc-id": "vpc-0a",
		one + "security-group-ids": "sg-0a\nsg-0b", one + "local-ipv4s": "10.0.0.4\n10.0.0.5", one + "subnet-ipv4-cidr-block": "10.0.0.0/24", one + "vpc-ipv4-cidr-blocks": "10.0.0.0/16",
		one + "ipv4-prefix": "10.0.0.16/28", "meta-data/ipv6": "2001:db8:0:1::4", one + "ipv6s": "2001:db8:0:1::4\n", one + "ipv6-prefix": "2001:db8:0:1:5::/80",
		one + "subnet-ipv6-cidr-blocks": "2001:db8:0:1::/64", one + "vpc-ipv6-cidr-blocks": "2001:db8::/56",
	}
}

// Invalid answers are errors that name the path.
func TestAnswers(t *testing.T) {
	t.Parallel()
	read := func(c *imds.Client) error {
		_, err := c.Identity(t.Context())
		if err == nil {
			_, err = c.Interfaces(t.Context())
		}
		if err == nil {
			_, err = c.VPCCIDRs(t.Context(), "02:00:00:00:00:01")
		}
		if err == nil {
			_, err = c.VPCIPv6CIDRs(t.Context(), "02:00:00:00:00:01")
		}
		return err
	}
	if err := read(metadata(t, goodAnswers())); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ path, body string }{
		{document, "{"}, {document, `{"region":"us west"}`}, {document, `{"region":"r","availabilityZone":"a","instanceType":"t","instanceId":"i-0a","privateIp":"::1"}`},
		{"meta-data/mac", "02:00"}, {macs, "02:00:00:00:00/"}, {macs, "02:00:00:00:00:01/\n02:00:00:00:00:01/"}, {macs, ""}, {macs, "<html>not found</html>"}, {one, ""},
		{one + "interface-id", "eni-"}, {one + "device-number", "-1"}, {one + "device-number", "one"}, {one + "network-card", "5000"}, {one + "subnet-id", "10.0.0.0"},
		{one + "security-group-ids", "sg-0a web"}, {one + "local-ipv4s", "10.0.0.4\n10.0.0.4"}, {one + "local-ipv4s", "10.1.0.4"}, {one + "local-ipv4s", "::1"},
		{one + "subnet-ipv4-cidr-block", "10.0.0.1/24"}, {one + "subnet-ipv4-cidr-block", "10.0.0.0/24\n10.0.1.0/24"}, {one + "ipv4-prefix", "10.0.0.16/27"}, {one + "ipv4-prefix", "10.1.0.16/28"},
		{one + "vpc-id", "x"}, {one + "vpc-ipv4-cidr-blocks", "2001:db8::/56"}, {one + "vpc-ipv4-cidr-blocks", ""}, {one + "local-ipv4s", strings.Repeat("10.0.0.4\n", 8000)},
		{"meta-data/ipv6", "10.0.0.4"}, {"meta-data/ipv6", "fe80::1"}, {"meta-data/ipv6", ""}, {one + "ipv6s", "2001:db8:0:2::4"}, {one + "ipv6s", "::1"}, {one + "ipv6s", "2001:db8:0:1::4%eth0"},
		{one + "ipv6-prefix", "2001:db8:0:2:5::/80"}, {one + "ipv6-prefix", "2001:db8:0:1::/64"}, {one + "subnet-ipv6-cidr-blocks", "2001:db8:0:1::1/64"}, {one + "subnet-ipv6-cidr-blocks", "2001:db8:0:1::/64\n2001:db8:0:3::/64"},
		{one + "vpc-ipv6-cidr-blocks", "10.0.0.0/16"}, {one + "local-ipv4s", "127.0.0.1"}, {one + "security-group-ids", strings.Repeat("sg-0a\n", 65)},
	}
	for _, tt := range tests {
		answers := goodAnswers()
		answers[tt.path] = tt.body
		if err := read(metadata(t, answers)); err == nil || !strings.Contains(err.Error(), tt.path) {
			t.Errorf("%s = %.40q: %.200v, want an error about the path", tt.path, tt.body, err)
		}
	}
	for _, path := range []string{document, "meta-data/mac", macs, one, one + "interface-id", one + "device-number", one + "subnet-id", one + "vpc-id", one + "security-group-ids", one + "vpc-ipv4-cidr-blocks"} {
		answers := goodAnswers()
		delete(answers, path)
		if err := read(metadata(t, answers)); !errors.Is(err, imds.ErrNotThere) || !strings.Contains(err.Error(), path) {
			t.Errorf("without %s: %v", path, err)
		}
	}
	for _, path := range []string{one + "network-card", one + "local-ipv4s", one + "subnet-ipv4-cidr-block", one + "ipv4-prefix",
		"meta-data/ipv6", one + "ipv6s", one + "ipv6-prefix", one + "subnet-ipv6-cidr-blocks", one + "vpc-ipv6-cidr-blocks"} {
		answers := goodAnswers()
		delete(answers, path)
		if err := read(metadata(t, answers)); err != nil {
			t.Errorf("without %s, which a node may rightly not have: %v", path, err)
		}
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	n := newNode(t, fakeaws.Options{Latency: map[string]time.Duration{"IMDS": 10 * time.Minute}})
	t.Cleanup(n.world.Close) // releases the waiting handlers
	testenv.Within(t, time.Minute, "a timeout of 50 ms", func() {
		c := imds.New(imds.Config{Endpoint: n.url, Timeout: 50 * time.Millisecond}) //realtime: it must end
		if _, err := c.Identity(t.Context()); err == nil {
			t.Error("no error")
		}
	})
}
