// Package vpc is the network between simulated nodes: a kernel network namespace
// that behaves like a VPC and follows a fakeaws.World.
//
// It guarantees the following, and a test tries to break each guarantee:
//
//   - An address is reachable exactly while it is assigned to an attached ENI, and
//     only through that ENI's link. Everything else in the VPC is a black hole that
//     does not even answer ARP.
//   - A packet from an ENI must carry a source address that the ENI owns
//     (source check), unless the world sets SourceDestCheck=false for it.
//   - Every link answers ARP for the subnet gateways and for every assigned address,
//     as VPC routers do.
//   - [GatewayIPv6] is the router of IPv6 subnets, present on every link. Nothing is
//     on-link in IPv6: instances have /128 addresses, as from DHCPv6, and send
//     everything to the router.
//   - The host [Outside] answers only primary addresses of instances with a public
//     address, which proves SNAT; it answers with the source it saw. There is no address
//     translation on the way: it sees the private primary address.
//   - The metadata service and the EC2 API answer inside the fabric; they identify
//     instances by the source address of the request.
//
// An attached ENI is one veth pair: the fabric's end is called f<n>, the node's end
// has the ENI's MAC and any name. The pair appears [Options].LinkDelay after the
// attachment and disappears with it. Each link has one permanent neighbour entry, and
// each address or prefix has one route to it. A change in the world is therefore one
// netlink message, and is in force when the call that made it returns. The source check
// is a reverse route lookup in nftables, which needs no per-address maintenance.
//
// A branch ENI is a VLAN on its trunk's link, f<n>.<id>, with the same guarantees: packets
// from its addresses must arrive in its VLAN, and packets to them carry its tag and its MAC.
// On a kernel without 802.1q there is nothing behind a trunk's VLANs.
//
// Not simulated: security groups (also on branch ENIs), network ACLs, VPC route tables, more
// than one VPC with overlapping ranges, IMDS hop limits, IPv6 router advertisements, IPv6
// beyond the VPC.
package vpc
