package vpcapi_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/budget"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/testenv/aws/fakeaws"
)

var compareNetip = cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })}

var quick = budget.Class{Burst: 1000, PerSecond: 1000}

// node is a simulated world with one instance and its client.
type node struct {
	*vpcapi.Client
	t        *testing.T
	world    *fakeaws.World
	instance *fakeaws.Instance
	subnet   fakeaws.Subnet

	mu       sync.Mutex
	observed []vpcapi.Call // guarded by mu
}

type setup struct {
	world fakeaws.Options
	conf  func(*vpcapi.Config)
	kind  string // instance type, default m5.large
}

func newNode(t *testing.T, s setup) *node {
	t.Helper()
	w := fakeaws.NewWorld(s.world)
	v := w.AddVPC(netip.MustParsePrefix("10.0.0.0/16"))
	subnet, err := w.AddSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix("10.0.0.0/24"), Tags: map[string]string{"kubernetes.io/role/cni": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if s.kind == "" {
		s.kind = "m5.large"
	}
	i, err := w.AddInstance(fakeaws.InstanceSpec{Type: s.kind, SubnetID: subnet.ID, Tags: map[string]string{"kubernetes.io/cluster/c1": "owned"}})
	if err != nil {
		t.Fatal(err)
	}
	server, err := fakeaws.NewServer(w, i.ID)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, world: w, instance: i, subnet: subnet}
	conf := vpcapi.Config{Region: w.Region(), Endpoint: server.EC2URL, UserAgent: "amazon-vpc-cni-k8s/v0.0.0", InstanceID: i.ID, VPCID: v.ID, AZ: i.AZ, ClusterName: "c1",
		AdditionalTags: map[string]string{"team": "net", "x.k8s.amazonaws.com/y": "dropped"}, Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", ""),
		// Other tests do not wait for a node's share.
		Budget: budget.Policy{Read: quick, Write: quick, Floor: quick.PerSecond}, Jitter: func(time.Duration) time.Duration { return 0 },
		Observe: func(c vpcapi.Call) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.observed = append(n.observed, c)
		}}
	if s.conf != nil {
		s.conf(&conf)
	}
	if n.Client, err = vpcapi.New(t.Context(), conf); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		w.Close()
		if err := w.Check(); err != nil {
			t.Errorf("world: %v", err)
		}
		for _, v := range w.Violations() {
			t.Errorf("violation: %s", v)
		}
	})
	return n
}

func (n *node) create(s vpcapi.CreateENI) vpcapi.ENI {
	n.t.Helper()
	if s.SubnetID == "" {
		s.SubnetID = n.subnet.ID
	}
	e, err := n.CreateENI(n.t.Context(), s)
	if err != nil {
		n.t.Fatal(err)
	}
	return e
}

// codes lists the observed actions with their error codes.
func (n *node) codes() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []string
	for _, c := range n.observed {
		out = append(out, strings.TrimSpace(c.Action+" "+c.Code))
	}
	return out
}

