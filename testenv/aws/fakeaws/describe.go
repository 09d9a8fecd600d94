package fakeaws

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"cnictl/capacity/limits"
	"cnictl/testenv/aws/ec2model"
)

// The Describe actions.

// query holds what all Describe actions read.
type query struct {
	ids     []string
	filters filters
	page    paging
}

func readQuery(f *form, kind, idParameter string) query {
	q := query{filters: readFilters(f)}
	if idParameter != "" {
		q.ids = f.list(idParameter)
	}
	q.page = readPaging(f, kind, len(q.ids) > 0)
	return q
}

// answer renders a page of the matching resources.
func answer[R, X any](q query, set string, all []R, attributesOf func(R) attributes, render func(R) X) (any, error) {
	var found []R
	for _, r := range all {
		yes, err := q.filters.match(attributesOf(r))
		if err != nil {
			return nil, err
		}
		if yes {
			found = append(found, r)
		}
	}
	page, next := cut(q.page, found)
	var xs []X
	for _, r := range page {
		xs = append(xs, render(r))
	}
	m := members{{set, items(xs)}}
	if next != "" {
		m = append(m, member{"nextToken", next})
	}
	return m, nil
}

// chosen looks up the named resources, or lists all by id.
func chosen[R any](ids []string, all map[string]R, missing func(id string) error) ([]R, error) {
	if len(ids) == 0 {
		var out []R
		for _, id := range slices.Sorted(maps.Keys(all)) {
			out = append(out, all[id])
		}
		return out, nil
	}
	var out []R
	for _, id := range ids {
		r, there := all[id]
		if !there {
			return nil, missing(id)
		}
		out = append(out, r)
	}
	return out, nil
}

func describeNetworkInterfaces(f *form) func(*World) (any, error) {
	q := readQuery(f, "eni", "NetworkInterfaceId")
	f.boolean("IncludeManagedResources")
	return func(w *World) (any, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if err := q.filters.check(eniAttributes(&ENI{Tags: map[string]string{}})); err != nil {
			return nil, err
		}
		listed := w.listed()
		all, err := findENIs(listed, q.ids)
		if err != nil {
			return nil, err
		}
		if len(q.ids) == 0 {
			all, _ = chosen(nil, listed, nil)
		}
		return answer(q, "networkInterfaceSet", all, eniAttributes, w.xmlOf)
	}
}

func eniAttributes(e *ENI) attributes {
	v := map[string][]string{
		"network-interface-id": {e.ID}, "status": {e.Status}, "vpc-id": {e.VPCID}, "subnet-id": {e.SubnetID},
		"availability-zone": {e.AZ}, "description": {e.Description}, "mac-address": {e.MAC}, "interface-type": {e.Type},
		"group-id": e.SecurityGroups, "source-dest-check": {strconv.FormatBool(e.SourceDestCheck)},
		"private-ip-address": nil, "addresses.private-ip-address": nil,
		"attachment.attachment-id": nil, "attachment.instance-id": nil, "attachment.status": nil,
		"attachment.device-index": nil, "attachment.network-card-index": nil, "attachment.delete-on-termination": nil,
	}
	if e.PrimaryIP.IsValid() {
		v["private-ip-address"] = []string{e.PrimaryIP.String()}
		v["addresses.private-ip-address"] = []string{e.PrimaryIP.String()}
	}
	for _, a := range e.SecondaryIPs {
		v["addresses.private-ip-address"] = append(v["addresses.private-ip-address"], a.String())
	}
	if a := e.Attachment; a.ID != "" {
		v["attachment.attachment-id"], v["attachment.instance-id"] = []string{a.ID}, []string{a.InstanceID}
		v["attachment.status"] = []string{a.Status}
		v["attachment.device-index"] = []string{strconv.Itoa(a.Device)}
		v["attachment.network-card-index"] = []string{strconv.Itoa(a.Card)}
		v["attachment.delete-on-termination"] = []string{strconv.FormatBool(a.DeleteOnTermination)}
	}
	return attributes{v, e.Tags}
}

