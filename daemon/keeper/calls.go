package keeper

import (
	"context"
	"net/netip"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// EC2 is what procedures need from EC2. Each method is one call (Unassign: one per kind of
// CIDR). Errors are [*Failure] if EC2's answer is one that the daemon reacts to.
type EC2 interface {
	// CreateENI creates an ENI. Calls with the same token create it once.
	CreateENI(context.Context, CreateENI) (resync.ENI, error)
	// AttachENI starts an attachment and returns its ID.
	AttachENI(ctx context.Context, id ipam.ENIID, card, device int) (string, error)
	SetDeleteOnTermination(ctx context.Context, id ipam.ENIID, attachment string) error
	// DetachENI starts to detach an attachment.
	DetachENI(ctx context.Context, attachment string) error
	// DeleteENI deletes an unattached ENI; if it does not exist, that is success.
	DeleteENI(ctx context.Context, id ipam.ENIID) error
	AssignIPs(ctx context.Context, id ipam.ENIID, n int) ([]netip.Addr, error)
	AssignPrefixes(ctx context.Context, id ipam.ENIID, n int) ([]netip.Prefix, error)
	// AssignIPv6Prefix asks for one /80.
	AssignIPv6Prefix(ctx context.Context, id ipam.ENIID) (netip.Prefix, error)
	// SetSecurityGroups replaces the security groups of an ENI.
	SetSecurityGroups(ctx context.Context, id ipam.ENIID, groups []string) error
	Unassign(ctx context.Context, id ipam.ENIID, cidrs []netip.Prefix) error
	// DescribeENIs describes ENIs by ID; those that do not exist are missing from the
	// result. Without IDs, it describes all ENIs attached to the instance.
	DescribeENIs(ctx context.Context, ids []ipam.ENIID) ([]resync.ENI, error)
	// DescribeOrphans describes unattached ENIs that a daemon of this instance created.
	DescribeOrphans(context.Context) ([]resync.ENI, error)
	DescribeSubnets(context.Context) ([]resync.Subnet, error)
	// DescribeLeaked describes unattached ENIs that CNI daemons of the VPC created.
	DescribeLeaked(context.Context) ([]resync.ENI, error)
	// TagENI writes the tags of a managed ENI that are missing or have other values.
	TagENI(ctx context.Context, id ipam.ENIID, have map[string]string) error
	// TagCreated marks an ENI without a creation time as created now.
	TagCreated(ctx context.Context, id ipam.ENIID, now time.Time) error
}

// Host is what procedures need from the node: its metadata service and its kernel.
type Host interface {
	// Interfaces lists the ENIs that the metadata service shows.
	Interfaces(context.Context) ([]resync.Interface, error)
	// SetUpENI waits for an ENI's link and puts its routes into the kernel.
	SetUpENI(context.Context, ipam.ENI) error
	// TeardownENI removes the rules of an ENI's primary address.
	TeardownENI(ctx context.Context, primary netip.Addr) error
	PodRoutes(context.Context) ([]resync.PodRoute, error)
	// PodLinks lists the host's links by name, with their interface indexes.
	PodLinks(context.Context) (map[string]int, error)
	// DropPod removes the rules and routes of a pod's address.
	DropPod(context.Context, netip.Addr) error
	// DeleteFlows deletes the connection tracking entries with one of these addresses, in
	// either direction, and returns their number, also with an error.
	DeleteFlows(ctx context.Context, of func(netip.Addr) bool) (int, error)
}

// Runtime is how procedures wait, run steps and report results.
type Runtime interface {
	Now() time.Time
	// Sleep waits. It fails when the procedure should end.
	Sleep(context.Context, time.Duration) error
	// Jitter returns a number in [0, n).
	Jitter(n time.Duration) time.Duration
	// Lasting returns a context that continues after the procedure should have ended, for at most
	// limit, to clean up what was begun in EC2, or what an earlier daemon left.
	Lasting(ctx context.Context, limit time.Duration) (lasting context.Context, done func())
	// Post hands the Keeper the result of a step. It does not block for long.
	Post(Message)
}

// Note is what a procedure reports besides its result, worded for users.
type Note string

// note reports something that a procedure did (err is nil), or an error that it survived.
func note(c Calls, what Note, about ipam.ENIID, err error) {
	c.Post(Noted{What: what, ENI: about, Err: err})
}

// Calls is everything outside the process that a procedure uses.
type Calls interface {
	EC2
	Host
	Runtime
}

// CreateENI describes the ENI to create: IPs secondary addresses or Prefixes /28s, only one of
// the two, or an IPv6 address. Without security groups it gets the VPC's default group.
type CreateENI struct {
	SubnetID       string
	SecurityGroups []string
	IPs, Prefixes  int
	IPv6           bool
	ConnTrack      resync.ConnTrack
	Token          string    // client token: EC2 answers a repetition with the same ENI; "": each call is separate
	CreatedAt      time.Time // of the first attempt: a repetition under a token must match it; zero: now
}

// Failure is a failed call, classified by how the daemon reacts.
type Failure struct {
	Cause        cause.Code
	NotFound     bool // the ENI or attachment does not exist (any more)
	AddressLimit bool // the ENI cannot take more addresses
	// Unanswered: EC2 may have carried out the request; its answer is missing or says
	// only that something broke.
	Unanswered bool
	Err        error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// PartlyUnassigned reports that only some of the CIDRs were unassigned.
type PartlyUnassigned struct {
	Gone []netip.Prefix
	Err  error
}

func (p *PartlyUnassigned) Error() string { return p.Err.Error() }
func (p *PartlyUnassigned) Unwrap() error { return p.Err }

// pause waits one step of a back-off.
func pause(ctx context.Context, c Calls, clock *BackoffTimer, first, most time.Duration) error {
	now := c.Now()
	clock.Fail(now, now, cause.EC2Throttled, first, most, c.Jitter)
	return c.Sleep(ctx, clock.Until.Sub(now))
}
