package introspect

import (
	"encoding/json"
	"time"

	"cnictl/capacity/maxpods"
)

// APIVersion is the version of all our documents. Changes within it are additive.
const APIVersion = "cnictl/v1alpha1"

// Kinds of our documents.
const (
	KindSummary  = "NodeSummary"
	KindConfig   = "NodeConfig"
	KindPlan     = "NodePlan"
	KindFailures = "NodeFailures"
	KindEvents   = "NodeEvents"
	KindPod      = "NodePod"
	KindLogs     = "NodeLogs"
	KindSchemas  = "SchemaList"
	KindFault    = "Fault"
)

// Summary answers /v1/summary: one node's pool in 1 to 2 KB. It carries no clock
// of its own, so that an idle node's answer keeps its ETag; the time of the sample
// is the answer's Date header. A null member or list is not known; an empty
// string is not known.
type Summary struct {
	APIVersion   string     `json:"apiVersion" null:"never"` // version of the document
	Kind         string     `json:"kind" null:"never"`       // NodeSummary
	Version      string     `json:"version"`                 // of the daemon
	Node         string     `json:"node"`                    // Kubernetes node name
	InstanceID   string     `json:"instanceId"`              // i-…
	InstanceType string     `json:"instanceType"`            // m5.large
	IPFamily     string     `json:"ipFamily"`                // ipv4 or ipv6
	StartedAt    *time.Time `json:"startedAt"`               // when the daemon started

	CustomNetworking *bool `json:"customNetworking"` // the primary ENI gives no addresses to pods
	Cordoned         *bool `json:"cordoned"`         // the node is unschedulable
	Terminating      *bool `json:"terminating"`      // the daemon is draining

	Cards   []CardSummary `json:"cards"`   // by card index
	ENIs    []ENISummary  `json:"enis"`    // the managed ones, by card and device
	Targets Targets       `json:"targets"` // settings of the pool in effect
	MaxPods *MaxPods      `json:"maxPods"` // kubelet's max-pods beside what the addresses allow
	Trunk   *Trunk        `json:"trunk"`   // security groups for pods

	CooldownSeconds *float64 `json:"cooldownSeconds"` // IP_COOLDOWN_PERIOD

	WaitingADDs  *int        `json:"waitingAdds"`  // ADDs that found the pool dry and still wait
	WaitingSince *time.Time  `json:"waitingSince"` // since when the oldest of them waits; null also when none does
	Unplaced     *int        `json:"unplaced"`     // restored assignments whose address is in no known CIDR
	Operations   []Operation `json:"operations"`   // EC2 operations in flight
	Backoffs     []Backoff   `json:"backoffs"`     // clocks that hold the pool back now
	Subnets      []Subnet    `json:"subnets"`      // where ENIs may be made
	LastErrors   []LastError `json:"lastErrors"`   // newest first, at most MaxLastErrors

	EC2Calls []EC2Calls     `json:"ec2Calls"` // since start, by action
	ADDs     *RequestCounts `json:"adds"`     // since start
	DELs     *RequestCounts `json:"dels"`     // since start

	ConfigProblems *int `json:"configProblems"` // settings with a problem; /v1/config names them
}

// MaxLastErrors bounds Summary.LastErrors.
const MaxLastErrors = 5

// Modes of a card's pool.
const (
	ModeSecondaryIP = "secondary-ip"
	ModePrefix      = "prefix"
	ModeMixed       = "mixed" // seen from outside only: a node changing from one mode to the other
)

// CardSummary is the pool of one network card. The address counts are those of
// CIDRs of the card's mode on ENIs that may serve pods. A daemon reports all of them; of a
// node of which there are only metrics some are unknown.
type CardSummary struct {
	Card         int    `json:"card"`         // network card index
	Mode         string `json:"mode"`         // secondary-ip or prefix
	ENIs         *int   `json:"enis"`         // attached and managed
	OtherENIs    *int   `json:"otherEnis"`    // attached, not managed: they occupy slots
	ENILimit     *int   `json:"eniLimit"`     // attachable, MAX_ENI applied
	SlotsPerENI  *int   `json:"slotsPerEni"`  // secondary IPs or prefixes one ENI can hold
	AddressLimit *int   `json:"addressLimit"` // pod addresses the card can hold at most
	Total        int    `json:"total"`        // addresses of the pool
	Assigned     int    `json:"assigned"`     // pods have them
	Cooling      *int   `json:"cooling"`      // rest after their last pod; not known: they count as free
	Free         int    `json:"free"`         // can be given to a pod now
	Prefixes     *int   `json:"prefixes"`     // /28 or /80 prefixes of the pool
	FreePrefixes *int   `json:"freePrefixes"` // without an assigned address
}