func describeSubnets(f *form) func(*World) (any, error) {
	q := readQuery(f, "subnet", "SubnetId")
	return func(w *World) (any, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if err := q.filters.check(subnetAttributes(&subnet{Subnet: Subnet{Tags: map[string]string{}}, pool: &ec2model.Space{}})); err != nil {
			return nil, err
		}
		all, err := chosen(q.ids, w.subnets, noSubnet)
		if err != nil {
			return nil, err
		}
		return answer(q, "subnetSet", all, subnetAttributes, w.xmlSubnet)
	}
}

func subnetAttributes(s *subnet) attributes {
	return attributes{map[string][]string{
		"subnet-id": {s.ID}, "vpc-id": {s.VPCID}, "availability-zone": {s.AZ}, "cidr-block": {valid(s.CIDR)}, "ipv6-native": {strconv.FormatBool(!s.CIDR.IsValid())}, "state": {"available"},
		"available-ip-address-count": {strconv.Itoa(s.pool.Free())},
	}, s.Tags}
}

type xmlSubnet struct {
	ID      string        `xml:"subnetId"`
	ARN     string        `xml:"subnetArn"`
	State   string        `xml:"state"`
	VPCID   string        `xml:"vpcId"`
	AZ      string        `xml:"availabilityZone"`
	CIDR    string        `xml:"cidrBlock,omitempty"`
	Native  bool          `xml:"ipv6Native"`
	Assign  bool          `xml:"assignIpv6AddressOnCreation"`
	Free    int           `xml:"availableIpAddressCount"`
	Owner   string        `xml:"ownerId"`
	IPv6Set []xmlIPv6CIDR `xml:"ipv6CidrBlockAssociationSet>item"`
	Tags    []xmlTag      `xml:"tagSet>item"`
}

type xmlIPv6CIDR struct {
	CIDR  string `xml:"ipv6CidrBlock"`
	State string `xml:"ipv6CidrBlockState>state"`
}

func (w *World) xmlSubnet(s *subnet) xmlSubnet {
	x := xmlSubnet{ID: s.ID, ARN: "arn:aws:ec2:" + w.opts.Region + ":" + w.opts.AccountID + ":subnet/" + s.ID, State: "available", VPCID: s.VPCID,
		AZ: s.AZ, CIDR: valid(s.CIDR), Native: !s.CIDR.IsValid(), Assign: s.AssignIPv6, Free: s.pool.Free(), Owner: w.opts.AccountID, Tags: tagSet(s.Tags)}
	if s.IPv6CIDR.IsValid() {
		x.IPv6Set = []xmlIPv6CIDR{{s.IPv6CIDR.String(), "associated"}}
	}
	return x
}

func describeSecurityGroups(f *form) func(*World) (any, error) {
	q := readQuery(f, "sg", "GroupId")
	return func(w *World) (any, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		of := func(g *SecurityGroup) attributes {
			return attributes{values: map[string][]string{"group-id": {g.ID}, "group-name": {g.Name}, "vpc-id": {g.VPCID}}}
		}
		if err := q.filters.check(of(&SecurityGroup{})); err != nil {
			return nil, err
		}
		all, err := chosen(q.ids, w.groups, noGroup)
		if err != nil {
			return nil, err
		}
		type xmlSecurityGroup struct {
			ID    string `xml:"groupId"`
			Name  string `xml:"groupName"`
			Text  string `xml:"groupDescription"`
			VPCID string `xml:"vpcId"`
			Owner string `xml:"ownerId"`
			// A new group allows all egress; the VPC's default group also ingress from itself.
			In  []xmlPermission `xml:"ipPermissions>item"`
			Out []xmlPermission `xml:"ipPermissionsEgress>item"`
		}
		return answer(q, "securityGroupInfo", all, of, func(g *SecurityGroup) xmlSecurityGroup {
			x := xmlSecurityGroup{ID: g.ID, Name: g.Name, Text: g.Name, VPCID: g.VPCID, Owner: w.opts.AccountID, Out: []xmlPermission{{Protocol: "-1", Ranges: []xmlRange{{"0.0.0.0/0"}}}}}
			if g.Name == "default" {
				x.In = []xmlPermission{{Protocol: "-1", Groups: []xmlGroup{{ID: g.ID}}}}
			}
			return x
		})
	}
}

