package introspect

import (
	"net/netip"
	"time"
)

// NodePlan answers /v1/plan: what the pool would do next, and why. It is the same
// computation that the daemon acts on; with other targets in the query it is what
// the daemon would do under them, and nothing is done.
type NodePlan struct {
	APIVersion string          `json:"apiVersion" null:"never"` // version of the document
	Kind       string          `json:"kind" null:"never"`       // NodePlan
	WhatIf     bool            `json:"whatIf"`                  // some target is the query's, not the node's
	Targets    Targets         `json:"targets"`                 // those planned with; 0 = not set
	MaxPods    int             `json:"maxPods" null:"zero"`     // growth stops at it; 0 = unknown, no stop
	Actions    []PlannedAction `json:"actions"`                 // in the order in which they would be begun
	Blocked    []BlockedCard   `json:"blocked"`                 // cards whose ADDs would get nothing now
	Unmet      []UnmetTarget   `json:"unmet"`                   // targets out of reach, for which there is no action
}

// Kinds of planned actions.
const (
	ActionAttachENI         = "attach-eni"
	ActionAssignAddresses   = "assign-addresses"
	ActionAssignPrefixes    = "assign-prefixes"
	ActionUnassignAddresses = "unassign-addresses"
	ActionUnassignPrefixes  = "unassign-prefixes"
	ActionDetachENI         = "detach-eni"
	ActionWait              = "wait"
)

// PlannedAction is one thing to do.
type PlannedAction struct {
	Kind     string         `json:"kind" null:"never"` // attach-eni, assign-addresses, assign-prefixes, unassign-addresses, unassign-prefixes, detach-eni, wait
	ENIID    string         `json:"eniId"`             // of the network interface; empty for a new one and for wait
	Card     *int           `json:"card"`              // network card index; null for wait
	Device   *int           `json:"device"`            // device index on the card; null for wait
	SubnetID string         `json:"subnetId"`          // of the network interface; empty when EC2 or the ENIConfig decides, and for wait
	Count    int            `json:"count"`             // addresses or prefixes to assign or release; 0 for detach-eni and wait
	Prefixes bool           `json:"prefixes"`          // count is in /28 prefixes, not addresses
	CIDRs    []netip.Prefix `json:"cidrs"`             // those given back
	Reason   string         `json:"reason"`            // why, a stable word
	Title    string         `json:"title"`             // the one-line meaning of the reason
	Until    *time.Time     `json:"until"`             // wait: when to plan again; null otherwise
	Text     string         `json:"text" null:"never"` // the whole in one line
}

// BlockedCard says why an ADD would get no address and none is on its way.
type BlockedCard struct {
	Card    int    `json:"card"`                 // network card index
	Cause   string `json:"cause" null:"never"`   // a code of daemon/api/cause
	Message string `json:"message" null:"never"` // one sentence with the figures
}

// UnmetTarget is a target that the pool will not reach with the pods it has.
type UnmetTarget struct {
	Card     int    `json:"card"`                // network card index
	Target   string `json:"target" null:"never"` // WARM_ENI_TARGET, WARM_IP_TARGET, MINIMUM_IP_TARGET, WARM_PREFIX_TARGET
	Wanted   int    `json:"wanted"`              // in the target's unit
	Possible int    `json:"possible"`            // the most of it, in the same unit; 0 for a target that is not looked at
	Reason   string `json:"reason" null:"never"` // what is in the way, a stable word: cordoned, max-pods, no-usable-subnet, eni-limit, address-limit, mode, overridden
	Title    string `json:"title"`               // the one-line meaning of the reason
}

// PlanQuery holds the targets of a what-if plan; nil keeps the node's own.
type PlanQuery struct {
	WarmENI    *int // warmEni, WARM_ENI_TARGET
	WarmIP     *int // warmIp, WARM_IP_TARGET
	MinimumIP  *int // minimumIp, MINIMUM_IP_TARGET
	WarmPrefix *int // warmPrefix, WARM_PREFIX_TARGET
	MaxENI     *int // maxEni, MAX_ENI
	MaxPods    *int // maxPods, kubelet's
}

// MaxTarget bounds each number of a PlanQuery.
const MaxTarget = maxSetting

// Parameters lists the query parameters in order, with the members they set.
func (q *PlanQuery) Parameters() []PlanParameter {
	return []PlanParameter{
		{"warmEni", &q.WarmENI}, {"warmIp", &q.WarmIP}, {"minimumIp", &q.MinimumIP},
		{"warmPrefix", &q.WarmPrefix}, {"maxEni", &q.MaxENI}, {"maxPods", &q.MaxPods},
	}
}

// PlanParameter is one query parameter of /v1/plan.
type PlanParameter struct {
	Name  string
	Value **int
}