func TestENILife(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{})
	ctx := t.Context()
	group := n.world.AddSecurityGroup(n.instance.VPCID, "pods")
	track := vpcapi.ConnTrack{TCPEstablished: 400 * time.Second, UDP: 45 * time.Second}
	began := time.Now().Truncate(time.Second)
	made := n.create(vpcapi.CreateENI{IPs: 2, SecurityGroups: []string{group}, ConnTrack: track})
	at, err := n.AttachENI(ctx, made.ID, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.SetDeleteOnTermination(ctx, made.ID, at); err != nil {
		t.Fatal(err)
	}
	ips, err := n.AssignIPs(ctx, made.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	prefixes, err := n.AssignPrefixes(ctx, made.ID, 2)
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.DescribeENIs(ctx, []ipam.ENIID{made.ID, "eni-0fa4e00000000dead"})
	if err != nil || len(got) != 1 {
		t.Fatalf("described %d ENIs (%v), want the one that exists", len(got), err)
	}
	e := got[0]
	created, err := time.Parse(time.RFC3339, e.Tags[vpcapi.TagCreatedAt])
	if err != nil || created.Before(began) || created.After(time.Now()) {
		t.Errorf("createdAt is %q", e.Tags[vpcapi.TagCreatedAt])
	}
	want := vpcapi.ENI{ID: made.ID, MAC: made.MAC, Status: "in-use", InterfaceType: "interface", Description: "aws-K8S-" + n.instance.ID, SubnetID: n.subnet.ID,
		AttachmentID: at, AttachmentStatus: "attached", InstanceID: n.instance.ID, Device: 1, DeleteOnTermination: true,
		PrimaryIP: netip.MustParseAddr("10.0.0.5"), SecondaryIPs: append(slices.Clone(made.SecondaryIPs), ips...), Prefixes: prefixes, SecurityGroups: []string{group}, SourceDestCheck: true, ConnTrack: track,
		Tags: map[string]string{vpcapi.TagCreatedAt: e.Tags[vpcapi.TagCreatedAt], vpcapi.TagInstanceID: n.instance.ID, vpcapi.TagClusterName: "c1", vpcapi.TagOwner: "amazon-vpc-cni", "team": "net"}}
	if diff := cmp.Diff(want, e, compareNetip); diff != "" {
		t.Errorf("ENI (-want +got):\n%s", diff)
	}
	mine, err := n.DescribeENIs(ctx, nil)
	if err != nil || len(mine) != 2 || mine[0].Device != 0 || mine[1].ID != made.ID {
		t.Errorf("the instance's ENIs: %+v (%v)", mine, err)
	}
	if err := n.Unassign(ctx, made.ID, append(e.CIDRs()[:1:1], prefixes...)); err != nil {
		t.Fatal(err)
	}
	left, _ := n.world.ENI(string(made.ID))
	if len(left.SecondaryIPs) != 2 || len(left.Prefixes) != 0 {
		t.Errorf("left after unassigning: %+v", left)
	}
	if err := n.DetachENI(ctx, at); err != nil {
		t.Fatal(err)
	}
	for range 2 { // already gone the second time, which is fine
		if err := n.DeleteENI(ctx, made.ID); err != nil {
			t.Fatal(err)
		}
	}
	wantCalls := []string{"CreateNetworkInterface", "AttachNetworkInterface", "ModifyNetworkInterfaceAttribute", "AssignPrivateIpAddresses", "AssignPrivateIpAddresses",
		"DescribeNetworkInterfaces", "DescribeNetworkInterfaces", "UnassignPrivateIpAddresses", "UnassignPrivateIpAddresses", "DetachNetworkInterface",
		"DeleteNetworkInterface", "DeleteNetworkInterface InvalidNetworkInterfaceID.NotFound"}
	if diff := cmp.Diff(wantCalls, n.codes()); diff != "" {
		t.Errorf("observed calls (-want +got):\n%s", diff)
	}
}

// The answer to CreateNetworkInterface has everything that the metadata would show later.
func TestCreateENI_AnswerIsComplete(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{})
	for _, s := range []vpcapi.CreateENI{{}, {IPs: 9}, {Prefixes: 3}} {
		e := n.create(s)
		is, ok := n.world.ENI(string(e.ID))
		if !ok || len(e.SecondaryIPs) != s.IPs || len(e.Prefixes) != s.Prefixes {
			t.Errorf("%+v made %+v", s, e)
		}
		if diff := cmp.Diff(slices.Clone(is.CIDRs()[1:]), append([]netip.Prefix{}, e.CIDRs()...), compareNetip); diff != "" || e.PrimaryIP != is.PrimaryIP || e.MAC != is.MAC {
			t.Errorf("answer (-world +answer):\n%s", diff)
		}
	}
}

