package introspect

import (
	"net/netip"
	"time"
)

// NodePlan answers /v1/plan: what the pool would do next, and why. It uses the same computation
// that the daemon acts on. With other targets in the query, it is what the daemon would do with
// these; the request changes nothing.
type NodePlan struct {
	APIVersion string          `json:"apiVersion" null:"never"` // version of the document
	Kind       string          `json:"kind" null:"never"`       // NodePlan
	WhatIf     bool            `json:"whatIf"`                  // some target comes from the query, not from the node
	Targets    Targets         `json:"targets"`                 // targets planned with; 0 if not set
	MaxPods    int             `json:"maxPods" null:"zero"`     // growth stops at this; 0 = unknown, no limit
	Actions    []PlannedAction `json:"actions"`                 // in the order in which they would start
	Blocked    []BlockedCard   `json:"blocked"`                 // cards whose ADDs would get no address now
	Unmet      []UnmetTarget   `json:"unmet"`                   // unreachable targets, for which no action is planned
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

// PlannedAction is one planned change of the pool, or a wait.
type PlannedAction struct {
	Kind     string         `json:"kind" null:"never"` // attach-eni, assign-addresses, assign-prefixes, unassign-addresses, unassign-prefixes, detach-eni, wait
	ENIID    string         `json:"eniId"`             // network interface; empty for a new one and for wait
	Card     *int           `json:"card"`              // network card index; null for wait
	Device   *int           `json:"device"`            // device index on the card; null for wait
	SubnetID string         `json:"subnetId"`          // subnet of the ENI; empty for wait, and if EC2 or the ENIConfig chooses it
	Count    int            `json:"count"`             // addresses or prefixes to assign or release; 0 for detach-eni and wait
	Prefixes bool           `json:"prefixes"`          // count is in /28 prefixes, not addresses
	CIDRs    []netip.Prefix `json:"cidrs"`             // secondary IPs or prefixes to release
	Reason   string         `json:"reason"`            // a stable word
	Title    string         `json:"title"`             // the one-line meaning of the reason
	Until    *time.Time     `json:"until"`             // when to plan again; only for wait, otherwise null
	Text     string         `json:"text" null:"never"` // summary in one line
}

// BlockedCard says why an ADD would get no address, and that none is on its way.
type BlockedCard struct {
	Card    int    `json:"card"`                 // network card index
	Cause   string `json:"cause" null:"never"`   // a code of daemon/api/cause
	Message string `json:"message" null:"never"` // one sentence with figures
}

// UnmetTarget is a target that the pool cannot reach with its current pods.
type UnmetTarget struct {
	Card     int    `json:"card"`                // network card index
	Target   string `json:"target" null:"never"` // WARM_ENI_TARGET, WARM_IP_TARGET, MINIMUM_IP_TARGET, WARM_PREFIX_TARGET
	Wanted   int    `json:"wanted"`              // value of the target, in the target's unit
	Possible int    `json:"possible"`            // highest reachable value, in the same unit; 0 for an ignored target
	Reason   string `json:"reason" null:"never"` // what prevents it, a stable word: cordoned, max-pods, no-usable-subnet, eni-limit, address-limit, stated-limit, mode, overridden
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
