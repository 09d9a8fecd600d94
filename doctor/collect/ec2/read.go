package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/resync"
	"cnictl/doctor/evidence"
)

// Read reads the EC2 sources about the instances of a cluster in its region, and the limits of
// their types. It leaves out the quota of interfaces, which is another service's, and the
// simulation of the role's policies, which Installation reads.
func (r *Reader) Read(ctx context.Context, region string, instances []string) (*evidence.Reading, map[string]evidence.InstanceType) {
	q := query{api: r.client(r.ResolveRegion(region))}
	out := evidence.UnreadAWS(evidence.MissingNotAsked)
	if out.Instances.Missing = cmp.Or(r.noRegion(region), r.noCredentials(ctx)); out.Instances.Missing == "" {
		out.Instances = timed(ctx, r, func(ctx context.Context) ([]evidence.Instance, error) { return q.instances(ctx, instances) })
	}
	if !out.Instances.OK() {
		// Without instances, nothing else can be asked about this cluster alone.
		return evidence.UnreadAWS(out.Instances.Missing), nil
	}
	var limits evidence.Source[map[string]evidence.InstanceType]
	var wait sync.WaitGroup
	for _, do := range []func(){
		func() { out.Interfaces = timed(ctx, r, q.interfaces) },
		func() { out.Subnets = timed(ctx, r, q.subnets) },
		func() { out.Reservations = timed(ctx, r, q.reservations) },
		func() { out.Groups = timed(ctx, r, q.groups) },
		func() { out.RouteTables = timed(ctx, r, q.routeTables) },
		func() { limits = timed(ctx, r, q.limits) }, // without it, the built-in table serves
	} {
		wait.Go(do)
	}
	wait.Wait()
	return out, limits.Content
}

// noCredentials returns why there are no credentials to ask with, empty if there are. A login
// program that supplies them may take its time.
func (r *Reader) noCredentials(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	if _, err := r.cfg.Credentials.Retrieve(ctx); err != nil {
		return NoCredentials + missing(err)
	}
	return ""
}

// timed reads a source within its time limit.
func timed[T any](ctx context.Context, r *Reader, read func(context.Context) (T, error)) evidence.Source[T] {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	content, err := read(ctx)
	if err != nil {
		return evidence.Lacking[T](missing(err))
	}
	return evidence.Read(content)
}

