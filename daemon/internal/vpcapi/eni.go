package vpcapi

import (
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"cnictl/daemon/ipam"
)

// ENI is a network interface as EC2 describes it.
type ENI struct {
	ID            ipam.ENIID
	MAC           string // lower-case colon form
	Status        string // "available", "in-use", "pending", …
	InterfaceType string // "interface", "trunk", "efa", "efa-only", "branch", …
	Description   string
	SubnetID      string

	AttachmentID        string // "" while not attached
	AttachmentStatus    string // "attaching", "attached", "detaching", ""
	InstanceID          string
	Card, Device        int
	DeleteOnTermination bool

	PrimaryIP       netip.Addr // zero: has none (efa-only)
	SecondaryIPs    []netip.Addr
	Prefixes        []netip.Prefix // /28
	IPv6s           []netip.Addr
	IPv6Prefixes    []netip.Prefix // /80
	SecurityGroups  []string
	SourceDestCheck bool
	ConnTrack       ConnTrack
	Tags            map[string]string
}

// ConnTrack holds connection tracking timeouts that somebody set; zero: EC2's default.
type ConnTrack struct {
	TCPEstablished, UDPStream, UDP time.Duration
}

// Trunk reports whether the ENI carries branch ENIs.
func (e ENI) Trunk() bool { return e.InterfaceType == string(types.NetworkInterfaceTypeTrunk) }

// EFA reports whether the ENI is an elastic fabric adapter with addresses.
func (e ENI) EFA() bool { return e.InterfaceType == string(types.NetworkInterfaceTypeEfa) }

// EFAOnly reports whether the ENI is an elastic fabric adapter without addresses.
func (e ENI) EFAOnly() bool { return e.InterfaceType == "efa-only" }

// CIDRs lists what pods can use: secondary addresses as /32, then prefixes.
func (e ENI) CIDRs() []netip.Prefix {
	var out []netip.Prefix
	for _, a := range e.SecondaryIPs {
		out = append(out, netip.PrefixFrom(a, a.BitLen()))
	}
	return append(out, e.Prefixes...)
}

