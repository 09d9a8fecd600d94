package vpcapi

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// ENI is a network interface as EC2 describes it.
type ENI = resync.ENI

// ConnTrack holds the configured connection tracking timeouts; zero: EC2's default.
type ConnTrack = resync.ConnTrack

// parseENI checks a described or created ENI. within returns its subnet's CIDRs, zero if
// unknown.
func parseENI(in *types.NetworkInterface, within func(subnetID string) cidrs) (ENI, error) {
	e := ENI{ID: ipam.ENIID(aws.ToString(in.NetworkInterfaceId)), Status: string(in.Status), InterfaceType: string(in.InterfaceType),
		Description: aws.ToString(in.Description), SubnetID: aws.ToString(in.SubnetId), SourceDestCheck: aws.ToBool(in.SourceDestCheck),
		ConnTrack: parseConnTrack(in.ConnectionTrackingConfiguration)}
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
	if e.SecurityGroups, err = parseGroups(in.Groups); err != nil {
		return ENI{}, err
	}
	if e.Tags, err = parseTags(in.TagSet); err != nil {
		return ENI{}, err
	}
	if err := parseAttachment(&e, in.Attachment); err != nil {
		return ENI{}, err
	}
	if err := parseAddresses(&e, in, within(e.SubnetID)); err != nil {
		return ENI{}, err
	}
	return e, nil
}

const maxIndex = 1000 // of devices and network cards; EC2 has far fewer

func parseAttachment(e *ENI, a *types.NetworkInterfaceAttachment) error {
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

func parseAddresses(e *ENI, in *types.NetworkInterface, within cidrs) error {
	var err error
	if s := aws.ToString(in.PrivateIpAddress); s != "" {
		if e.PrimaryIP, err = parseIPv4("privateIpAddress", s, within.v4); err != nil {
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
	if e.SecondaryIPs, err = parseIPv4s("privateIpAddressesSet", secondary, maxAddresses, within.v4); err != nil {
		return err
	}
	if e.Prefixes, err = parsePrefixes4("ipv4PrefixSet", prefixes, maxAddresses, within.v4); err != nil {
		return err
	}
	if e.IPv6s, err = parseIPv6s("ipv6AddressesSet", ipv6s, maxAddresses, within.v6); err != nil {
		return err
	}
	if i := slices.IndexFunc(in.Ipv6Addresses, func(a types.NetworkInterfaceIpv6Address) bool { return aws.ToBool(a.IsPrimaryIpv6) }); i >= 0 {
		e.PrimaryIPv6 = e.IPv6s[i]
	}
	e.IPv6Prefixes, err = parsePrefixes6("ipv6PrefixSet", prefixes6, maxAddresses, within.v6)
	return err
}

func parseIPv6s(field string, in []string, max int, within netip.Prefix) ([]netip.Addr, error) {
	return parseAll(field, in, max, func(s string) (netip.Addr, error) { return parseIPv6(field, s, within) })
}

func parsePrefixes6(field string, in []string, max int, within netip.Prefix) ([]netip.Prefix, error) {
	return parseAll(field, in, max, func(s string) (netip.Prefix, error) { return parsePrefix6(field, s, within) })
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
	return ConnTrack{TCPEstablished: s(c.TcpEstablishedTimeout), UDPStream: s(c.UdpStreamTimeout), UDP: s(c.UdpTimeout)}
}

func connTrackRequest(c ConnTrack) *types.ConnectionTrackingSpecificationRequest {
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