// Flags of an ENI.
const (
	ENIFlagPrimary  = "primary"
	ENIFlagTrunk    = "trunk"
	ENIFlagEFA      = "efa"
	ENIFlagExcluded = "excluded" // its subnet may not give addresses to pods
	ENIFlagHeld     = "held"     // it is being detached
	// ENIFlagQuarantined: EC2 no longer lists it; its pods keep their addresses.
	ENIFlagQuarantined = "quarantined"
)

// ENISummary is one managed ENI. The counts are of CIDRs of its card's mode, as the
// card's; those of excluded, held and quarantined ENIs are not in the card's.
type ENISummary struct {
	ID       string   `json:"id" null:"never"` // eni-…
	Card     int      `json:"card"`            // network card index
	Device   int      `json:"device"`          // device index on the card
	Total    int      `json:"total"`           // addresses
	Assigned int      `json:"assigned"`        // pods have them
	Cooling  int      `json:"cooling"`         // rest after their last pod
	Free     int      `json:"free"`            // neither of these
	Flags    []string `json:"flags"`           // primary, trunk, efa, excluded, held, quarantined

	SubnetID string `json:"subnetId,omitempty"` // subnet-…; left out when unknown
}

// Targets are the effective settings of the pool. 0 means that a target is not
// set, null that it is not known.
type Targets struct {
	WarmENI    *int `json:"warmEni"`    // WARM_ENI_TARGET
	WarmIP     *int `json:"warmIp"`     // WARM_IP_TARGET
	MinimumIP  *int `json:"minimumIp"`  // MINIMUM_IP_TARGET
	WarmPrefix *int `json:"warmPrefix"` // WARM_PREFIX_TARGET
	MaxENI     *int `json:"maxEni"`     // MAX_ENI
}

// Verdicts on max-pods.
const (
	MaxPodsOK      = "ok"
	MaxPodsOver    = "over"    // pods may be scheduled that can get no address
	MaxPodsUnder   = "under"   // some addresses can never be used
	MaxPodsUnknown = "unknown" // the instance type is not in the table
)

// MaxPodsUnlimited means more addresses than any max-pods, as on an IPv6 node.
const MaxPodsUnlimited = 1<<31 - 1

// MaxPods is kubelet's max-pods beside what the node's addresses allow.
type MaxPods struct {
	Value         *int          `json:"value"`         // kubelet's setting
	Source        string        `json:"source"`        // where the value was read: node, env, …
	Verdict       string        `json:"verdict"`       // ok, over, under, unknown
	IPCapacity    *int          `json:"ipCapacity"`    // pods that the addresses serve, those in the host's network included
	TotalCapacity *int          `json:"totalCapacity"` // with branch ENIs
	Recommended   *int          `json:"recommended"`   // by EKS's convention
	Terms         []MaxPodsTerm `json:"terms"`         // of the arithmetic, in its order

	AtRisk int `json:"atRisk,omitempty"` // pods without a branch ENI that can be scheduled beyond the addresses; left out: none
}

// MaxPodsOf converts a computation to its document form. value is kubelet's setting, nil if
// unknown.
func MaxPodsOf(value *int, source string, r maxpods.Result) *MaxPods {
	m := &MaxPods{
		Value: value, Source: source, Verdict: r.Verdict.Word(),
		IPCapacity: &r.IPCapacity, TotalCapacity: &r.TotalCapacity, AtRisk: r.Exposed,
	}
	if r.Recommended > 0 {
		m.Recommended = &r.Recommended
	}
	for _, t := range r.Terms() {
		m.Terms = append(m.Terms, MaxPodsTerm{Name: t.Name, Value: t.Value})
	}
	return m
}