// parseENI checks a described or created ENI. within is its subnet's CIDR, zero when
// that is not known.
func parseENI(in *types.NetworkInterface, within func(subnetID string) netip.Prefix) (ENI, error) {
	e := ENI{ID: ipam.ENIID(aws.ToString(in.NetworkInterfaceId)), Status: string(in.Status), InterfaceType: string(in.InterfaceType),
		Description: aws.ToString(in.Description), SubnetID: aws.ToString(in.SubnetId), SourceDestCheck: aws.ToBool(in.SourceDestCheck),
		Tags: make(map[string]string, len(in.TagSet)), ConnTrack: parseConnTrack(in.ConnectionTrackingConfiguration)}
	if err := checkID("networkInterfaceId", "eni-", string(e.ID)); err != nil {
		return ENI{}, err
	}
	if err := checkID("subnetId", "subnet-", e.SubnetID); err != nil {
		return ENI{}, err
	}
	mac, err := net.ParseMAC(aws.ToString(in.MacAddress))
	if err != nil || len(mac) != 6 {
		return ENI{}, &AnswerError{"macAddress", aws.ToString(in.MacAddress), "six bytes in hexadecimal"}
	}
	e.MAC = mac.String()
	for _, g := range in.Groups {
		e.SecurityGroups = append(e.SecurityGroups, aws.ToString(g.GroupId))
	}
	for _, t := range in.TagSet {
		e.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	if err := e.parseAttachment(in.Attachment); err != nil {
		return ENI{}, err
	}
	if err := e.parseAddresses(in, within(e.SubnetID)); err != nil {
		return ENI{}, err
	}
	return e, nil
}

const maxIndex = 1000 // of devices and network cards; EC2 has far fewer

func (e *ENI) parseAttachment(a *types.NetworkInterfaceAttachment) error {
	if a == nil {
		return nil
	}
	e.AttachmentID, e.AttachmentStatus, e.InstanceID = aws.ToString(a.AttachmentId), string(a.Status), aws.ToString(a.InstanceId)
	e.Card, e.Device = int(aws.ToInt32(a.NetworkCardIndex)), int(aws.ToInt32(a.DeviceIndex))
	e.DeleteOnTermination = aws.ToBool(a.DeleteOnTermination)
	if e.Device < 0 || e.Device > maxIndex {
		return &AnswerError{"attachment.deviceIndex", strconv.Itoa(e.Device), "0 to " + strconv.Itoa(maxIndex)}
	}
	if e.Card < 0 || e.Card > maxIndex {
		return &AnswerError{"attachment.networkCardIndex", strconv.Itoa(e.Card), "0 to " + strconv.Itoa(maxIndex)}
	}
	return nil
}

func (e *ENI) parseAddresses(in *types.NetworkInterface, within netip.Prefix) error {
	var err error
	if s := aws.ToString(in.PrivateIpAddress); s != "" {
		if e.PrimaryIP, err = parseIPv4("privateIpAddress", s, within); err != nil {
			return err
		}
	}
	var secondary, prefixes, ipv6s, prefixes6 []string
	for _, a := range in.PrivateIpAddresses {
		if !aws.ToBool(a.Primary) {
			secondary = append(secondary, aws.ToString(a.PrivateIpAddress))
		}
	}
	for _, p := range in.Ipv4Prefixes {
		prefixes = append(prefixes, aws.ToString(p.Ipv4Prefix))
	}
	for _, a := range in.Ipv6Addresses {
		ipv6s = append(ipv6s, aws.ToString(a.Ipv6Address))
	}
	for _, p := range in.Ipv6Prefixes {
		prefixes6 = append(prefixes6, aws.ToString(p.Ipv6Prefix))
	}
	if e.SecondaryIPs, err = parseIPv4s("privateIpAddressesSet", secondary, maxAddresses, within); err != nil {
		return err
	}
	if e.Prefixes, err = parsePrefixes4("ipv4PrefixSet", prefixes, maxAddresses, within); err != nil {
		return err
	}
	if e.IPv6s, err = parseAll("ipv6AddressesSet", ipv6s, maxAddresses, func(s string) (netip.Addr, error) { return parseIPv6("ipv6AddressesSet", s) }); err != nil {
		return err
	}
	e.IPv6Prefixes, err = parseAll("ipv6PrefixSet", prefixes6, maxAddresses, func(s string) (netip.Prefix, error) { return parsePrefix6("ipv6PrefixSet", s) })
	return err
}

func parseIPv4s(field string, in []string, max int, within netip.Prefix) ([]netip.Addr, error) {
	return parseAll(field, in, max, func(s string) (netip.Addr, error) { return parseIPv4(field, s, within) })
}

func parsePrefixes4(field string, in []string, max int, within netip.Prefix) ([]netip.Prefix, error) {
	return parseAll(field, in, max, func(s string) (netip.Prefix, error) { return parsePrefix4(field, s, within) })
}

func parseConnTrack(c *types.ConnectionTrackingConfiguration) ConnTrack {
	if c == nil {
		return ConnTrack{}
	}
	s := func(n *int32) time.Duration { return time.Duration(aws.ToInt32(n)) * time.Second }
	return ConnTrack{s(c.TcpEstablishedTimeout), s(c.UdpStreamTimeout), s(c.UdpTimeout)}
}

func (c ConnTrack) request() *types.ConnectionTrackingSpecificationRequest {
	if c == (ConnTrack{}) {
		return nil
	}
	s := func(d time.Duration) *int32 {
		if d == 0 {
			return nil
		}
		return aws.Int32(int32(d / time.Second))
	}
	return &types.ConnectionTrackingSpecificationRequest{TcpEstablishedTimeout: s(c.TCPEstablished), UdpStreamTimeout: s(c.UDPStream), UdpTimeout: s(c.UDP)}
}
