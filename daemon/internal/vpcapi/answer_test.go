package vpcapi_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"cnictl/daemon/budget"
	"cnictl/daemon/internal/vpcapi"
)

// answering makes a client whose EC2 gives the same answer to everything.
func answering(t testing.TB, body string) *vpcapi.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(rw, body)
	}))
	t.Cleanup(s.Close)
	c, err := vpcapi.New(t.Context(), vpcapi.Config{Budget: budget.Policy{Read: quick, Write: quick}, Region: "us-west-2", Endpoint: s.URL, InstanceID: "i-0", VPCID: "vpc-0", AZ: "us-west-2a", Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", "")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func eniXML(change ...string) string {
	const good = `<networkInterfaceId>eni-0a</networkInterfaceId><subnetId>subnet-0a</subnetId><macAddress>02:00:00:00:00:01</macAddress><privateIpAddress>10.0.0.4</privateIpAddress>` +
		`<attachment><attachmentId>eni-attach-0a</attachmentId><deviceIndex>1</deviceIndex><networkCardIndex>0</networkCardIndex></attachment>` +
		`<privateIpAddressesSet><item><privateIpAddress>10.0.0.4</privateIpAddress><primary>true</primary></item><item><privateIpAddress>10.0.0.5</privateIpAddress></item></privateIpAddressesSet>` +
		`<ipv4PrefixSet><item><ipv4Prefix>10.0.0.16/28</ipv4Prefix></item></ipv4PrefixSet>`
	return `<DescribeNetworkInterfacesResponse><networkInterfaceSet><item>` + strings.NewReplacer(change...).Replace(good) + `</item></networkInterfaceSet></DescribeNetworkInterfacesResponse>`
}

// Invalid values are errors that name the field.
func TestAnswers_ENI(t *testing.T) {
	t.Parallel()
	tests := []struct{ from, to, field string }{
		{"eni-0a<", "eni-0a b<", "networkInterfaceId"}, {"eni-0a<", "i-0a<", "networkInterfaceId"}, {"subnet-0a", "subnet-", "subnetId"},
		{"02:00:00:00:00:01", "02:00", "macAddress"}, {">10.0.0.5<", ">10.0.0<", "privateIpAddressesSet"}, {">10.0.0.5<", ">::1<", "privateIpAddressesSet"},
		{"10.0.0.16/28", "10.0.0.17/28", "ipv4PrefixSet"}, {"10.0.0.16/28", "10.0.0.0/24", "ipv4PrefixSet"}, {"<deviceIndex>1<", "<deviceIndex>-1<", "attachment.deviceIndex"},
		{"<networkCardIndex>0<", "<networkCardIndex>5000<", "attachment.networkCardIndex"},
	}
	if _, err := answering(t, eniXML()).DescribeENIs(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		_, err := answering(t, eniXML(tt.from, tt.to)).DescribeENIs(t.Context(), nil)
		var e *vpcapi.AnswerError
		if !errors.As(err, &e) || e.Field != tt.field {
			t.Errorf("%s for %s: %v, want an error about %s", tt.to, tt.from, err, tt.field)
		}
	}
}

func TestAnswers_OutsideTheSubnet(t *testing.T) {
	t.Parallel()
	const subnet = `<subnetSet><item><subnetId>subnet-0a</subnetId><cidrBlock>10.0.0.0/24</cidrBlock></item></subnetSet>`
	body := strings.Replace(eniXML("10.0.0.5", "10.0.1.5"), "</networkInterfaceSet>", "</networkInterfaceSet>"+subnet, 1)
	c := answering(t, body)
	if _, err := c.DescribeENIs(t.Context(), nil); err != nil {
		t.Fatalf("before the subnet is known: %v", err)
	}
	if _, err := c.DescribeSubnets(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := c.DescribeENIs(t.Context(), nil)
	var e *vpcapi.AnswerError
	if !errors.As(err, &e) || e.Value != "10.0.1.5" || !strings.Contains(e.Want, "10.0.0.0/24") {
		t.Errorf("%v, want an error about 10.0.1.5 and its subnet", err)
	}
}

// Addresses that no pod can have are refused even if the subnet is unknown.
func TestAnswers_NotForHosts(t *testing.T) {
	t.Parallel()
	assigned := func(set, item string) string { return "<R><" + set + "><item>" + item + "</item></" + set + "></R>" }
	for _, address := range []string{"0.0.0.0", "0.1.2.3", "127.0.0.1", "169.254.169.254", "224.0.0.1", "239.1.2.3", "255.255.255.255"} {
		_, err := answering(t, eniXML("10.0.0.5", address)).DescribeENIs(t.Context(), nil)
		wantRefused(t, err, address)
		_, err = answering(t, assigned("assignedPrivateIpAddressesSet", "<privateIpAddress>"+address+"</privateIpAddress>")).AssignIPs(t.Context(), "eni-0a", 1)
		wantRefused(t, err, address)
	}
	for _, prefix := range []string{"0.0.0.0/28", "127.0.0.0/28", "169.254.169.240/28", "224.0.0.16/28"} {
		_, err := answering(t, eniXML("10.0.0.16/28", prefix)).DescribeENIs(t.Context(), nil)
		wantRefused(t, err, prefix)
		_, err = answering(t, assigned("assignedIpv4PrefixSet", "<ipv4Prefix>"+prefix+"</ipv4Prefix>")).AssignPrefixes(t.Context(), "eni-0a", 1)
		wantRefused(t, err, prefix)
	}
	six := func(set, item string) string {
		return eniXML("<ipv4PrefixSet>", "<"+set+"><item>"+item+"</item></"+set+"><ipv4PrefixSet>")
	}
	for _, address := range []string{"::", "::1", "fe80::1", "ff02::1"} {
		_, err := answering(t, six("ipv6AddressesSet", "<ipv6Address>"+address+"</ipv6Address>")).DescribeENIs(t.Context(), nil)
		wantRefused(t, err, address)
	}
	for _, prefix := range []string{"::/80", "fe80::/80", "ff02::/80"} {
		_, err := answering(t, six("ipv6PrefixSet", "<ipv6Prefix>"+prefix+"</ipv6Prefix>")).DescribeENIs(t.Context(), nil)
		wantRefused(t, err, prefix)
	}
	if _, err := answering(t, six("ipv6AddressesSet", "<ipv6Address>fd00::1</ipv6Address>")).DescribeENIs(t.Context(), nil); err != nil {
		t.Errorf("a unique local address: %v", err)
	}
}

// TestAnswers_PrimaryIPv6: EC2 lists an ENI's addresses in any order, and marks the primary
// one only if someone made it primary.
func TestAnswers_PrimaryIPv6(t *testing.T) {
	t.Parallel()
	const four, five = "<item><ipv6Address>fd00::4</ipv6Address></item>", "<item><ipv6Address>fd00::5</ipv6Address></item>"
	marked := func(item string) string {
		return strings.Replace(item, "</item>", "<isPrimaryIpv6>true</isPrimaryIpv6></item>", 1)
	}
	for items, want := range map[string]string{
		four + five: "fd00::4", five + four: "fd00::4", marked(five) + four: "fd00::5", four + marked(five): "fd00::5",
	} {
		set := "<ipv6AddressesSet>" + items + "</ipv6AddressesSet>"
		enis, err := answering(t, eniXML("<ipv4PrefixSet>", set+"<ipv4PrefixSet>")).DescribeENIs(t.Context(), nil)
		if err != nil || len(enis) != 1 || enis[0].PrimaryOf(true).String() != want {
			t.Errorf("%s: %v, %v, want %s", items, enis, err, want)
		}
	}
}

func wantRefused(t *testing.T, err error, value string) {
	t.Helper()
	var e *vpcapi.AnswerError
	if !errors.As(err, &e) || e.Value != value {
		t.Errorf("%s: %v, want it refused", value, err)
	}
}

func TestAnswers_Assign(t *testing.T) {
	t.Parallel()
	address := func(a string) string { return "<item><privateIpAddress>" + a + "</privateIpAddress></item>" }
	set := func(items ...string) string {
		return `<R><assignedPrivateIpAddressesSet>` + strings.Join(items, "") + `</assignedPrivateIpAddressesSet></R>`
	}
	for name, body := range map[string]string{"more than asked": set(address("10.0.0.1"), address("10.0.0.2"), address("10.0.0.3")), "twice": set(address("10.0.0.1"), address("10.0.0.1")), "no address": set(address("x"))} {
		_, err := answering(t, body).AssignIPs(t.Context(), "eni-0a", 2)
		var e *vpcapi.AnswerError
		if !errors.As(err, &e) || e.Field != "assignedPrivateIpAddressesSet" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnswers_Create(t *testing.T) {
	t.Parallel()
	body := func(change ...string) string {
		return strings.NewReplacer("<DescribeNetworkInterfacesResponse><networkInterfaceSet><item>", "<R><networkInterface>", "</item></networkInterfaceSet></DescribeNetworkInterfacesResponse>", "</networkInterface></R>").Replace(eniXML(change...))
	}
	if _, err := answering(t, body()).CreateENI(t.Context(), vpcapi.CreateENI{SubnetID: "subnet-0a", IPs: 1, Prefixes: 1}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		body, field string
		ips         int
	}{{`<R/>`, "networkInterface", 1}, {body("subnet-0a", "subnet-0b"), "subnetId", 1}, {body("<privateIpAddress>10.0.0.4</privateIpAddress><attach", "<attach"), "privateIpAddress", 1}, {body(), "privateIpAddressesSet", 0}}
	for _, tt := range tests {
		_, err := answering(t, tt.body).CreateENI(t.Context(), vpcapi.CreateENI{SubnetID: "subnet-0a", IPs: tt.ips, Prefixes: 1})
		var e *vpcapi.AnswerError
		if !errors.As(err, &e) || e.Field != tt.field {
			t.Errorf("%v, want an error about %s", err, tt.field)
		}
	}
}

// A page token that never ends is an error.
func TestAnswers_EndlessPages(t *testing.T) {
	t.Parallel()
	_, err := answering(t, "<R><subnetSet/><nextToken>again</nextToken></R>").DescribeSubnets(t.Context())
	var e *vpcapi.AnswerError
	if !errors.As(err, &e) || e.Field != "nextToken" {
		t.Errorf("%v, want an error about nextToken", err)
	}
}