// MaxPodsTerm is one term of the arithmetic, in its order. docs/introspection.md
// lists the names.
type MaxPodsTerm struct {
	Name  string `json:"name" null:"never"` // of the term
	Value int    `json:"value"`             // 2147483647 = more than any max-pods
}

// Trunk is the state of security groups for pods on the node.
type Trunk struct {
	Enabled     bool   `json:"enabled"`     // ENABLE_POD_ENI
	Supported   *bool  `json:"supported"`   // by the instance type
	ENIID       string `json:"eniId"`       // the attached trunk, "" = none
	BranchLimit *int   `json:"branchLimit"` // branch ENIs that the type can have
	BranchUsed  *int   `json:"branchUsed"`  // branch ENIs in use
}

// Operation is an EC2 operation in flight.
type Operation struct {
	Kind      string     `json:"kind" null:"never"` // attach, assign, release, detach
	ENIID     string     `json:"eniId"`             // of the network interface; empty for a new one
	Card      int        `json:"card"`              // network card index
	Addresses int        `json:"addresses"`         // secondary IPs it is about
	Prefixes  int        `json:"prefixes"`          // prefixes it is about
	Reason    string     `json:"reason"`            // the planner's
	StartedAt *time.Time `json:"startedAt"`         // when it was begun
}

// Backoff is a clock that holds something back.
type Backoff struct {
	Scope string    `json:"scope" null:"never"` // attach, release, eni, subnet, subnet-prefix
	ID    string    `json:"id"`                 // of the ENI or subnet, "" otherwise
	Until time.Time `json:"until"`              // when it ends
	Cause string    `json:"cause"`              // a code of daemon/api/cause
}

// MarshalJSON prints a zero Until, which means unknown, as null.
func (b Backoff) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Scope string     `json:"scope"`
		ID    string     `json:"id"`
		Until *time.Time `json:"until"`
		Cause string     `json:"cause"`
	}{b.Scope, b.ID, known(b.Until), b.Cause})
}

// Subnet is a subnet in which ENIs may be made.
type Subnet struct {
	ID        string     `json:"id" null:"never"` // subnet-…
	CIDR      string     `json:"cidr"`            // its IPv4 range
	Available *int       `json:"available"`       // free addresses by EC2's last count
	AsOf      *time.Time `json:"asOf"`            // time of that count
}

// LastError is one failure, repeated ones folded together.
type LastError struct {
	At        time.Time `json:"at"`        // of the last occurrence
	Operation string    `json:"operation"` // e.g. AttachNetworkInterface, ADD
	Cause     string    `json:"cause"`     // a code of daemon/api/cause
	Message   string    `json:"message"`   // one sentence, no secrets, no sandbox ids
	Count     int       `json:"count"`     // occurrences since the daemon started
}

// MarshalJSON prints a zero At, which means unknown, as null.
func (e LastError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		At        *time.Time `json:"at"`
		Operation string     `json:"operation"`
		Cause     string     `json:"cause"`
		Message   string     `json:"message"`
		Count     int        `json:"count"`
	}{known(e.At), e.Operation, e.Cause, e.Message, e.Count})
}

// EC2Calls counts the calls of one action.
type EC2Calls struct {
	Action string     `json:"action" null:"never"` // e.g. CreateNetworkInterface
	Calls  int        `json:"calls"`               // since the daemon started
	Errors int        `json:"errors"`              // of these
	LastAt *time.Time `json:"lastAt"`              // when the last was made

	Throttled int      `json:"throttled,omitempty"` // requests that EC2's limits refused, repetitions included
	PerSecond *float64 `json:"perSecond,omitempty"` // how often the daemon asks while EC2 throttles; left out while it does not
}

// RequestCounts counts ADDs or DELs.
type RequestCounts struct {
	Total  int            `json:"total"`  // since the daemon started
	Failed *int           `json:"failed"` // of these
	Causes map[string]int `json:"causes"` // failures by cause code
}