// query reads EC2 about what the instances lead to.
type query struct {
	api *ec2.Client

	vpcs, types, nets []string // of the instances; nets are subnets
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

// pages passes on every page of an answer. each returns the token of the next page, which goes
// into token, a field of the input. The SDK's own paginators hold the client as an interface, so
// a binary that reflects on methods would link all of EC2's, 40 MB.
func pages[In, Out any](ctx context.Context, call func(context.Context, *In, ...func(*ec2.Options)) (*Out, error), in *In, token **string,
	each func(*Out) *string) error {
	for range maxPages {
		page, err := call(ctx, in)
		if err != nil {
			return err
		}
		if *token = each(page); aws.ToString(*token) == "" {
			return nil
		}
	}
	return fmt.Errorf("more than %d pages", maxPages)
}

// instances reads the instances, and from them where everything else is.
func (q *query) instances(ctx context.Context, ids []string) ([]evidence.Instance, error) {
	out := []evidence.Instance{}
	add := func(list *[]string, id *string) {
		if id != nil && !slices.Contains(*list, *id) {
			*list = append(*list, *id)
		}
	}
	for part := range slices.Chunk(ids, maxFilter) {
		in := &ec2.DescribeInstancesInput{Filters: []types.Filter{filter("instance-id", part...)}, MaxResults: aws.Int32(pageSize)}
		err := pages(ctx, q.api.DescribeInstances, in, &in.NextToken, func(page *ec2.DescribeInstancesOutput) *string {
			for _, r := range page.Reservations {
				for _, i := range r.Instances {
					out = append(out, instance(i))
					add(&q.vpcs, i.VpcId)
					add(&q.types, aws.String(string(i.InstanceType)))
					for _, e := range i.NetworkInterfaces {
						add(&q.nets, e.SubnetId)
					}
				}
			}
			return page.NextToken
		})
		if err != nil {
			return nil, err
		}
	}
	if len(q.vpcs) == 0 {
		return nil, errors.New("EC2 has none of the nodes' instances in this region and account")
	}
	return out, nil
}

func instance(i types.Instance) evidence.Instance {
	out := evidence.Instance{ID: aws.ToString(i.InstanceId), InstanceType: string(i.InstanceType), Cluster: clusterOf(tags(i.Tags))}
	if i.IamInstanceProfile != nil {
		out.Profile = aws.ToString(i.IamInstanceProfile.Arn)
	}
	if i.State != nil {
		out.State = string(i.State.Name)
	}
	if i.LaunchTime != nil {
		out.StateAt = i.LaunchTime.UTC()
	}
	if m := i.MetadataOptions; m != nil {
		out.HTTPEndpoint, out.HTTPTokens = string(m.HttpEndpoint), string(m.HttpTokens)
		if m.HttpPutResponseHopLimit != nil {
			out.HopLimit = new(int(*m.HttpPutResponseHopLimit))
		}
	}
	return out
}

// Interfaces reads the interfaces of a subnet, and nothing else.
func (r *Reader) Interfaces(ctx context.Context, region, subnet string) evidence.Source[[]evidence.Interface] {
	if why := cmp.Or(r.noRegion(region), r.noCredentials(ctx)); why != "" {
		return evidence.Lacking[[]evidence.Interface](why)
	}
	q := query{api: r.client(r.ResolveRegion(region))}
	return timed(ctx, r, func(ctx context.Context) ([]evidence.Interface, error) {
		return q.interfacesWith(ctx, filter("subnet-id", subnet))
	})
}

// interfaces reads all interfaces of the VPC: leaked and foreign ones take addresses too.
func (q *query) interfaces(ctx context.Context) ([]evidence.Interface, error) {
	return q.interfacesWith(ctx, filter("vpc-id", q.vpcs...))
}

func (q *query) interfacesWith(ctx context.Context, with types.Filter) ([]evidence.Interface, error) {
	out := []evidence.Interface{}
	in := &ec2.DescribeNetworkInterfacesInput{Filters: []types.Filter{with}, MaxResults: aws.Int32(pageSize)}
	err := pages(ctx, q.api.DescribeNetworkInterfaces, in, &in.NextToken, func(page *ec2.DescribeNetworkInterfacesOutput) *string {
		for _, e := range page.NetworkInterfaces {
			out = append(out, describedInterface(e))
		}
		return page.NextToken
	})
	return out, err
}

func describedInterface(e types.NetworkInterface) evidence.Interface {
	out := evidence.Interface{
		ID: aws.ToString(e.NetworkInterfaceId), Status: string(e.Status), Type: string(e.InterfaceType), Subnet: aws.ToString(e.SubnetId),
		IPs: []netip.Addr{}, Prefixes: []netip.Prefix{}, Description: aws.ToString(e.Description), Requester: aws.ToString(e.RequesterId),
		Tags: tags(e.TagSet), Groups: []string{},
	}
	if !slices.Contains([]string{"available", "in-use", "attaching", "detaching"}, out.Status) {
		out.Status = "in-use" // associated, like those of load balancers
	}
	held := 0 // of the IPv4 range of its subnet
	for _, a := range e.PrivateIpAddresses {
		addr, err := introspect.ParseAddr(aws.ToString(a.PrivateIpAddress))
		if err != nil {
			continue
		}
		if held++; aws.ToBool(a.Primary) {
			out.Primary = addr
		} else {
			out.IPs = append(out.IPs, addr)
		}
	}
	prefix := func(text *string, size int) {
		if p, err := netip.ParsePrefix(aws.ToString(text)); err == nil {
			out.Prefixes, held = append(out.Prefixes, p), held+size
		}
	}
	for _, p := range e.Ipv4Prefixes {
		prefix(p.Ipv4Prefix, 16)
	}
	for _, p := range e.Ipv6Prefixes {
		prefix(p.Ipv6Prefix, 0)
	}
	out.Held = &held
	for _, g := range e.Groups {
		out.Groups = append(out.Groups, aws.ToString(g.GroupId))
	}
	if a := e.Attachment; a != nil {
		out.Instance, out.DeleteOnTermination = aws.ToString(a.InstanceId), aws.ToBool(a.DeleteOnTermination)
		out.Card = int(max(aws.ToInt32(a.NetworkCardIndex), 0))
		if a.DeviceIndex != nil && *a.DeviceIndex >= 0 {
			out.Device = new(int(*a.DeviceIndex))
		}
	}
	if at, err := time.Parse(time.RFC3339, out.Tags[resync.TagCreatedAt]); err == nil && at.Year() >= 1970 {
		out.CreatedAt = at.UTC()
	}
	return out
}

func tags(list []types.Tag) map[string]string {
	out := map[string]string{}
	for _, t := range list {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}

func (q *query) subnets(ctx context.Context) ([]evidence.Subnet, error) {
	out := []evidence.Subnet{}
	in := &ec2.DescribeSubnetsInput{Filters: []types.Filter{filter("vpc-id", q.vpcs...)}, MaxResults: aws.Int32(pageSize)}
	err := pages(ctx, q.api.DescribeSubnets, in, &in.NextToken, func(page *ec2.DescribeSubnetsOutput) *string {
		for _, s := range page.Subnets {
			one := evidence.Subnet{ID: aws.ToString(s.SubnetId), Zone: aws.ToString(s.AvailabilityZone), VPC: aws.ToString(s.VpcId),
				Tags: tags(s.Tags)}
			one.CIDR, _ = netip.ParsePrefix(aws.ToString(s.CidrBlock)) // none in an IPv6-only subnet
			if s.AvailableIpAddressCount != nil {
				one.Available = new(int(max(*s.AvailableIpAddressCount, 0)))
			}
			for _, v6 := range s.Ipv6CidrBlockAssociationSet {
				if p, err := netip.ParsePrefix(aws.ToString(v6.Ipv6CidrBlock)); err == nil {
					one.IPv6CIDR = &p
				}
			}
			out = append(out, one)
		}
		return page.NextToken
	})
	return out, err
}

// reservations reads those of the nodes' subnets one by one: the API does not take several.
func (q *query) reservations(ctx context.Context) ([]evidence.Reservation, error) {
	out := []evidence.Reservation{}
	for _, subnet := range q.nets {
		in := &ec2.GetSubnetCidrReservationsInput{SubnetId: &subnet, MaxResults: aws.Int32(pageSize)}
		err := pages(ctx, q.api.GetSubnetCidrReservations, in, &in.NextToken, func(page *ec2.GetSubnetCidrReservationsOutput) *string {
			for _, r := range slices.Concat(page.SubnetIpv4CidrReservations, page.SubnetIpv6CidrReservations) {
				if cidr, err := netip.ParsePrefix(aws.ToString(r.Cidr)); err == nil {
					out = append(out, evidence.Reservation{Subnet: subnet, CIDR: cidr, Type: string(r.ReservationType)})
				}
			}
			return page.NextToken
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (q *query) groups(ctx context.Context) ([]evidence.SecurityGroup, error) {
	out := []evidence.SecurityGroup{}
	in := &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter("vpc-id", q.vpcs...)}, MaxResults: aws.Int32(pageSize)}
	err := pages(ctx, q.api.DescribeSecurityGroups, in, &in.NextToken, func(page *ec2.DescribeSecurityGroupsOutput) *string {
		for _, g := range page.SecurityGroups {
			out = append(out, evidence.SecurityGroup{ID: aws.ToString(g.GroupId), VPC: aws.ToString(g.VpcId), Ingress: rules(g.IpPermissions),
				Egress: rules(g.IpPermissionsEgress)})
		}
		return page.NextToken
	})
	return out, err
}

// rules returns a rule for each peer: a CIDR, a group or a prefix list.
func rules(permissions []types.IpPermission) []evidence.GroupRule {
	out := []evidence.GroupRule{}
	for _, p := range permissions {
		rule := evidence.GroupRule{Protocol: aws.ToString(p.IpProtocol), From: port(p.FromPort), To: port(p.ToPort)}
		add := func(peer *string) {
			rule.Peer = aws.ToString(peer)
			out = append(out, rule)
		}
		for _, r := range p.IpRanges {
			add(r.CidrIp)
		}
		for _, r := range p.Ipv6Ranges {
			add(r.CidrIpv6)
		}
		for _, g := range p.UserIdGroupPairs {
			add(g.GroupId)
		}
		for _, l := range p.PrefixListIds {
			add(l.PrefixListId)
		}
	}
	return out
}

// port returns nil for all: -1 means every type of ICMP.
func port(n *int32) *int {
	if n == nil || *n < 0 {
		return nil
	}
	return new(int(*n))
}

// routeTables returns the table of each subnet of the nodes: the one that names it, or the main
// one of its VPC.
func (q *query) routeTables(ctx context.Context) ([]evidence.RouteTable, error) {
	own, main := map[string]evidence.RouteTable{}, evidence.RouteTable{}
	in := &ec2.DescribeRouteTablesInput{Filters: []types.Filter{filter("vpc-id", q.vpcs...)}, MaxResults: aws.Int32(100)}
	err := pages(ctx, q.api.DescribeRouteTables, in, &in.NextToken, func(page *ec2.DescribeRouteTablesOutput) *string {
		for _, t := range page.RouteTables {
			table := evidence.RouteTable{ID: aws.ToString(t.RouteTableId), Routes: []evidence.VPCRoute{}}
			for _, r := range t.Routes {
				table.Routes = append(table.Routes, route(r))
			}
			for _, a := range t.Associations {
				if aws.ToBool(a.Main) {
					main = table
				} else if a.SubnetId != nil {
					own[*a.SubnetId] = table
				}
			}
		}
		return page.NextToken
	})
	out := []evidence.RouteTable{}
	for _, subnet := range q.nets {
		table, ok := own[subnet]
		if !ok {
			table = main
		}
		table.Subnet = subnet
		out = append(out, table)
	}
	return out, err
}

// route names the only target of a route, or blackhole if that is gone.
func route(r types.Route) evidence.VPCRoute {
	out := evidence.VPCRoute{To: cmp.Or(aws.ToString(r.DestinationCidrBlock), aws.ToString(r.DestinationIpv6CidrBlock),
		aws.ToString(r.DestinationPrefixListId))}
	if r.State == types.RouteStateBlackhole {
		out.Target = "blackhole"
		return out
	}
	for _, target := range []*string{
		r.GatewayId, r.NatGatewayId, r.TransitGatewayId, r.NetworkInterfaceId, r.InstanceId, r.VpcPeeringConnectionId,
		r.EgressOnlyInternetGatewayId,
		r.LocalGatewayId, r.CarrierGatewayId, r.CoreNetworkArn,
	} {
		out.Target = cmp.Or(out.Target, aws.ToString(target))
	}
	return out
}

// limits returns the limits of the instances' types.
func (q *query) limits(ctx context.Context) (map[string]evidence.InstanceType, error) {
	out := map[string]evidence.InstanceType{}
	for part := range slices.Chunk(q.types, 100) {
		in := &ec2.DescribeInstanceTypesInput{}
		for _, name := range part {
			in.InstanceTypes = append(in.InstanceTypes, types.InstanceType(name))
		}
		err := pages(ctx, q.api.DescribeInstanceTypes, in, &in.NextToken, func(page *ec2.DescribeInstanceTypesOutput) *string {
			for _, t := range page.InstanceTypes {
				one := evidence.InstanceType{InstanceType: string(t.InstanceType), Known: true, Hypervisor: string(t.Hypervisor),
					BareMetal: t.BareMetal}
				if n := t.NetworkInfo; n != nil {
					one.MaxENIs, one.IPv4PerENI = port(n.MaximumNetworkInterfaces), port(n.Ipv4AddressesPerInterface)
				}
				out[one.InstanceType] = one
			}
			return page.NextToken
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
