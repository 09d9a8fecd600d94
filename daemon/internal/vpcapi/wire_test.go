package vpcapi

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"cnictl/daemon/awssdk"
	"cnictl/daemon/ipam"
)

// fixed gives every request the same answer, without a network.
type fixed struct {
	status int
	body   string
}

func (f fixed) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: f.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(f.body)), Request: r}, nil
}

// clientOf returns a client whose EC2 gives one answer, and which tries only once.
func clientOf(status int, body string, max int64) *Client {
	return &Client{conf: Config{InstanceID: "i-0a"}, subnets: map[string]cidrs{"subnet-0a": {v4: netip.MustParsePrefix("10.0.0.0/24"), v6: netip.MustParsePrefix("2001:db8:0:1::/64")}}, enis: map[ipam.ENIID]ownENI{},
		ec2: ec2.New(ec2.Options{APIOptions: awssdk.APIOptions(), Region: "us-west-2", Retryer: aws.NopRetryer{}, HTTPClient: boundedHTTP{fixed{status, body}, max},
			Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", "")})}
}

// Endless answers are cut off.
func TestBounded(t *testing.T) {
	t.Parallel()
	body := "<R><subnetSet>" + strings.Repeat(" ", 1000) + "</subnetSet></R>"
	if _, err := clientOf(200, body, int64(len(body))).DescribeSubnets(t.Context()); err != nil {
		t.Errorf("an answer of the greatest length: %v", err)
	}
	if _, err := clientOf(200, body, int64(len(body)-1)).DescribeSubnets(t.Context()); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a longer answer: %v", err)
	}
}

// The client remembers only its own ENIs: those of other nodes, which sweeps describe, and
// deleted ones would pile up.
func TestClient_RemembersItsOwn(t *testing.T) {
	t.Parallel()
	c := clientOf(200, "", 1<<20)
	item := func(n int, instance string) string {
		return fmt.Sprintf(`<item><networkInterfaceId>eni-%x</networkInterfaceId><subnetId>subnet-0a</subnetId><macAddress>02:00:00:00:00:01</macAddress><attachment><instanceId>%s</instanceId></attachment></item>`, n, instance)
	}
	answer := func(items ...string) {
		body := "<R><networkInterfaceSet>" + strings.Join(items, "") + "</networkInterfaceSet></R>"
		c.ec2 = clientOf(200, body, 1<<20).ec2
	}
	want := func(when string, ids ...ipam.ENIID) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(c.enis)); !slices.Equal(got, ids) {
			t.Errorf("%s: it remembers %v, want %v", when, got, ids)
		}
	}
	for round := range 3 {
		var foreign []string
		for n := range 100 {
			foreign = append(foreign, item(1000+100*round+n, ""))
		}
		answer(foreign...)
		if _, err := c.DescribeLeaked(t.Context()); err != nil {
			t.Fatal(err)
		}
		want("after a sweep")
	}
	c.remember(ENI{ID: "eni-c", SubnetID: "subnet-0a"}) // like CreateENI
	answer(item(0xa, "i-0a"), item(0xb, "i-0a"))
	if _, err := c.DescribeENIs(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want("after a list of the instance's", "eni-a", "eni-b", "eni-c")
	answer(item(0xa, "i-0a"))
	if _, err := c.DescribeENIs(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want("after one was detached by somebody", "eni-a", "eni-c")
	answer(item(0xc, ""), item(0xd, ""), item(0xe, "i-0b"))
	if _, err := c.DescribeENIs(t.Context(), []ipam.ENIID{"eni-a", "eni-c", "eni-d", "eni-e"}); err != nil {
		t.Fatal(err)
	}
	want("after others' were described, and eni-a was not found", "eni-c")
	if err := c.DeleteENI(t.Context(), "eni-c"); err != nil {
		t.Fatal(err)
	}
	want("after a deletion")
}

// For any answer from EC2 the client returns either values within their bounds or an error.
func FuzzAnswer(f *testing.F) {
	const eni = `<networkInterfaceId>eni-0a</networkInterfaceId><subnetId>subnet-0a</subnetId><macAddress>02:00:00:00:00:01</macAddress><privateIpAddress>10.0.0.4</privateIpAddress>` +
		`<attachment><attachmentId>eni-attach-0a</attachmentId><deviceIndex>1</deviceIndex></attachment><privateIpAddressesSet><item><privateIpAddress>10.0.0.5</privateIpAddress></item></privateIpAddressesSet>` +
		`<ipv4PrefixSet><item><ipv4Prefix>10.0.0.16/28</ipv4Prefix></item></ipv4PrefixSet>`
	for _, seed := range []string{"<R><networkInterfaceSet><item>" + eni + "</item></networkInterfaceSet></R>", "<R><networkInterface>" + eni + "</networkInterface></R>", "<R><networkInterfaceSet><item></item></networkInterfaceSet></R>",
		"<R><subnetSet><item><subnetId>subnet-0a</subnetId><cidrBlock>10.0.0.0/24</cidrBlock></item></subnetSet></R>", "<R", "", "<R/>", "<R><nextToken>x</nextToken></R>",
		"<R><assignedPrivateIpAddressesSet><item><privateIpAddress>10.0.0.9</privateIpAddress></item></assignedPrivateIpAddressesSet></R>", "<R><instanceTypeSet><item><instanceType>m5.large</instanceType></item></instanceTypeSet></R>"} {
		f.Add(200, seed)
	}
	f.Add(503, "<Response><Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors></Response>")
	f.Add(400, "<html>")
	f.Fuzz(func(t *testing.T, status int, body string) {
		c := clientOf(status, body, 1<<20)
		within := netip.MustParsePrefix("10.0.0.0/24")
		enis, err := c.DescribeENIs(t.Context(), nil)
		if err != nil && (enis != nil || Cause(err) == "") {
			t.Errorf("%v with %v", err, enis)
		}
		for _, e := range enis {
			if checkID("", "eni-", string(e.ID)) != nil || len(e.MAC) != 17 || e.Device < 0 || e.Card < 0 {
				t.Errorf("accepted %+v", e)
			}
			for _, p := range e.CIDRs() {
				if !p.Addr().Is4() || !p.Addr().IsGlobalUnicast() || (e.SubnetID == "subnet-0a" && !within.Contains(p.Addr())) {
					t.Errorf("accepted %s in %s", p, e.SubnetID)
				}
			}
		}
		if e, err := c.CreateENI(t.Context(), CreateENI{SubnetID: "subnet-0a", IPs: 2}); err == nil && (!within.Contains(e.PrimaryIP) || len(e.SecondaryIPs) > 2) {
			t.Errorf("accepted %+v", e)
		}
		if ips, err := c.AssignIPs(t.Context(), "eni-0b", 3); err == nil && len(ips) > 3 {
			t.Errorf("accepted %v", ips)
		}
		if l, err := c.DescribeInstanceType(t.Context(), "m5.large"); err == nil && (l.MaxENIs < 1 || l.IPv4PerENI < 1) {
			t.Errorf("accepted %+v", l)
		}
		subnets, err := c.DescribeSubnets(t.Context())
		if err != nil && subnets != nil {
			t.Errorf("%v with %v", err, subnets)
		}
		for _, s := range subnets {
			if s.CIDR != s.CIDR.Masked() || s.AvailableIPs < 0 {
				t.Errorf("accepted %+v", s)
			}
		}
	})
}