// A creation whose answer was lost is repeated by the SDK without a second ENI.
func TestCreateENI_LostAnswer(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{})
	backend := fakeaws.EC2Handler(n.world)
	var mu sync.Mutex
	lost := false
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		backend.ServeHTTP(rec, r)
		mu.Lock()
		drop := !lost
		lost = true
		mu.Unlock()
		if drop {
			panic(http.ErrAbortHandler)
		}
		rw.WriteHeader(rec.Code)
		_, _ = rw.Write(rec.Body.Bytes())
	}))
	defer proxy.Close()
	c, err := vpcapi.New(t.Context(), vpcapi.Config{Region: n.world.Region(), Endpoint: proxy.URL, InstanceID: n.instance.ID, Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", "")})
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.CreateENI(t.Context(), vpcapi.CreateENI{SubnetID: n.subnet.ID, IPs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if all := n.world.ENIs(); len(all) != 2 || all[1].ID != string(e.ID) {
		t.Errorf("%d ENIs beside the primary, want 1: the client token makes the call safe to repeat", len(all)-1)
	}
}

// A creation that failed for good and is asked for again with its token makes no second ENI,
// another token does.
func TestCreateENI_TokenOfTheCaller(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{})
	if _, err := n.world.AddFault(fakeaws.Rule{Action: "CreateNetworkInterface", Fault: fakeaws.Fault{Effect: true, Reply: fakeaws.ReplyGarbage}}); err != nil {
		t.Fatal(err)
	}
	s := vpcapi.CreateENI{SubnetID: n.subnet.ID, IPs: 1, Token: "node-1-7"}
	if e, err := n.CreateENI(t.Context(), s); err == nil {
		t.Fatalf("created %+v from an answer that was lost", e)
	}
	n.world.RemoveFaults()
	e := n.create(s)
	if all := n.world.ENIs(); len(all) != 2 || all[1].ID != string(e.ID) {
		t.Fatalf("%d ENIs beside the primary, want the one whose answer was lost: the same token is the same request", len(all)-1)
	}
	s.Token = "node-1-8"
	if other := n.create(s); other.ID == e.ID {
		t.Errorf("a request with another token returned %s again", e.ID)
	}
}

func TestTagENI(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{})
	id := ipam.ENIID(n.instance.PrimaryENI)
	if err := n.TagENI(t.Context(), id, map[string]string{"team": "other", vpcapi.TagClusterName: "c1"}); err != nil {
		t.Fatal(err)
	}
	got, _ := n.world.Tags(string(id))
	if diff := cmp.Diff(map[string]string{"team": "net", vpcapi.TagInstanceID: n.instance.ID, vpcapi.TagOwner: "amazon-vpc-cni"}, got); diff != "" {
		t.Errorf("written tags (-want +got):\n%s", diff)
	}
	got[vpcapi.TagClusterName] = "c1"
	if err := n.TagENI(t.Context(), id, got); err != nil {
		t.Fatal(err)
	}
	if calls := n.codes(); len(calls) != 1 {
		t.Errorf("calls %q, want none when nothing is missing", calls)
	}
	kept, dropped := vpcapi.UserTags(map[string]string{"a": "1", "node.k8s.amazonaws.com/no_manage": "true", "b": ""})
	if diff := cmp.Diff(map[string]string{"a": "1", "b": ""}, kept); diff != "" || !slices.Equal(dropped, []string{"node.k8s.amazonaws.com/no_manage"}) {
		t.Errorf("user tags: kept %v, dropped %v", kept, dropped)
	}
}

func TestDescribeSubnets(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{})
	for _, s := range []fakeaws.SubnetSpec{{AZ: "us-west-2b", CIDR: netip.MustParsePrefix("10.0.1.0/24")}, {CIDR: netip.MustParsePrefix("10.0.2.0/26")}} {
		s.VPCID = n.instance.VPCID
		if _, err := n.world.AddSubnet(s); err != nil {
			t.Fatal(err)
		}
	}
	got, err := n.DescribeSubnets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []vpcapi.Subnet{
		{ID: "subnet-0fa4e000000000001", AZ: "us-west-2a", CIDR: netip.MustParsePrefix("10.0.0.0/24"), AvailableIPs: 250, Tags: map[string]string{"kubernetes.io/role/cni": "1"}},
		{ID: "subnet-0fa4e000000000003", AZ: "us-west-2a", CIDR: netip.MustParsePrefix("10.0.2.0/26"), AvailableIPs: 59, Tags: map[string]string{}}}
	if diff := cmp.Diff(want, got, compareNetip); diff != "" {
		t.Errorf("subnets (-want +got):\n%s", diff)
	}
}