type xmlPermission struct {
	Protocol string     `xml:"ipProtocol"`
	Groups   []xmlGroup `xml:"groups>item"`
	Ranges   []xmlRange `xml:"ipRanges>item"`
}

type xmlRange struct {
	CIDR string `xml:"cidrIp"`
}

func describeTags(f *form) func(*World) (any, error) {
	q := readQuery(f, "tag", "")
	type tag struct {
		Resource string `xml:"resourceId"`
		Type     string `xml:"resourceType"`
		Key      string `xml:"key"`
		Value    string `xml:"value"`
	}
	of := func(t tag) attributes {
		return attributes{values: map[string][]string{"resource-id": {t.Resource}, "resource-type": {t.Type}, "key": {t.Key}, "value": {t.Value}}}
	}
	return func(w *World) (any, error) {
		if err := q.filters.check(of(tag{})); err != nil {
			return nil, err
		}
		var all []tag
		add := func(kind, id string, tags map[string]string) {
			for k, v := range tags {
				all = append(all, tag{id, kind, k, v})
			}
		}
		s := w.Snapshot()
		for _, e := range s.ENIs {
			add("network-interface", e.ID, e.Tags)
		}
		for _, n := range s.Subnets {
			add("subnet", n.ID, n.Tags)
		}
		for _, i := range s.Instances {
			add("instance", i.ID, i.Tags)
		}
		slices.SortFunc(all, func(a, b tag) int { return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Key, b.Key)) })
		return answer(q, "tagSet", all, of, func(t tag) tag { return t })
	}
}

type xmlInstance struct {
	ID         string     `xml:"instanceId"`
	Type       string     `xml:"instanceType"`
	State      xmlState   `xml:"instanceState"`
	AZ         string     `xml:"placement>availabilityZone"`
	SubnetID   string     `xml:"subnetId"`
	VPCID      string     `xml:"vpcId"`
	PrivateIP  string     `xml:"privateIpAddress"`
	Launched   string     `xml:"launchTime"`
	Groups     []xmlGroup `xml:"groupSet>item"`
	Interfaces []xmlENI   `xml:"networkInterfaceSet>item"`
	Tags       []xmlTag   `xml:"tagSet>item"`
	Profile    string     `xml:"iamInstanceProfile>arn"`
	Metadata   struct {
		Tokens   string `xml:"httpTokens"`
		Endpoint string `xml:"httpEndpoint"`
		Hops     int    `xml:"httpPutResponseHopLimit"`
	} `xml:"metadataOptions"`
}

type xmlState struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

type xmlReservation struct {
	ID        string        `xml:"reservationId"`
	Owner     string        `xml:"ownerId"`
	Instances []xmlInstance `xml:"instancesSet>item"`
}

func describeInstances(f *form) func(*World) (any, error) {
	q := readQuery(f, "instance", "InstanceId")
	f.boolean("IncludeManagedResources")
	return func(w *World) (any, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		of := func(i *instance) attributes {
			return attributes{map[string][]string{
				"instance-id": {i.ID}, "instance-type": {i.Type}, "vpc-id": {i.VPCID}, "subnet-id": {i.SubnetID},
				"availability-zone": {i.AZ}, "private-ip-address": {i.PrimaryIP.String()}, "instance-state-name": {"running"},
			}, i.Tags}
		}
		if err := q.filters.check(of(&instance{Instance: Instance{Tags: map[string]string{}}})); err != nil {
			return nil, err
		}
		all, err := chosen(q.ids, w.instances, noInstance)
		if err != nil {
			return nil, err
		}
		return answer(q, "reservationSet", all, of, w.xmlReservation)
	}
}

