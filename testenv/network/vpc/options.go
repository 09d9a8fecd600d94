package vpc

import (
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"cnictl/testenv/aws/fakeaws"
)

// Fixed addresses of the fabric. Nodes reach all of them through their default
// route.
var (
	// IMDS is the instance metadata service, at EC2's own address.
	IMDS = netip.MustParseAddrPort("169.254.169.254:80")
	// EC2 is the EC2 API (plain HTTP).
	EC2 = netip.MustParseAddrPort("192.0.2.10:80")
	// Outside is an echo server (TCP and UDP) beyond the VPC.
	Outside = netip.MustParseAddrPort("198.51.100.10:7")
)

// MTU is the MTU of EC2 links inside a VPC: jumbo frames.
const MTU = 9001

// Options configure a Fabric.
type Options struct {
	World *fakeaws.World // required

	// LinkDelay is the time from the attachment of an ENI until its link appears,
	// about a second on EC2. 0 means at once.
	LinkDelay time.Duration

	// LinkName names the node's end of an ENI's link. Default: ENALinkName.
	LinkName func(ENI) string

	Log *slog.Logger // default: discarded
}

// ENI describes an attached ENI to LinkName.
type ENI struct {
	ID         string
	InstanceID string
	MAC        string
	Card       int // network card index
	Device     int // device index on that card
}

// ENALinkName names links as Amazon Linux does on card 0: ens5, ens6, ...; each other
// card has its own range of names.
func ENALinkName(e ENI) string { return fmt.Sprintf("ens%d", 5+e.Device+100*e.Card) }

// EthLinkName names links eth0, eth1, ...
func EthLinkName(e ENI) string { return fmt.Sprintf("eth%d", e.Device+100*e.Card) }