func TestDescribeENIs_Pages(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{})
	var ids []ipam.ENIID
	for range 230 { // more than one request takes
		e, err := n.world.CreateENI(fakeaws.ENISpec{SubnetID: n.subnet.ID})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, ipam.ENIID(e.ID))
	}
	got, err := n.DescribeENIs(t.Context(), ids)
	if err != nil || len(got) != len(ids) {
		t.Fatalf("described %d of %d ENIs (%v)", len(got), len(ids), err)
	}
	for i := range got {
		if got[i].ID != ids[i] {
			t.Fatalf("ENI %d is %s, want %s", i, got[i].ID, ids[i])
		}
	}
}

func TestDescribeInstanceType(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{})
	for _, name := range []string{"m5.large", "p4d.24xlarge", "i7ie.metal-48xl", "m4.large", "c1.medium", "a1.large"} {
		want, _ := limits.Lookup(name)
		want.TrunkingCompatible, want.BranchENIs, want.PublishedMaxENIs = limits.Unknown, 0, 0 // EC2 does not report these
		got, err := n.DescribeInstanceType(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-table +EC2):\n%s", name, diff)
		}
	}
	if _, err := n.DescribeInstanceType(t.Context(), "m5.none"); vpcapi.Code(err) != "InvalidInstanceType" {
		t.Errorf("unknown type: %v", err)
	}
}

