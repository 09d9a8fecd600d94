package fakeaws

import (
	"encoding/xml"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// The members of EC2's answers, with the names that the SDKs read.

type xmlTag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func tagSet(tags map[string]string) []xmlTag {
	var out []xmlTag
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, xmlTag{k, tags[k]})
	}
	return out
}

type xmlGroup struct {
	ID   string `xml:"groupId"`
	Name string `xml:"groupName"`
}

type xmlPrivateIP struct {
	Address string `xml:"privateIpAddress"`
	Primary bool   `xml:"primary"`
}

type xmlIPv6 struct {
	Address string `xml:"ipv6Address"`
}

type xmlPrefix4 struct {
	Prefix string `xml:"ipv4Prefix"`
}

type xmlPrefix6 struct {
	Prefix string `xml:"ipv6Prefix"`
}

type xmlConnTrack struct {
	TCP int `xml:"tcpEstablishedTimeout,omitempty"`
	UDS int `xml:"udpStreamTimeout,omitempty"`
	UDP int `xml:"udpTimeout,omitempty"`
}

func connTrack(c ConnTrack) *xmlConnTrack {
	if c == (ConnTrack{}) {
		return nil
	}
	s := func(d time.Duration) int { return int(d / time.Second) }
	return &xmlConnTrack{s(c.TCPEstablished), s(c.UDPStream), s(c.UDP)}
}

type xmlAttachment struct {
	ID                  string `xml:"attachmentId"`
	InstanceID          string `xml:"instanceId,omitempty"`
	InstanceOwner       string `xml:"instanceOwnerId,omitempty"`
	Device              int    `xml:"deviceIndex"`
	Card                int    `xml:"networkCardIndex"`
	Status              string `xml:"status"`
	DeleteOnTermination bool   `xml:"deleteOnTermination"`
}

type xmlENI struct {
	ID              string         `xml:"networkInterfaceId"`
	SubnetID        string         `xml:"subnetId"`
	VPCID           string         `xml:"vpcId"`
	AZ              string         `xml:"availabilityZone"`
	Description     string         `xml:"description"`
	Owner           string         `xml:"ownerId"`
	Status          string         `xml:"status"`
	Type            string         `xml:"interfaceType"`
	MAC             string         `xml:"macAddress"`
	PrivateIP       string         `xml:"privateIpAddress,omitempty"`
	IPv6            string         `xml:"ipv6Address,omitempty"`
	SourceDestCheck bool           `xml:"sourceDestCheck"`
	Managed         bool           `xml:"requesterManaged"`
	Groups          []xmlGroup     `xml:"groupSet>item"`
	Attachment      *xmlAttachment `xml:"attachment"`
	ConnTrack       *xmlConnTrack  `xml:"connectionTrackingConfiguration"`
	IPs             []xmlPrivateIP `xml:"privateIpAddressesSet>item"`
	Prefixes        []xmlPrefix4   `xml:"ipv4PrefixSet>item"`
	IPv6s           []xmlIPv6      `xml:"ipv6AddressesSet>item"`
	IPv6Prefixes    []xmlPrefix6   `xml:"ipv6PrefixSet>item"`
	// DescribeNetworkInterfaces has tagSet; the interfaces of an instance have none.
	Tags []xmlTag `xml:"tagSet>item"`
}

// xmlOf renders an ENI; the caller holds mu.
func (w *World) xmlOf(e *ENI) xmlENI {
	x := xmlENI{ID: e.ID, SubnetID: e.SubnetID, VPCID: e.VPCID, AZ: e.AZ, Description: e.Description, Owner: w.opts.AccountID,
		Status: e.Status, Type: e.Type, MAC: e.MAC, SourceDestCheck: e.SourceDestCheck, ConnTrack: connTrack(e.ConnTrack), Tags: tagSet(e.Tags)}
	for _, g := range e.SecurityGroups {
		x.Groups = append(x.Groups, xmlGroup{g, w.groups[g].Name})
	}
	if a := e.Attachment; a.ID != "" {
		x.Attachment = &xmlAttachment{ID: a.ID, InstanceID: a.InstanceID, InstanceOwner: w.opts.AccountID, Device: a.Device, Card: a.Card, Status: a.Status, DeleteOnTermination: a.DeleteOnTermination}
	}
	if e.PrimaryIP.IsValid() {
		x.PrivateIP = e.PrimaryIP.String()
		x.IPs = append(x.IPs, xmlPrivateIP{x.PrivateIP, true})
	}
	for _, a := range e.SecondaryIPs {
		x.IPs = append(x.IPs, xmlPrivateIP{a.String(), false})
	}
	x.Prefixes, x.IPv6Prefixes = prefixes4(e.Prefixes), prefixes6(e.IPv6Prefixes)
	for _, a := range e.IPv6s {
		x.IPv6s = append(x.IPv6s, xmlIPv6{a.String()})
	}
	if len(e.IPv6s) > 0 {
		x.IPv6 = e.IPv6s[0].String()
	}
	return x
}

func prefixes4(ps []netip.Prefix) []xmlPrefix4 {
	var out []xmlPrefix4
	for _, p := range ps {
		out = append(out, xmlPrefix4{p.String()})
	}
	return out
}

func prefixes6(ps []netip.Prefix) []xmlPrefix6 {
	var out []xmlPrefix6
	for _, p := range ps {
		out = append(out, xmlPrefix6{p.String()})
	}
	return out
}

// members are an answer's elements in order.
type members []member

type member struct {
	name  string
	value any
}

func (m members) MarshalXML(enc *xml.Encoder, _ xml.StartElement) error {
	for _, e := range m {
		if err := enc.EncodeElement(e.value, xml.StartElement{Name: xml.Name{Local: e.name}}); err != nil {
			return err
		}
	}
	return nil
}

// itemSet is a list in EC2's format: <item> elements.
type itemSet[T any] struct {
	Items []T `xml:"item"`
}

func items[T any](all []T) itemSet[T] { return itemSet[T]{all} }

// ok answers actions that have no result.
func ok(err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return members{{"return", true}}, nil
}
