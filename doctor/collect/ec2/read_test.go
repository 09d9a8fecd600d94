package ec2

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"cnictl/deploy"
	"cnictl/doctor/evidence"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// bed is a VPC with an instance and its attachments, and a leaked interface.
type bed struct {
	*fakeaws.World
	*Reader
	instance fakeaws.Instance
	subnet   fakeaws.Subnet
	leaked   fakeaws.ENI
}

func newBed(t *testing.T) *bed {
	t.Helper()
	w := fakeaws.NewWorld(fakeaws.Options{})
	vpc := w.AddVPC(netip.MustParsePrefix("10.0.0.0/16"))
	subnet, err := w.AddSubnet(fakeaws.SubnetSpec{VPCID: vpc.ID, CIDR: netip.MustParsePrefix("10.0.0.0/22"), Tags: map[string]string{"kubernetes.io/role/cni": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	i, err := w.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: subnet.ID, Tags: map[string]string{"kubernetes.io/cluster/shop": "owned"}})
	if err != nil {
		t.Fatal(err)
	}
	leaked, err := w.CreateENI(fakeaws.ENISpec{SubnetID: subnet.ID, Description: "aws-K8S-i-gone", Prefixes: 2, IPs: 0, Tags: map[string]string{
		"node.k8s.amazonaws.com/instance_id": "i-gone", "node.k8s.amazonaws.com/createdAt": "2026-11-20T10:00:00Z",
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.AddRoute(vpc.ID, fakeaws.Route{Destination: "0.0.0.0/0", Target: "nat-1"})
	w.AddReservation(fakeaws.Reservation{SubnetID: subnet.ID, CIDR: netip.MustParsePrefix("10.0.2.0/24"), Type: "prefix"})
	server, err := fakeaws.NewServer(w, "")
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
	r, err := New(t.Context(), Options{Endpoint: server.EC2URL, UserAgent: "test/1", Timeout: testenv.Left(t), Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", "")})
	if err != nil {
		t.Fatal(err)
	}
	return &bed{World: w, Reader: r, instance: *i, subnet: subnet, leaked: leaked}
}

func TestRead(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	policy, err := deploy.IAM("cnictl-doctor")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetPolicy("", string(policy)); err != nil {
		t.Fatal(err)
	}
	r, types := b.Read(t.Context(), b.Region(), []string{b.instance.ID, "i-0fa4eeeeeeeeeeeee"})
	for id, why := range r.Missing() {
		if want := map[string]string{"ec2.quota": evidence.MissingQuota, "iam.sim": evidence.MissingIAM}[id]; want != why && want+why != evidence.MissingNotAsked ||
			strings.HasPrefix(id, "ec2.") && want == "" && id != "ec2.type" {
			t.Errorf("%s is missing: %s", id, why)
		}
	}
	if i := r.Instances.Content; len(i) != 1 || i[0].ID != b.instance.ID || i[0].State != "running" || i[0].HTTPTokens != "required" || *i[0].HopLimit != 2 || i[0].Cluster != "shop" || !strings.HasSuffix(i[0].Profile, ":instance-profile/node-role") {
		t.Errorf("instances %+v", i)
	}
	enis := r.Interfaces.Content
	leaked := slices.IndexFunc(enis, func(e evidence.Interface) bool { return e.ID == b.leaked.ID })
	if len(enis) != 2 || leaked < 0 {
		t.Fatalf("interfaces %+v", enis)
	}
	if e := enis[leaked]; e.Status != "available" || e.Instance != "" || e.Holds() != 33 || len(e.Prefixes) != 2 || !e.CreatedAt.Equal(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("leaked %+v", e)
	}
	if e := enis[1-leaked]; e.Status != "in-use" || e.Instance != b.instance.ID || *e.Device != 0 || e.Holds() != 1 || e.Primary != b.instance.PrimaryIP || len(e.Groups) != 1 || !e.DeleteOnTermination {
		t.Errorf("primary %+v", e)
	}
	if s := r.Subnets.Content; len(s) != 1 || s[0].CIDR != b.subnet.CIDR || s[0].Zone != b.subnet.AZ || s[0].Tags["kubernetes.io/role/cni"] != "1" || *s[0].Available != 1024-5-34 {
		t.Errorf("subnets %+v", s)
	}
	if v := r.Reservations.Content; len(v) != 1 || v[0] != (evidence.Reservation{Subnet: b.subnet.ID, CIDR: netip.MustParsePrefix("10.0.2.0/24"), Type: "prefix"}) {
		t.Errorf("reservations %+v", v)
	}
	if g := r.Groups.Content; len(g) != 1 || len(g[0].Ingress) != 1 || g[0].Ingress[0].Peer != g[0].ID || g[0].Egress[0].Peer != "0.0.0.0/0" || g[0].Egress[0].From != nil {
		t.Errorf("groups %+v", g)
	}
	if rt := r.RouteTables.Content; len(rt) != 1 || rt[0].Subnet != b.subnet.ID || !slices.Contains(rt[0].Routes, evidence.VPCRoute{To: "0.0.0.0/0", Target: "nat-1"}) {
		t.Errorf("route tables %+v", rt)
	}
	if l := types["m5.large"]; *l.MaxENIs != 3 || *l.IPv4PerENI != 10 || l.Hypervisor != "nitro" {
		t.Errorf("types %+v", types)
	}
	if n := b.Requests(); n != 7 {
		t.Errorf("%d requests", n)
	}
}

// TestRead_Pages reads more interfaces than fit a page.
func TestRead_Pages(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	wide, err := b.AddSubnet(fakeaws.SubnetSpec{VPCID: b.subnet.VPCID, CIDR: netip.MustParsePrefix("10.0.16.0/20")})
	if err != nil {
		t.Fatal(err)
	}
	for range pageSize {
		if _, err := b.CreateENI(fakeaws.ENISpec{SubnetID: wide.ID}); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := b.Read(t.Context(), b.Region(), []string{b.instance.ID})
	if n := len(r.Interfaces.Content); n != pageSize+2 {
		t.Errorf("%d interfaces (%s)", n, r.Interfaces.Missing)
	}
}

// TestRead_Refused: if any one right is missing, its source is forbidden and all others are read.
func TestRead_Refused(t *testing.T) {
	t.Parallel()
	sources := map[string]string{
		"DescribeNetworkInterfaces": "ec2.eni", "DescribeSubnets": "ec2.subnet", "GetSubnetCidrReservations": "ec2.resv", "DescribeSecurityGroups": "ec2.sg", "DescribeRouteTables": "ec2.rtb",
		"DescribeInstanceTypes": "", "DescribeInstances": "ec2.inst",
	}
	for action, id := range sources {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			var allowed []string
			for other := range sources {
				if other != action {
					allowed = append(allowed, `"ec2:`+other+`"`)
				}
			}
			if err := b.SetPolicy("", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":[`+strings.Join(allowed, ",")+`],"Resource":"*"}]}`); err != nil {
				t.Fatal(err)
			}
			r, _ := b.Read(t.Context(), b.Region(), []string{b.instance.ID})
			missing := r.Missing()
			for _, other := range sources {
				want := ""
				if other != "" && (other == id || action == "DescribeInstances") {
					want = evidence.MissingForbidden
				}
				if other != "" && missing[other] != want {
					t.Errorf("%s is missing because of %q, want %q", other, missing[other], want)
				}
			}
		})
	}
}

func TestRead_Unreachable(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for name, row := range map[string]struct {
		opts Options
		ids  []string
		want string
	}{
		"refused": {Options{Endpoint: "http://127.0.0.1:1"}, []string{"i-1"}, "connection refused"},
		"no credentials": {Options{Endpoint: b.opts.Endpoint, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, fmt.Errorf("refresh: %w", errors.New("no profile"))
		})}, []string{"i-1"}, "no AWS credentials: no profile"},
		"none of ids": {Options{Endpoint: b.opts.Endpoint}, []string{"i-0fa4eeeeeeeeeeeee"}, "EC2 has none of the nodes' instances"},
		"no ids":      {Options{Endpoint: b.opts.Endpoint}, nil, "EC2 has none of the nodes' instances"},
	} {
		if row.opts.Credentials == nil {
			row.opts.Credentials = credentials.NewStaticCredentialsProvider("AKIA", "secret", "")
		}
		reader, err := New(t.Context(), row.opts)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := reader.Read(t.Context(), b.Region(), row.ids)
		for id, why := range map[string]string{"inst": r.Instances.Missing, "eni": r.Interfaces.Missing} {
			if !strings.Contains(why, row.want) {
				t.Errorf("%s: %s is missing because of %q, want %q", name, id, why, row.want)
			}
		}
	}
	b.SetLatency("DescribeSubnets", time.Minute)
	b.Reader.opts.Timeout = 10 * time.Second //realtime: a busy machine answers the others within that time
	if r, _ := b.Read(t.Context(), b.Region(), []string{b.instance.ID}); r.Subnets.Missing != evidence.MissingTimeout || !r.Interfaces.OK() {
		t.Errorf("subnets %q, interfaces %q", r.Subnets.Missing, r.Interfaces.Missing)
	}
}

// TestInterfaces: those of one subnet are read with one call, and only with the right to it.
func TestInterfaces(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	policy, err := deploy.IAM("cnictl-doctor")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetPolicy("", string(policy)); err != nil {
		t.Fatal(err)
	}
	other, err := b.AddSubnet(fakeaws.SubnetSpec{VPCID: b.subnet.VPCID, CIDR: netip.MustParsePrefix("10.0.8.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateENI(fakeaws.ENISpec{SubnetID: other.ID}); err != nil {
		t.Fatal(err)
	}
	got := b.Interfaces(t.Context(), b.Region(), b.subnet.ID)
	var ids []string
	for _, e := range got.Content {
		ids = append(ids, e.ID)
		if e.Subnet != b.subnet.ID || !e.Primary.IsValid() {
			t.Errorf("%+v", e)
		}
	}
	if !got.OK() || len(ids) != 2 || !slices.Contains(ids, b.leaked.ID) || b.Requests() != 1 {
		t.Errorf("%v, %q after %d requests", ids, got.Missing, b.Requests())
	}
	if err := b.SetPolicy("", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["ec2:DescribeSubnets"],"Resource":"*"}]}`); err != nil {
		t.Fatal(err)
	}
	if got := b.Interfaces(t.Context(), b.Region(), b.subnet.ID); got.Missing != evidence.MissingForbidden {
		t.Errorf("%q", got.Missing)
	}
}
