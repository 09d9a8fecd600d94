package introspect

import (
	"encoding/json"
	"strings"
	"time"

	"cnictl/capacity/maxpods"
)

// APIVersion is the version of all our documents. Changes within it are additive.
const APIVersion = "cnictl/v1alpha1"

// Kinds of our documents.
const (
	KindSummary       = "NodeSummary"
	KindConfig        = "NodeConfig"
	KindPlan          = "NodePlan"
	KindFailures      = "NodeFailures"
	KindEvents        = "NodeEvents"
	KindPod           = "NodePod"
	KindLogs          = "NodeLogs"
	KindSubnetHistory = "NodeSubnetHistory"
	KindSchemas       = "SchemaList"
	KindFault         = "Fault"
)

// Summary answers /v1/summary: one node's pool in 1 to 2 KB. It contains no timestamp, so that
// an idle node's answer keeps its ETag; the time of the sample is the answer's Date header. A
// null member or list, and an empty string, mean unknown.
type Summary struct {
	APIVersion   string     `json:"apiVersion" null:"never"` // version of the document
	Kind         string     `json:"kind" null:"never"`       // NodeSummary
	Version      string     `json:"version"`                 // version of the daemon
	Node         string     `json:"node"`                    // Kubernetes node name
	InstanceID   string     `json:"instanceId"`              // i-…
	InstanceType string     `json:"instanceType"`            // such as m5.large
	IPFamily     string     `json:"ipFamily"`                // ipv4 or ipv6
	StartedAt    *time.Time `json:"startedAt"`               // when the daemon started

	CustomNetworking *bool `json:"customNetworking"` // the primary ENI gives no addresses to pods
	Cordoned         *bool `json:"cordoned"`         // the node is unschedulable
	Terminating      *bool `json:"terminating"`      // the daemon is shutting down

	Cards   []CardSummary `json:"cards"`   // sorted by card index
	ENIs    []ENISummary  `json:"enis"`    // managed ENIs, by card and device
	Targets Targets       `json:"targets"` // effective settings of the pool
	MaxPods *MaxPods      `json:"maxPods"` // kubelet's max-pods, and what the addresses allow
	Trunk   *Trunk        `json:"trunk"`   // security groups for pods

	CooldownSeconds *float64 `json:"cooldownSeconds"` // IP_COOLDOWN_PERIOD in seconds

	WaitingADDs  *int        `json:"waitingAdds"`  // ADDs that found no free address and are still waiting
	WaitingSince *time.Time  `json:"waitingSince"` // start of the longest current wait; null also if none waits
	Unplaced     *int        `json:"unplaced"`     // restored assignments whose address is in no known CIDR
	Operations   []Operation `json:"operations"`   // EC2 operations in flight
	Backoffs     []Backoff   `json:"backoffs"`     // back-offs in effect now
	Subnets      []Subnet    `json:"subnets"`      // subnets in which ENIs can be created
	LastErrors   []LastError `json:"lastErrors"`   // newest first, at most 5

	EC2Calls []EC2Calls     `json:"ec2Calls"` // calls to EC2 since the daemon started, by action
	ADDs     *RequestCounts `json:"adds"`     // CNI ADD requests since the daemon started
	DELs     *RequestCounts `json:"dels"`     // CNI DEL requests since the daemon started

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

// CardSummary is the pool of one network card. The address counts cover the CIDRs of the card's
// mode on ENIs that may serve pods. A daemon reports all members; if only metrics of a node
// could be read, some are unknown.
type CardSummary struct {
	Card         int    `json:"card"`         // network card index
	Mode         string `json:"mode"`         // secondary-ip or prefix
	ENIs         *int   `json:"enis"`         // attached and managed ENIs
	OtherENIs    *int   `json:"otherEnis"`    // attached but unmanaged ENIs: they occupy slots
	ENILimit     *int   `json:"eniLimit"`     // maximum of ENIs, including MAX_ENI
	SlotsPerENI  *int   `json:"slotsPerEni"`  // secondary IPs or prefixes per ENI
	AddressLimit *int   `json:"addressLimit"` // maximum of pod addresses on the card
	Total        int    `json:"total"`        // addresses of the pool
	Assigned     int    `json:"assigned"`     // addresses assigned to pods
	Cooling      *int   `json:"cooling"`      // addresses in cooldown; if unknown, free includes them
	Free         int    `json:"free"`         // addresses available to a pod now
	Prefixes     *int   `json:"prefixes"`     // /28 or /80 prefixes of the pool
	FreePrefixes *int   `json:"freePrefixes"` // prefixes without an assigned address

	StatedENILimit *StatedLimit `json:"statedEniLimit,omitempty"`    // why eniLimit is lower than the instance type's; omitted if it is not
	StatedSlots    *StatedLimit `json:"statedSlotsPerEni,omitempty"` // why slotsPerEni is lower than the instance type's; omitted if it is not
}

// StatedLimit is a limit below the instance type's, which EC2 stated by refusing a request. The
// daemon goes by it, and tries one more once an hour and after a restart.
type StatedLimit struct {
	Limit   int        `json:"limit"`   // what EC2 accepts
	OfType  int        `json:"ofType"`  // what the instance type is known to take
	Since   *time.Time `json:"since"`   // first refusal
	RetryAt *time.Time `json:"retryAt"` // one more is tried from then on, when the pool wants it
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

// ENISummary is one managed ENI. Like the counts of its card, its counts cover the CIDRs of the
// card's mode. The counts of the card exclude excluded, held and quarantined ENIs.
type ENISummary struct {
	ID       string   `json:"id" null:"never"` // eni-…
	Card     int      `json:"card"`            // network card index
	Device   int      `json:"device"`          // device index on the card
	Total    int      `json:"total"`           // addresses held
	Assigned int      `json:"assigned"`        // addresses assigned to pods
	Cooling  int      `json:"cooling"`         // addresses in cooldown
	Free     int      `json:"free"`            // addresses neither assigned nor cooling
	Flags    []string `json:"flags"`           // primary, trunk, efa, excluded, held, quarantined

	SubnetID string `json:"subnetId,omitempty"` // subnet-…; omitted if unknown
}

// Targets are the effective settings of the pool. 0 means that a target is not set, null that it
// is unknown.
type Targets struct {
	WarmENI    *int `json:"warmEni"`    // WARM_ENI_TARGET
	WarmIP     *int `json:"warmIp"`     // WARM_IP_TARGET
	MinimumIP  *int `json:"minimumIp"`  // MINIMUM_IP_TARGET
	WarmPrefix *int `json:"warmPrefix"` // WARM_PREFIX_TARGET
	MaxENI     *int `json:"maxEni"`     // MAX_ENI

	FromLabels []string `json:"fromLabels,omitempty"` // the variables that labels of the Node override; omitted if none
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

// MaxPods compares kubelet's max-pods with what the node's addresses allow.
type MaxPods struct {
	Value         *int          `json:"value"`         // kubelet's setting
	Source        string        `json:"source"`        // where the value was read: node, env, …
	Verdict       string        `json:"verdict"`       // ok, over, under, unknown
	IPCapacity    *int          `json:"ipCapacity"`    // pods that the addresses support, including those in the host network
	TotalCapacity *int          `json:"totalCapacity"` // the same, including branch ENIs
	Recommended   *int          `json:"recommended"`   // recommended value by EKS convention
	Terms         []MaxPodsTerm `json:"terms"`         // terms of the calculation, in order

	AtRisk int `json:"atRisk,omitempty"` // pods without a branch ENI that could be scheduled beyond the addresses; omitted if none
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

// MaxPodsTerm is one term of the calculation. docs/introspection.md lists the names.
type MaxPodsTerm struct {
	Name  string `json:"name" null:"never"` // name of the term
	Value int    `json:"value"`             // 2147483647 means more than any max-pods
}

// Trunk is the state of security groups for pods on the node.
type Trunk struct {
	Enabled       bool       `json:"enabled"`       // ENABLE_POD_ENI is on
	Supported     *bool      `json:"supported"`     // the instance type supports it; null if unknown
	ENIID         string     `json:"eniId"`         // the attached trunk; empty if none
	BranchLimit   *int       `json:"branchLimit"`   // branch ENIs that the instance type supports; null if unknown
	BranchUsed    *int       `json:"branchUsed"`    // branch ENIs in use: a daemon counts its pods that have one; null if unknown
	BranchWaiting *int       `json:"branchWaiting"` // pods that wait for a branch ENI; null if unknown
	WaitingSince  *time.Time `json:"waitingSince"`  // creation of the oldest pod that waits for one; null if there is none
}

// Operation is an EC2 operation in flight.
type Operation struct {
	Kind      string     `json:"kind" null:"never"` // attach, assign, release, detach
	ENIID     string     `json:"eniId"`             // network interface; empty for a new one
	Card      int        `json:"card"`              // network card index
	Addresses int        `json:"addresses"`         // number of secondary IPs
	Prefixes  int        `json:"prefixes"`          // number of prefixes
	Reason    string     `json:"reason"`            // the planner's reason
	StartedAt *time.Time `json:"startedAt"`         // start of the operation
}

// Backoff is a back-off that delays operations.
type Backoff struct {
	Scope string    `json:"scope" null:"never"` // attach, release, eni, subnet, subnet-prefix
	ID    string    `json:"id"`                 // ENI or subnet; otherwise empty
	Until time.Time `json:"until"`              // end of the back-off; null if unknown
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

// Object is what the back-off delays: an ENI or a subnet by its ID, else the scope.
func (b Backoff) Object() string {
	switch {
	case b.ID == "":
		return b.Scope
	case strings.HasPrefix(b.ID, b.Scope+"-"):
		return b.ID // it says itself what it is
	case b.Scope == "subnet-prefix":
		return "prefixes of " + b.ID
	}
	return b.Scope + " " + b.ID
}

// Subnet is a subnet in which ENIs can be created.
type Subnet struct {
	ID           string     `json:"id" null:"never"`        // subnet-…
	CIDR         string     `json:"cidr"`                   // IPv4 range; empty if unknown
	Available    *int       `json:"available"`              // free addresses by EC2's last count
	AsOf         *time.Time `json:"asOf"`                   // time of that count
	HistorySince *time.Time `json:"historySince,omitempty"` // time of the first count of it in /v1/subnet-history; omitted without any
}

// LastError is one failure; repeated ones are merged.
type LastError struct {
	At        time.Time `json:"at"`        // time of the last occurrence
	Operation string    `json:"operation"` // e.g. AttachNetworkInterface, ADD
	Cause     string    `json:"cause"`     // a code of daemon/api/cause
	Message   string    `json:"message"`   // one sentence, without secrets and sandbox ids
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

// EC2Calls counts the EC2 calls of one action.
type EC2Calls struct {
	Action string     `json:"action" null:"never"` // e.g. CreateNetworkInterface
	Calls  int        `json:"calls"`               // calls since the daemon started
	Errors int        `json:"errors"`              // calls that failed since the daemon started
	LastAt *time.Time `json:"lastAt"`              // time of the last call

	Throttled int      `json:"throttled,omitempty"` // requests rejected by EC2's rate limits, including retries
	PerSecond *float64 `json:"perSecond,omitempty"` // request rate of the daemon while EC2 throttles it; otherwise omitted
}

// RequestCounts counts ADDs or DELs.
type RequestCounts struct {
	Total  int            `json:"total"`  // requests since the daemon started
	Failed *int           `json:"failed"` // requests that failed since the daemon started
	Causes map[string]int `json:"causes"` // number of failures by cause code
}