// Each predicate matches its real failure and no other.
func TestErrors(t *testing.T) {
	t.Parallel()
	type verdict struct {
		Throttled, Exhausted, Fragmented, NotFound, Unauthorized, AttachLimit, AddressLimit bool
		Cause                                                                               cause.Code
	}
	gone := ipam.ENIID("eni-0fa4e00000000dead")
	assign := func(n *node, count int) error {
		_, err := n.AssignIPs(t.Context(), ipam.ENIID(n.instance.PrimaryENI), count)
		return err
	}
	tests := []struct {
		name    string
		options fakeaws.Options
		provoke func(n *node) error
		want    verdict
	}{
		{"throttled", fakeaws.Options{Throttle: &fakeaws.Throttle{}}, func(n *node) error { return assign(n, 1) }, verdict{Throttled: true, Cause: cause.EC2Throttled}},
		{"exhausted", fakeaws.Options{}, func(n *node) error {
			if _, err := n.world.Occupy(n.subnet.ID, 1000); err != nil {
				t.Error(err)
			}
			return assign(n, 1)
		}, verdict{Exhausted: true, Cause: cause.SubnetExhausted}},
		{"exhausted, said otherwise", fakeaws.Options{ExhaustedAsValue: true}, func(n *node) error {
			if _, err := n.world.Occupy(n.subnet.ID, 1000); err != nil {
				t.Error(err)
			}
			_, err := n.CreateENI(t.Context(), vpcapi.CreateENI{SubnetID: n.subnet.ID, IPs: 1})
			return err
		}, verdict{Exhausted: true, Cause: cause.SubnetExhausted}},
		{"exhausted when assigning, said otherwise", fakeaws.Options{ExhaustedAsValue: true}, func(n *node) error {
			if _, err := n.world.Occupy(n.subnet.ID, 1000); err != nil {
				t.Error(err)
			}
			return assign(n, 1)
		}, verdict{Exhausted: true, Cause: cause.SubnetExhausted}},
		{"no room for a prefix, said otherwise", fakeaws.Options{ExhaustedAsValue: true}, func(n *node) error {
			if _, err := n.world.Occupy(n.subnet.ID, 1000); err != nil {
				t.Error(err)
			}
			_, err := n.AssignPrefixes(t.Context(), ipam.ENIID(n.instance.PrimaryENI), 1)
			return err
		}, verdict{Exhausted: true, Cause: cause.SubnetExhausted}},
		{"fragmented", fakeaws.Options{}, func(n *node) error {
			if err := n.world.Fragment(n.subnet.ID); err != nil {
				t.Error(err)
			}
			_, err := n.AssignPrefixes(t.Context(), ipam.ENIID(n.instance.PrimaryENI), 1)
			return err
		}, verdict{Fragmented: true, Cause: cause.SubnetFragmented}},
		{"ENI not found", fakeaws.Options{}, func(n *node) error {
			_, err := n.AssignPrefixes(t.Context(), gone, 1)
			return err
		}, verdict{NotFound: true, Cause: cause.EC2Error}},
		{"attachment not found", fakeaws.Options{}, func(n *node) error { return n.DetachENI(t.Context(), "eni-attach-0fa4e00000000dead") }, verdict{NotFound: true, Cause: cause.EC2Error}},
		{"deleted while attached", fakeaws.Options{}, func(n *node) error { return n.DeleteENI(t.Context(), ipam.ENIID(n.instance.PrimaryENI)) }, verdict{Cause: cause.EC2Error}},
		{"attached while attached", fakeaws.Options{}, func(n *node) error {
			_, err := n.AttachENI(t.Context(), ipam.ENIID(n.instance.PrimaryENI), 0, 1)
			return err
		}, verdict{Cause: cause.EC2Error}},
		{"unauthorized", fakeaws.Options{Allow: []string{"DescribeSubnets"}}, func(n *node) error { return assign(n, 1) }, verdict{Unauthorized: true, Cause: cause.EC2Unauthorized}},
		{"attach limit", fakeaws.Options{}, func(n *node) error {
			for device := 1; ; device++ {
				if _, err := n.AttachENI(t.Context(), n.create(vpcapi.CreateENI{}).ID, 0, device); err != nil {
					return err
				}
			}
		}, verdict{AttachLimit: true, Cause: cause.ENIAttachLimit}},
		{"address limit", fakeaws.Options{}, func(n *node) error { return assign(n, 10) }, verdict{AddressLimit: true, Cause: cause.PoolFull}},
		{"another value", fakeaws.Options{}, func(n *node) error {
			_, err := n.AttachENI(t.Context(), n.create(vpcapi.CreateENI{}).ID, 0, 0)
			return err
		}, verdict{Cause: cause.EC2Error}},
		{"none", fakeaws.Options{}, func(*node) error { return nil }, verdict{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.provoke(newNode(t, setup{world: tt.options}))
			if (err == nil) != (tt.want.Cause == "") {
				t.Fatalf("error %v", err)
			}
			got := verdict{vpcapi.IsThrottled(err), vpcapi.IsSubnetExhausted(err), vpcapi.IsFragmented(err), vpcapi.IsNotFound(err), vpcapi.IsUnauthorized(err), vpcapi.IsAttachLimit(err), vpcapi.IsAddressLimit(err), vpcapi.Cause(err)}
			if got != tt.want {
				t.Errorf("%v: %+v, want %+v", err, got, tt.want)
			}
		})
	}
}

func TestUnassign_Partly(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{})
	e := n.create(vpcapi.CreateENI{Prefixes: 1})
	foreign := netip.MustParsePrefix("10.0.0.200/32")
	err := n.Unassign(t.Context(), e.ID, []netip.Prefix{foreign, e.Prefixes[0]})
	var partly *keeper.PartlyUnassigned
	if !errors.As(err, &partly) || !slices.Equal(partly.Gone, e.Prefixes) || vpcapi.Code(err) != "InvalidParameterValue" {
		t.Errorf("%v, want the prefix gone and the address refused", err)
	}
}

