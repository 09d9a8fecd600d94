package introspect

import (
	"net/netip"
	"time"
)

// Bounds of /v1/events and /v1/failures.
const (
	MaxEvents    = 500 // state changes that a daemon remembers
	MaxFailures  = 100 // failed ADDs that a daemon remembers
	MaxEventWait = 30  // seconds that a request for events may wait
)

// EventKind says what changed. The values are stable.
type EventKind string

const (
	EventAddressAssigned     EventKind = "address-assigned"
	EventAddressReleased     EventKind = "address-released"
	EventADDFailed           EventKind = "add-failed"
	EventDELFailed           EventKind = "del-failed"
	EventPoolMissed          EventKind = "pool-missed"
	EventActionStarted       EventKind = "action-started"
	EventActionDone          EventKind = "action-done"
	EventActionFailed        EventKind = "action-failed"
	EventENIAttached         EventKind = "eni-attached"
	EventENIDetached         EventKind = "eni-detached"
	EventENIVanished         EventKind = "eni-vanished"
	EventENIMayOutlive       EventKind = "eni-may-outlive-instance"
	EventCIDRsAdded          EventKind = "cidrs-added"
	EventCIDRsRemoved        EventKind = "cidrs-removed"
	EventBackoffStarted      EventKind = "backoff-started"
	EventBackoffEnded        EventKind = "backoff-ended"
	EventLimitStated         EventKind = "limit-stated"
	EventLimitLifted         EventKind = "limit-lifted"
	EventSubnetShort         EventKind = "subnet-short"
	EventSubnetsRead         EventKind = "subnets-read"
	EventSubnetsFailed       EventKind = "subnets-failed"
	EventNodeChanged         EventKind = "node-changed"
	EventVPCCIDRsChanged     EventKind = "vpc-cidrs-changed"
	EventQuarantined         EventKind = "quarantined"
	EventUnquarantined       EventKind = "unquarantined"
	EventReconciled          EventKind = "reconciled"
	EventReconcileFailed     EventKind = "reconcile-failed"
	EventMissedDEL           EventKind = "missed-del"
	EventLeakDeleted         EventKind = "leak-deleted"
	EventSweepFailed         EventKind = "sweep-failed"
	EventCheckpointFailed    EventKind = "checkpoint-failed"
	EventCheckpointRecovered EventKind = "checkpoint-recovered"
	EventENIConfigUsed       EventKind = "eniconfig-used"
	EventENIConfigFailed     EventKind = "eniconfig-failed"
	EventGroupsChanged       EventKind = "security-groups-changed"
	EventGroupsWritten       EventKind = "security-groups-written"
	EventGroupsFailed        EventKind = "security-groups-failed"
	EventPodsExpected        EventKind = "pods-expected"
	EventTrunkFound          EventKind = "trunk-found"
	EventTrunkLost           EventKind = "trunk-lost"
	EventTrunkGivenUp        EventKind = "trunk-given-up"
	EventHostStateRepaired   EventKind = "host-state-repaired"
	EventBackendChanged      EventKind = "backend-changed"
	EventFlowsDeleted        EventKind = "flows-deleted"
	EventFlowsKept           EventKind = "flows-kept"
	EventSettingProblem      EventKind = "setting-problem"
	EventStarted             EventKind = "started"
	EventTerminating         EventKind = "terminating"

	// EventGap is not a change: it marks missing events. Reason says why they are missing,
	// and Missed how many, if known.
	EventGap EventKind = "gap"
)

// Reasons of a gap.
const (
	GapOverflow = "overflow" // the daemon remembers MaxEvents events; the missing ones are older
	GapRestart  = "restart"  // the requested sequence is from another run of the daemon
)

