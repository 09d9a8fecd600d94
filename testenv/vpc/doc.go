// Package vpc is the network between simulated nodes: a kernel network namespace
// that behaves as a VPC does and follows a fakeaws.World.
//
// What it promises, each with a test that tries the opposite:
//
//   - An address is reachable exactly while it is assigned to an attached ENI, and
//     only through that ENI's link. Everything else in the VPC is a black hole that
//     does not answer ARP either.
//   - A packet from an ENI must carry a source address which that ENI owns
//     (source check), unless the world says SourceDestCheck=false for it.
//   - The subnet gateways and every assigned address answer ARP on every link, as
//     VPC routers do, whichever link is asked.
//   - [GatewayIPv6] is the router of IPv6 subnets: every link has it. Nothing is on-link
//     there, neither is an address's neighbourhood: instances have /128 addresses, as
//     from DHCPv6, and send everything to the router.
//   - The host [Outside] answers only primary addresses of instances with a public
//     address, which proves SNAT; it answers with the source it saw. There is no address
//     translation on the way: it sees the private primary address.
//   - The metadata service and the EC2 API answer inside the fabric; they identify
//     instances by the source address of the request.
//
// An attached ENI is one veth pair: the fabric's end is called f<n>, the node's end
// has the ENI's MAC and any name. The pair appears [Options].LinkDelay after the
// attachment and disappears with it. Per link there is one permanent neighbour,
// and per address or prefix one route to it, so a change of the world is one
// netlink message and in force when the world's call returns. The source check is
// a reverse route look-up in nftables, which needs no upkeep per address.
//
// A branch ENI is a VLAN of its trunk's link, f<n>.<id>, with the same promises: what comes
// from its addresses must come in frames of its VLAN, and what goes to them has its tag and
// its MAC. On a kernel without 802.1q there is nothing behind a trunk's VLANs.
//
// Not simulated: security groups, also of branch ENIs; network ACLs, VPC route tables, more
// than one VPC with overlapping ranges, IMDS hop limits, IPv6 router advertisements, IPv6
// beyond the VPC.
package vpc