func TestThrottleIsRetried(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{})
	n.world.SetFaults(fakeaws.FailCalls("DescribeSubnets", 1, 1, fakeaws.Fault{Code: "RequestLimitExceeded", Message: "Request limit exceeded."}))
	if _, err := n.DescribeSubnets(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tries, seen := len(n.world.Calls()), n.codes(); tries != 2 || !slices.Equal(seen, []string{"DescribeSubnets"}) {
		t.Errorf("%d requests, observed %q; want 2 requests seen as one call", tries, seen)
	}
}

// EC2_ENDPOINT settings: the client's own first, then the SDK's variable. Credentials come
// from the environment.
func TestEndpointAndCredentials(t *testing.T) {
	n := newNode(t, setup{})
	server, err := fakeaws.NewServer(n.world, n.instance.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for _, v := range server.Env() {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	c, err := vpcapi.New(t.Context(), vpcapi.Config{Region: n.world.Region(), InstanceID: n.instance.ID, VPCID: n.instance.VPCID, AZ: n.instance.AZ})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.DescribeSubnets(t.Context()); err != nil {
		t.Errorf("with AWS_ENDPOINT_URL_EC2: %v", err)
	}
	n.world.ResetCalls()
	n.world.SetFaults(fakeaws.FailCalls("DescribeSubnets", 2, 2, fakeaws.Fault{Code: "RequestLimitExceeded"}))
	if _, err := c.DescribeSubnets(t.Context()); !vpcapi.IsThrottled(err) || len(n.world.Calls()) != 1 {
		t.Errorf("AWS_MAX_ATTEMPTS=1: %v after %d requests", err, len(n.world.Calls()))
	}
	t.Setenv("AWS_ENDPOINT_URL_EC2", "http://127.0.0.1:1")
	c, err = vpcapi.New(t.Context(), vpcapi.Config{Region: n.world.Region(), Endpoint: server.EC2URL, InstanceID: n.instance.ID, VPCID: n.instance.VPCID, AZ: n.instance.AZ})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.DescribeSubnets(t.Context()); err != nil {
		t.Errorf("Config.Endpoint over AWS_ENDPOINT_URL_EC2: %v", err)
	}
}

// Without keys in the environment the instance role's are fetched from the metadata, on the
// first call and not before.
func TestCredentials_InstanceRole(t *testing.T) {
	n := newNode(t, setup{})
	server, err := fakeaws.NewServer(n.world, n.instance.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.IMDSURL)
	c, err := vpcapi.New(t.Context(), vpcapi.Config{Region: n.world.Region(), Endpoint: server.EC2URL, InstanceID: n.instance.ID, VPCID: n.instance.VPCID, AZ: n.instance.AZ})
	if err != nil {
		t.Fatal(err)
	}
	if asked := len(n.world.IMDSCalls()); asked != 0 {
		t.Errorf("%d metadata requests before the first call", asked)
	}
	if _, err := c.DescribeSubnets(t.Context()); err != nil {
		t.Fatal(err)
	}
	if asked := len(n.world.IMDSCalls()); asked == 0 {
		t.Error("the role's credentials were not asked for")
	}
}

func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []vpcapi.Config{{InstanceID: "i-0"}, {Region: "r"}, {Region: "r", InstanceID: "eni-0"}} {
		if _, err := vpcapi.New(t.Context(), c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, but nothing answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var seen []vpcapi.Call
	c, err := vpcapi.New(t.Context(), vpcapi.Config{Region: "us-west-2", Endpoint: "http://" + listener.Addr().String(), InstanceID: "i-0", HTTPTimeout: 50 * time.Millisecond,
		Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", ""), Observe: func(c vpcapi.Call) { seen = append(seen, c) }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.DescribeSubnets(t.Context())
	if err == nil || vpcapi.Code(err) != "" || vpcapi.Cause(err) != cause.EC2Error {
		t.Errorf("%v (code %q), want a timeout of HTTPTimeout", err, vpcapi.Code(err))
	}
	if len(seen) != 1 || seen[0].Err == nil || seen[0].Took <= 0 {
		t.Errorf("observed %+v", seen)
	}
}
