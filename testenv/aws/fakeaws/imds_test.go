package fakeaws_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"

	"cnictl/testenv/aws/fakeaws"
)

// metadata reads a path with the real SDK; a nonzero status is a refusal.
func metadata(t *testing.T, c *imds.Client, path string) (string, int) {
	t.Helper()
	out, err := c.GetMetadata(t.Context(), &imds.GetMetadataInput{Path: path})
	var status interface{ HTTPStatusCode() int }
	if errors.As(err, &status) {
		return "", status.HTTPStatusCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer out.Content.Close()
	b, err := io.ReadAll(out.Content)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), 200
}

func (b *bench) imds() *imds.Client { return imds.New(imds.Options{Endpoint: b.server.IMDSURL}) }

func TestIMDS_Paths(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	e := b.eni(fakeaws.ENISpec{IPs: 1, IPv6s: 1})
	if _, err := b.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: b.instance.ID, Device: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Assign(e.ID, fakeaws.AssignSpec{PrefixCount: 1}); err != nil {
		t.Fatal(err)
	}
	const first, second = "network/interfaces/macs/02:fa:4e:00:00:01/", "network/interfaces/macs/02:fa:4e:00:00:02/"
	tests := []struct {
		path, want string
		status     int
	}{
		{"placement/availability-zone", "us-west-2a", 200}, {"local-ipv4", "10.0.0.4", 200}, {"ipv6", "", 404},
		{"instance-id", b.instance.ID, 200}, {"instance-type", "m5.large", 200}, {"mac", "02:fa:4e:00:00:01", 200},
		{"network/interfaces/macs", "02:fa:4e:00:00:01/\n02:fa:4e:00:00:02/", 200},
		{"network/interfaces/macs/", "02:fa:4e:00:00:01/\n02:fa:4e:00:00:02/", 200},
		{first, "device-number\ninterface-id\nlocal-hostname\nlocal-ipv4s\nmac\nnetwork-card\nowner-id\nsecurity-group-ids\nsecurity-groups\nsubnet-id\nsubnet-ipv4-cidr-block\nsubnet-ipv6-cidr-blocks\nvpc-id\nvpc-ipv4-cidr-block\nvpc-ipv4-cidr-blocks\nvpc-ipv6-cidr-blocks", 200},
		{second + "interface-id", e.ID, 200}, {second + "device-number", "2", 200}, {second + "network-card", "0", 200},
		{second + "subnet-id", b.subnet.ID, 200}, {second + "vpc-id", b.vpc.ID, 200}, {second + "security-group-ids", "sg-0fa4e000000000001", 200},
		{second + "local-ipv4s", "10.0.0.5\n10.0.0.6", 200}, {second + "ipv6s", "2001:db8:0:1::4", 200}, {second + "ipv4-prefix", "10.0.0.16/28", 200},
		{second + "ipv6-prefix", "", 404}, {first + "ipv4-prefix", "", 404}, {first + "ipv6s", "", 404},
		{second + "subnet-ipv4-cidr-block", "10.0.0.0/24", 200}, {second + "subnet-ipv6-cidr-blocks", "2001:db8:0:1::/64", 200},
		{second + "vpc-ipv4-cidr-blocks", "10.0.0.0/16", 200}, {second + "vpc-ipv6-cidr-blocks", "2001:db8::/56", 200},
		{"network/interfaces/macs/02:fa:4e:00:00:99/interface-id", "", 404}, // not present, which is no mistake of the client
		{"network/interfaces/", "macs/", 200}, {"instance-id/", "", 404},
	}
	c := b.imds()
	for _, tt := range tests {
		got, status := metadata(t, c, tt.path)
		if got != tt.want || status != tt.status {
			t.Errorf("%s: %d %q, want %d %q", tt.path, status, got, tt.status, tt.want)
		}
	}
	doc, err := c.GetInstanceIdentityDocument(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Region != "us-west-2" || doc.InstanceID != b.instance.ID || doc.PrivateIP != "10.0.0.4" || doc.InstanceType != "m5.large" {
		t.Errorf("identity document: %+v", doc)
	}
	b.noViolations()
	for _, bad := range []string{"network/interfaces/macs/02:fa:4e:00:00:02/colour", "network/interfaces/macs/nonsense/mac", "colour"} {
		if _, status := metadata(t, c, bad); status != 404 {
			t.Errorf("%s: %d", bad, status)
		}
		if all := b.Violations(); len(all) == 0 || !strings.Contains(all[len(all)-1], bad) {
			t.Errorf("%s is not recorded: %q", bad, all)
		}
	}
}

func TestIMDS_Tokens(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	b := newBench(t, fakeaws.Options{Now: func() time.Time { return now }})
	do := func(method, path string, header ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, b.server.IMDSURL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	const token, ttl, id = "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds", "/latest/meta-data/instance-id"
	_, good := do("PUT", token, ttl, "60")
	steps := []struct {
		name   string
		status int
		got    func() (int, string)
	}{
		{"no token", 401, func() (int, string) { return do("GET", id) }},
		{"wrong token", 401, func() (int, string) { return do("GET", id, "X-aws-ec2-metadata-token", "x") }},
		{"good token", 200, func() (int, string) { return do("GET", id, "X-aws-ec2-metadata-token", good) }},
		{"no lifetime", 400, func() (int, string) { return do("PUT", token) }},
		{"lifetime 0", 400, func() (int, string) { return do("PUT", token, ttl, "0") }},
		{"lifetime too long", 400, func() (int, string) { return do("PUT", token, ttl, "21601") }},
		{"token by GET", 405, func() (int, string) { return do("GET", token, ttl, "60") }},
		{"through a proxy", 403, func() (int, string) { return do("PUT", token, ttl, "60", "X-Forwarded-For", "10.0.0.9") }},
		{"expired", 401, func() (int, string) {
			now = now.Add(60 * time.Second)
			return do("GET", id, "X-aws-ec2-metadata-token", good)
		}},
	}
	for _, s := range steps {
		if got, body := s.got(); got != s.status {
			t.Errorf("%s: %d %q, want %d", s.name, got, body, s.status)
		}
	}
	if calls := b.IMDSCalls(); len(calls) != len(steps)+1 || calls[1].Status != 401 || calls[3].InstanceID != b.instance.ID {
		t.Errorf("metadata log: %+v", calls)
	}
}
