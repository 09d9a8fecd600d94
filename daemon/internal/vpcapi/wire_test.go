package vpcapi

import (
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"cnictl/daemon/ipam"
)

// fixed answers every request alike, without a network.
type fixed struct {
	status int
	body   string
}

func (f fixed) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: f.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(f.body)), Request: r}, nil
}

// told is a client whose EC2 gives one answer, and tries once.
func told(status int, body string, max int64) *Client {
	return &Client{conf: Config{InstanceID: "i-0a"}, subnets: map[string]netip.Prefix{"subnet-0a": netip.MustParsePrefix("10.0.0.0/24")}, subnet: map[ipam.ENIID]string{},
		ec2: ec2.New(ec2.Options{Region: "us-west-2", Retryer: aws.NopRetryer{}, HTTPClient: boundedHTTP{fixed{status, body}, max}, Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", "")})}
}

// Answers without end are cut off.
func TestBounded(t *testing.T) {
	t.Parallel()
	body := "<R><subnetSet>" + strings.Repeat(" ", 1000) + "</subnetSet></R>"
	if _, err := told(200, body, int64(len(body))).DescribeSubnets(t.Context()); err != nil {
		t.Errorf("an answer of the greatest length: %v", err)
	}
	if _, err := told(200, body, int64(len(body)-1)).DescribeSubnets(t.Context()); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a longer answer: %v", err)
	}
}

// Whatever EC2 answers, the client gives values within their bounds or an error.
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
		c := told(status, body, 1<<20)
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
				if !p.Addr().Is4() || (e.SubnetID == "subnet-0a" && !within.Contains(p.Addr())) {
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