func (w *World) xmlReservation(i *instance) xmlReservation {
	x := xmlInstance{ID: i.ID, Type: i.Type, State: xmlState{16, "running"}, AZ: i.AZ, SubnetID: i.SubnetID, VPCID: i.VPCID,
		PrivateIP: i.PrimaryIP.String(), Launched: i.started.Format(time.RFC3339), Tags: tagSet(i.Tags), Profile: w.iamARN("instance-profile", i.Role)}
	x.Metadata.Tokens, x.Metadata.Endpoint, x.Metadata.Hops = "required", "enabled", 2
	for _, e := range attachedIn(w.listed(), i.ID) {
		n := w.xmlOf(e)
		n.Tags = nil // EC2 shows no tags on the interfaces of an instance
		n.Attachment.InstanceID, n.Attachment.InstanceOwner = "", ""
		x.Interfaces = append(x.Interfaces, n)
		if e.Primary() {
			x.Groups = n.Groups
		}
	}
	return xmlReservation{ID: "r-" + i.ID[len("i-"):], Owner: w.opts.AccountID, Instances: []xmlInstance{x}}
}

func describeInstanceTypes(f *form) func(*World) (any, error) {
	q := readQuery(f, "type", "InstanceType")
	return func(w *World) (any, error) {
		of := func(l limits.Instance) attributes {
			return attributes{values: map[string][]string{"instance-type": {l.Type}, "bare-metal": {strconv.FormatBool(l.BareMetal)}, "hypervisor": {l.Hypervisor}}}
		}
		if err := q.filters.check(of(limits.Instance{})); err != nil {
			return nil, err
		}
		all, err := w.knownTypes(q.ids)
		if err != nil {
			return nil, err
		}
		return answer(q, "instanceTypeSet", all, of, renderType)
	}
}

func (w *World) knownTypes(names []string) ([]limits.Instance, error) {
	if len(names) == 0 {
		names = slices.Sorted(limits.Types())
		for t := range w.types {
			if !slices.Contains(names, t) {
				names = append(names, t)
			}
		}
		names = slices.DeleteFunc(names, func(t string) bool { return slices.Contains(w.opts.HideTypes, t) })
	}
	var out []limits.Instance
	for _, t := range names {
		l, known := w.typeLimits(t)
		if !known || slices.Contains(w.opts.HideTypes, t) {
			return nil, fail(codeTypeNotFound, "The following supplied instance types do not exist: [%s]", t)
		}
		out = append(out, l)
	}
	return out, nil
}

type xmlType struct {
	Type       string     `xml:"instanceType"`
	BareMetal  bool       `xml:"bareMetal"`
	Hypervisor string     `xml:"hypervisor,omitempty"`
	CPUs       int        `xml:"vCpuInfo>defaultVCpus,omitempty"`
	MemoryMiB  int        `xml:"memoryInfo>sizeInMiB,omitempty"`
	Arch       []string   `xml:"processorInfo>supportedArchitectures>item"`
	Network    xmlNetwork `xml:"networkInfo"`
}

type xmlNetwork struct {
	ENIs          int       `xml:"maximumNetworkInterfaces"`
	Cards         int       `xml:"maximumNetworkCards"`
	DefaultCard   int       `xml:"defaultNetworkCardIndex"`
	IPv4          int       `xml:"ipv4AddressesPerInterface"`
	IPv6          int       `xml:"ipv6AddressesPerInterface"`
	IPv6Supported bool      `xml:"ipv6Supported"`
	CardSet       []xmlCard `xml:"networkCards>item"`
}

type xmlCard struct {
	Index int `xml:"networkCardIndex"`
	ENIs  int `xml:"maximumNetworkInterfaces"`
}

func renderType(l limits.Instance) xmlType {
	x := xmlType{Type: l.Type, BareMetal: l.BareMetal, Hypervisor: l.Hypervisor, CPUs: l.VCPUs, MemoryMiB: l.MemoryMiB,
		Network: xmlNetwork{Cards: len(l.Cards), DefaultCard: l.DefaultCard, IPv4: l.IPv4PerENI, IPv6: l.IPv6PerENI, IPv6Supported: l.IPv6PerENI != 0}}
	if l.IPv6PerENI < 0 {
		x.Network.IPv6 = l.IPv4PerENI
	}
	switch l.Arch {
	case "amd64":
		x.Arch = []string{"x86_64"}
	case "arm64":
		x.Arch = []string{"arm64"}
	}
	for _, c := range l.Cards {
		x.Network.ENIs += c.MaxENIs
		x.Network.CardSet = append(x.Network.CardSet, xmlCard{c.Index, c.MaxENIs})
	}
	return x
}