// eventKinds lists every kind with its title, in the order of the constants.
var eventKinds = []struct {
	kind  EventKind
	title string
}{
	{EventAddressAssigned, "a pod got an address"},
	{EventAddressReleased, "a pod's address was released and is cooling down"},
	{EventADDFailed, "a pod got no address"},
	{EventDELFailed, "a pod's address could not be released"},
	{EventPoolMissed, "an ADD found no free address and is waiting"},
	{EventActionStarted, "a change of the pool was started"},
	{EventActionDone, "a change of the pool is complete"},
	{EventActionFailed, "a change of the pool failed"},
	{EventENIAttached, "a network interface joined the pool"},
	{EventENIDetached, "a network interface left the pool"},
	{EventENIVanished, "a network interface was removed by something else"},
	{EventENIMayOutlive, "a network interface may outlive its instance: its delete-on-termination could not be set, which is retried"},
	{EventCIDRsAdded, "addresses or prefixes joined the pool"},
	{EventCIDRsRemoved, "addresses or prefixes left the pool"},
	{EventBackoffStarted, "a back-off started"},
	{EventBackoffEnded, "a back-off ended"},
	{EventLimitStated, "EC2 refused more than the instance type is known to take: the pool is planned with less"},
	{EventLimitLifted, "EC2 accepts again what the instance type is known to take"},
	{EventSubnetShort, "a subnet has too few free addresses"},
	{EventSubnetsRead, "the free addresses of the subnets were read"},
	{EventSubnetsFailed, "the subnets could not be read"},
	{EventNodeChanged, "the node's schedulability, max-pods or targets changed"},
	{EventVPCCIDRsChanged, "the CIDRs of the VPC changed"},
	{EventQuarantined, "an address or ENI was quarantined: it serves no new pods"},
	{EventUnquarantined, "a quarantined address or ENI is usable again"},
	{EventReconciled, "the pool differed from what is attached and was corrected"},
	{EventReconcileFailed, "the attached network interfaces could not be read"},
	{EventMissedDEL, "an allocation without a pod link was released"},
	{EventLeakDeleted, "a leaked network interface was deleted"},
	{EventSweepFailed, "the cleanup of leaked network interfaces failed"},
	{EventCheckpointFailed, "the allocations could not be written to the checkpoint"},
	{EventCheckpointRecovered, "the checkpoint can be written again"},
	{EventENIConfigUsed, "new network interfaces follow an ENIConfig"},
	{EventENIConfigFailed, "the node's ENIConfig cannot be used"},
	{EventGroupsChanged, "the security groups of the primary network interface changed"},
	{EventGroupsWritten, "the security groups of network interfaces were replaced"},
	{EventGroupsFailed, "the security groups of a network interface could not be replaced"},
	{EventPodsExpected, "pods that need an address were scheduled to the node"},
	{EventTrunkFound, "the trunk network interface was found"},
	{EventTrunkLost, "the trunk network interface is gone"},
	{EventTrunkGivenUp, "gave up waiting for a trunk; its slot is used for pods"},
	{EventHostStateRepaired, "host network state that another program removed was restored"},
	{EventBackendChanged, "packet filter rules moved to the backend of iptables that the node uses by now"},
	{EventFlowsDeleted, "connections to addresses whose pod ended were removed from the node's connection tracking"},
	{EventFlowsKept, "connections to addresses whose pod ended could not be removed from connection tracking"},
	{EventSettingProblem, "a setting cannot take effect on this node"},
	{EventStarted, "the daemon started"},
	{EventTerminating, "the daemon is shutting down"},
	{EventGap, "events are missing here"},
}

// Title returns the one-line meaning of a kind, "" for an unknown one.
func (k EventKind) Title() string {
	for _, known := range eventKinds {
		if known.kind == k {
			return known.title
		}
	}
	return ""
}

// EventKinds lists every kind.
func EventKinds() []EventKind {
	all := make([]EventKind, 0, len(eventKinds))
	for _, known := range eventKinds {
		all = append(all, known.kind)
	}
	return all
}

// PodRef names a pod.
type PodRef struct {
	Namespace string `json:"namespace"` // Kubernetes namespace
	Name      string `json:"name"`      // Kubernetes pod name
}

// Event is one state change of the daemon. Members that do not apply to its kind are omitted.
type Event struct {
	Seq        uint64         `json:"seq"`                  // sequence number within the daemon's run, from 1; for a gap, that of the last missing event
	At         time.Time      `json:"at"`                   // when it happened; for a gap, when the event after it happened
	Kind       EventKind      `json:"kind"`                 // what changed
	Pod        *PodRef        `json:"pod,omitempty"`        // pod concerned
	Address    netip.Addr     `json:"address,omitzero"`     // one address
	ENIID      string         `json:"eniId,omitempty"`      // network interface
	Card       *int           `json:"card,omitempty"`       // network card index
	Device     *int           `json:"device,omitempty"`     // device index on the card
	SubnetID   string         `json:"subnetId,omitempty"`   // subnet
	CIDRs      []netip.Prefix `json:"cidrs,omitempty"`      // secondary IPs or prefixes, or ranges of the VPC
	Cause      string         `json:"cause,omitempty"`      // a code of daemon/api/cause
	Reason     string         `json:"reason,omitempty"`     // the planner's reason; for a gap, overflow or restart
	Message    string         `json:"message,omitempty"`    // one sentence for people, without secrets and sandbox ids
	DurationMS *int64         `json:"durationMs,omitempty"` // duration in milliseconds
	Missed     *uint64        `json:"missed,omitempty"`     // for a gap, the number of missing events; omitted if unknown
}

// NodeEvents answers /v1/events: state changes in order. To continue without a gap, repeat the
// request with epoch and since=next.
type NodeEvents struct {
	APIVersion string  `json:"apiVersion"` // version of the document
	Kind       string  `json:"kind"`       // NodeEvents
	Epoch      string  `json:"epoch"`      // the daemon's run; sequence numbers are only valid within it
	Next       uint64  `json:"next"`       // value of since for the next request
	Items      []Event `json:"items"`      // oldest first; a gap marks missing events
}

// NodeFailures answers /v1/failures: the last failed ADDs, newest first.
type NodeFailures struct {
	APIVersion string    `json:"apiVersion"` // version of the document
	Kind       string    `json:"kind"`       // NodeFailures
	Items      []Failure `json:"items"`      // newest first, at most 100
}

// Failure is one ADD that got no address.
type Failure struct {
	At        time.Time `json:"at"`                 // time of the answer
	Pod       PodRef    `json:"pod"`                // pod whose ADD failed
	Cause     string    `json:"cause" null:"never"` // a code of daemon/api/cause
	Title     string    `json:"title"`              // the one-line meaning of the code
	Detail    string    `json:"detail"`             // one sentence with figures, without sandbox ids
	WaitedMS  int64     `json:"waitedMs"`           // how long the ADD had waited, in milliseconds
	Transient bool      `json:"transient"`          // a retry by kubelet may succeed without intervention
}
