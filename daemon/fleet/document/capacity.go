package document

import (
	"time"

	"cnictl/daemon/api/introspect"
)

// Kinds of documents of cnictl capacity.
const (
	KindCapacityComparison     = "CapacityComparison"
	KindCapacityForecastList   = "CapacityForecastList"
	KindCapacityBacktestList   = "CapacityBacktestList"
	KindCapacityTypeList       = "CapacityTypeList"
	KindCapacitySubnetList     = "CapacitySubnetList"
	KindCapacityWhatIfList     = "CapacityWhatIfList"
	KindCapacityRecommendation = "CapacityRecommendation"
	KindCapacityRefresh        = "CapacityRefresh"
)

// CapacityTypeList is what cnictl capacity type shows.
type CapacityTypeList struct {
	APIVersion string         `json:"apiVersion" null:"never"` // version of the document
	Kind       string         `json:"kind" null:"never"`       // CapacityTypeList
	Metadata   ListMeta       `json:"metadata"`                // standard Kubernetes list metadata
	Items      []CapacityType `json:"items"`                   // sorted by type name
	NodeGroup  *NodeGroupType `json:"nodeGroup"`               // max-pods of a managed node group with all these types; null if only one type was given
	Partial    bool           `json:"partial"`                 // always false: no node is read
	Errors     []NodeError    `json:"errors"`                  // always empty
	SampledAt  time.Time      `json:"sampledAt"`               // time of the computation
}

// CapacityType is an instance type with its max-pods under each rule.
type CapacityType struct {
	InstanceType string         `json:"instanceType" null:"never"` // such as m5.large
	ENIs         int            `json:"enis"`                      // maximum on the default network card
	IPv4PerENI   int            `json:"ipv4PerEni"`                // IPv4 addresses per ENI, including its primary one
	VCPUs        *int           `json:"vcpus"`                     // number of vCPUs; null if unknown
	MemoryMiB    *int           `json:"memoryMiB"`                 // memory in MiB; null if unknown
	IPCapacity   *int           `json:"ipCapacity"`                // pods that can run without branch ENIs; null if unlimited (IPv6)
	Total        *int           `json:"totalCapacity"`             // pods that can run, including those on branch ENIs; null if unlimited (IPv6)
	Rules        []CapacityRule `json:"rules"`                     // published rules first, ours last
	Warnings     []string       `json:"warnings"`                  // for example, settings without effect
	Explained    []string       `json:"explained"`                 // where published sources disagree about the type; only with --explain
	RefreshedAt  *time.Time     `json:"refreshedAt"`               // when capacity refresh read the facts from EC2; null if built in
}

// CapacityRule is the max-pods of an instance type under one rule.
type CapacityRule struct {
	Name    string                   `json:"name" null:"never"`   // such as nodeadm
	MaxPods *int                     `json:"maxPods"`             // max-pods by this rule; null if it gives none, see why
	Terms   []introspect.MaxPodsTerm `json:"terms"`               // in the order of the calculation
	Source  string                   `json:"source" null:"never"` // where the rule is published
	Why     string                   `json:"why"`                 // remark on the number, or why it is missing; may be empty
}

// NodeGroupType is the max-pods that a managed node group of several types sets on all its nodes.
type NodeGroupType struct {
	MaxPods      int    `json:"maxPods"`                   // smallest max-pods of its types
	InstanceType string `json:"instanceType" null:"never"` // type that determines it
}

// CapacitySubnetList is what cnictl capacity subnet shows.
type CapacitySubnetList struct {
	APIVersion  string           `json:"apiVersion" null:"never"` // version of the document
	Kind        string           `json:"kind" null:"never"`       // CapacitySubnetList
	Metadata    ListMeta         `json:"metadata"`                // standard Kubernetes list metadata
	Node        CapacityNode     `json:"node"`                    // the planned node
	Items       []CapacitySubnet `json:"items"`                   // in the order given
	Nodes       int              `json:"nodes"`                   // nodes that fit into all the subnets, in the worst case
	NodesAtBest int              `json:"nodesAtBest"`             // nodes if EC2 packs single addresses tightly
	Pods        int              `json:"pods"`                    // pods on these nodes, in the worst case
	PodsAtBest  int              `json:"podsAtBest"`              // pods if EC2 packs single addresses tightly
	Partial     bool             `json:"partial"`                 // always false: no node is read
	Errors      []NodeError      `json:"errors"`                  // always empty
	SampledAt   time.Time        `json:"sampledAt"`               // time of the computation
}

// CapacityNode is a planned node.
type CapacityNode struct {
	InstanceType    string `json:"instanceType" null:"never"` // such as m5.large
	Pods            int    `json:"pods"`                      // pods with an address from the pool
	ENIs            int    `json:"enis"`                      // attached ENIs
	Addresses       int    `json:"addresses"`                 // addresses for pods
	Prefixes        int    `json:"prefixes"`                  // prefixes that contain these addresses; 0 without prefix delegation
	Wasted          int    `json:"wasted"`                    // of these addresses, not used by a pod
	SubnetAddresses int    `json:"subnetAddresses"`           // addresses taken from subnets, including the ENIs' own
}

// Roles of a subnet of a planned cluster.
const (
	RolePods  = "pods"  // interfaces that serve pods
	RoleNodes = "nodes" // primary interfaces alone, with custom networking
)

// CapacitySubnet is a subnet with the nodes and pods that fit into it.
type CapacitySubnet struct {
	ID          string `json:"id"`                // id of an existing subnet; null if it is only planned
	CIDR        string `json:"cidr" null:"never"` // IPv4 block
	Role        string `json:"role" null:"never"` // pods or nodes
	Usable      int    `json:"usable"`            // addresses, excluding those reserved by EC2
	Used        int    `json:"used"`              // addresses already in use
	Free        int    `json:"free"`              // usable minus used
	FreeBlocks  int    `json:"freeBlocks"`        // /28 blocks that can become prefixes, at best
	PerNode     int    `json:"perNode"`           // addresses a node takes from this subnet
	Nodes       int    `json:"nodes"`             // nodes that fit, in the worst case
	NodesAtBest int    `json:"nodesAtBest"`       // nodes if EC2 packs single addresses tightly
	Pods        int    `json:"pods"`              // pods on these nodes, in the worst case; 0 in a subnet of primary ENIs
	PodsAtBest  int    `json:"podsAtBest"`        // pods if EC2 packs single addresses tightly
}

// CapacityWhatIfList is what cnictl capacity whatif shows: a prediction.
type CapacityWhatIfList struct {
	APIVersion string           `json:"apiVersion" null:"never"` // version of the document
	Kind       string           `json:"kind" null:"never"`       // CapacityWhatIfList
	Metadata   ListMeta         `json:"metadata"`                // standard Kubernetes list metadata
	Model      string           `json:"model" null:"never"`      // ours or original
	Nodes      int              `json:"nodes"`                   // simulated nodes
	Pods       int              `json:"pods"`                    // pods on these nodes at the start
	Seconds    float64          `json:"seconds"`                 // simulated time in seconds
	Items      []CapacityWhatIf `json:"items"`                   // today's settings, then the changed ones, if any
	Partial    bool             `json:"partial"`                 // the simulation was cut short, or some nodes could not be read
	Errors     []NodeError      `json:"errors"`                  // nodes that could not be read
	SampledAt  time.Time        `json:"sampledAt"`               // time of the computation
}

// CapacityWhatIf predicts the addresses that nodes hold, and the EC2 requests, under some settings.
type CapacityWhatIf struct {
	Name        string            `json:"name" null:"never"` // today or changed
	Settings    []CapacitySetting `json:"settings"`          // changed settings, as the daemon's environment variables
	Held        CapacitySpread    `json:"held"`              // subnet addresses held by all nodes
	Wasted      CapacitySpread    `json:"wasted"`            // of these, addresses for pods that no pod uses
	Calls       CapacityCalls     `json:"calls"`             // requests to EC2
	ADDs        int               `json:"adds"`              // answered ADDs
	Waited      int               `json:"waited"`            // ADDs that did not get an address immediately
	Failed      int               `json:"failed"`            // ADDs that failed and were retried
	Waiting     int               `json:"waiting"`           // pods still waiting at the end
	LongestWait float64           `json:"longestSeconds"`    // longest wait of a pod, in seconds
	Unplaced    int               `json:"unplaced"`          // pods for which no node had room
	Failures    []CapacityFailure `json:"failures"`          // nodes on which ADDs fail, worst first
	Upstream    *CapacityOutcome  `json:"original"`          // outcome with upstream's daemon; null if it is the same, or if upstream is the model
	Different   []string          `json:"different"`         // why upstream's outcome differs; empty if original is null
}

// CapacitySetting is a setting with a value.
type CapacitySetting struct {
	Name  string `json:"name" null:"never"`  // such as WARM_IP_TARGET
	Value string `json:"value" null:"never"` // as the daemon reads it
}

// CapacitySpread summarizes a number over time.
type CapacitySpread struct {
	Avg float64 `json:"avg"` // average over time
	P95 int     `json:"p95"` // 95th percentile over time
	Max int     `json:"max"` // maximum
}

// CapacityCalls are requests to EC2 per hour. A new interface takes four, a detached one three.
type CapacityCalls struct {
	PerHour  float64 `json:"perHour"`         // all requests
	Attaches float64 `json:"attachesPerHour"` // interfaces created and attached
	Assigns  float64 `json:"assignsPerHour"`  // assignments of addresses or prefixes
	Releases float64 `json:"releasesPerHour"` // releases of addresses or prefixes
	Detaches float64 `json:"detachesPerHour"` // interfaces detached and deleted
	Refused  float64 `json:"refusedPerHour"`  // of these operations, refused because the subnet lacked addresses
}

// CapacityOutcome is the short form of a prediction.
type CapacityOutcome struct {
	Held    float64 `json:"held"`         // subnet addresses held, on average
	Wasted  float64 `json:"wasted"`       // of these, addresses for pods that no pod uses
	PerHour float64 `json:"callsPerHour"` // requests to EC2 per hour
	Failed  int     `json:"failed"`       // failed ADDs
	Waiting int     `json:"waiting"`      // pods still waiting at the end
}

// CapacityRecommendation is what cnictl capacity recommend shows.
type CapacityRecommendation struct {
	APIVersion    string            `json:"apiVersion" null:"never"` // version of the document
	Kind          string            `json:"kind" null:"never"`       // CapacityRecommendation
	Metadata      ListMeta          `json:"metadata"`                // standard Kubernetes list metadata
	Goal          string            `json:"goal" null:"never"`       // balanced, fewest-addresses, fewest-calls or burst
	Nodes         int               `json:"nodes"`                   // simulated nodes
	Seconds       float64           `json:"seconds"`                 // simulated time for each candidate, in seconds
	Today         CapacityPoint     `json:"today"`                   // outcome of today's settings
	Items         []CapacityPoint   `json:"items"`                   // the trade-off: settings that no others beat in both addresses and requests; fewest addresses first
	CallBound     *float64          `json:"callBound"`               // balanced: the sum of the requests to EC2 per hour that each node should not exceed, 12 or what it sends today; null for other goals
	Chosen        *CapacityPoint    `json:"chosen"`                  // best settings for the goal; null if none within the bounds meet it
	Why           string            `json:"why"`                     // why these were chosen; empty if none were
	Cheaper       *CapacityPoint    `json:"cheaper"`                 // the next item with fewer addresses; null if there is none
	NotCheaper    string            `json:"notCheaper"`              // why that was not chosen; empty if nothing was
	FewerCalls    *CapacityPoint    `json:"fewerCalls"`              // the next item with fewer requests; null if there is none
	NotFewerCalls string            `json:"notFewerCalls"`           // why that was not chosen; empty if nothing was
	Closest       *CapacityPoint    `json:"closest"`                 // if no settings meet the goal, those with the fewest failed ADDs
	Groups        []CapacityGroup   `json:"groups"`                  // effect of the chosen settings by instance type and mode
	Candidates    int               `json:"candidates"`              // number of combinations of settings within the bounds
	Tried         int               `json:"tried"`                   // candidates simulated
	Patch         string            `json:"patch"`                   // strategic merge patch of the DaemonSet, YAML; empty if nothing changes
	NodeGroup     string            `json:"nodeGroup"`               // label=value of the node group, if nodes were named and are all of one, and something changes; otherwise empty
	Labels        map[string]string `json:"labels"`                  // labels of Nodes that give them the chosen targets; empty if nothing changes
	Risk          string            `json:"risk"`                    // what applying the patch may do, as in fixes of the doctor; empty without a patch
	Effects       []string          `json:"sideEffects"`             // what else the patch does; empty without a patch
	Partial       bool              `json:"partial"`                 // not all candidates were tried, or some nodes could not be read
	Errors        []NodeError       `json:"errors"`                  // nodes that could not be read
	SampledAt     time.Time         `json:"sampledAt"`               // time of the computation
}

// CapacityGroup compares settings for the nodes of one type and mode.
type CapacityGroup struct {
	InstanceType string        `json:"instanceType" null:"never"` // such as m5.large
	Mode         string        `json:"mode" null:"never"`         // prefix or secondary-ip
	Nodes        int           `json:"nodes"`                     // nodes of this type and mode
	Today        CapacityPoint `json:"today"`                     // outcome of today's settings
	Chosen       CapacityPoint `json:"chosen"`                    // outcome of the chosen settings
}

// CapacityPoint is the outcome of some settings.
type CapacityPoint struct {
	Settings []CapacitySetting `json:"settings"`     // settings that differ from today's
	Held     float64           `json:"held"`         // subnet addresses held, on average
	Wasted   float64           `json:"wasted"`       // of these, addresses for pods that no pod uses
	PerHour  float64           `json:"callsPerHour"` // requests to EC2 per hour
	Waited   int               `json:"waited"`       // ADDs that did not get an address immediately
	Failed   int               `json:"failed"`       // ADDs that failed and were retried
	Refused  int               `json:"refused"`      // operations that EC2 refused because the subnet lacked addresses
}

// CapacityComparison is what cnictl capacity compare shows.
type CapacityComparison struct {
	APIVersion string          `json:"apiVersion" null:"never"` // version of the document
	Kind       string          `json:"kind" null:"never"`       // CapacityComparison
	Metadata   ListMeta        `json:"metadata"`                // standard Kubernetes list metadata
	Pods       int             `json:"pods"`                    // pods to place
	Items      []CapacityFleet `json:"items"`                   // cheapest first; without prices, fewest addresses first
	Partial    bool            `json:"partial"`                 // interrupted: types are missing
	Errors     []NodeError     `json:"errors"`                  // always empty
	SampledAt  time.Time       `json:"sampledAt"`               // time of the computation
}

// CapacityFleet is what the pods need on nodes of one type.
type CapacityFleet struct {
	InstanceType string   `json:"instanceType" null:"never"` // such as m5.large
	VCPUs        *int     `json:"vcpus"`                     // vCPUs per node; null if unknown
	MemoryMiB    *int     `json:"memoryMiB"`                 // memory per node in MiB; null if unknown
	MaxPods      *int     `json:"maxPods"`                   // max-pods per node; null if unknown, see why
	PodsPerNode  *int     `json:"podsPerNode"`               // maximum pods per node with an address from the pool; null if no pod fits
	Bound        string   `json:"bound"`                     // what limits the pods per node: max-pods, addresses, cpu or memory; may be empty
	Nodes        *int     `json:"nodes"`                     // nodes needed for the pods; null if no number is enough
	PodMilliCPU  *int     `json:"podMilliCPU"`               // thousandths of a vCPU per pod on all nodes, after kubeReserved; null if unknown
	PodMemoryMiB *int     `json:"podMemoryMiB"`              // memory per pod in MiB on all nodes, after kubeReserved; null if unknown
	Addresses    *int     `json:"addresses"`                 // subnet addresses taken by all nodes
	Wasted       *int     `json:"wasted"`                    // addresses for pods that no pod uses
	HourlyUSD    *float64 `json:"hourlyUSD"`                 // cost of all nodes per hour, on demand; null without a price
	SpotUSD      *float64 `json:"spotUSD"`                   // cost of all nodes per hour, as spot instances; null without a price
	Why          string   `json:"why"`                       // why figures are missing; may be empty
}

// CapacityForecastList is what cnictl capacity forecast shows.
type CapacityForecastList struct {
	APIVersion string             `json:"apiVersion" null:"never"` // version of the document
	Kind       string             `json:"kind" null:"never"`       // CapacityForecastList
	Metadata   ListMeta           `json:"metadata"`                // standard Kubernetes list metadata
	Items      []CapacityForecast `json:"items"`                   // earliest to run out first
	Partial    bool               `json:"partial"`                 // the recordings were not read to the end, or not all nodes
	Errors     []NodeError        `json:"errors"`                  // nodes that could not be read; empty for recordings
	SampledAt  time.Time          `json:"sampledAt"`               // time of the last count read
}

// CapacityForecast estimates when a subnet runs out of addresses. 80 % of the simulated futures
// run out between early and late.
type CapacityForecast struct {
	ID            string     `json:"id"`            // such as subnet-0123456789abcdef0
	Zone          string     `json:"zone"`          // availability zone of the nodes; empty if unknown
	CIDR          string     `json:"cidr"`          // IPv4 block
	Available     *int       `json:"available"`     // free addresses by EC2's last count
	AsOf          *time.Time `json:"asOf"`          // time of that count
	Readings      int        `json:"readings"`      // number of counts read
	Seconds       float64    `json:"seconds"`       // time from the first count to the last, in seconds
	ChangePerHour *float64   `json:"changePerHour"` // change of the free addresses per hour; null without a forecast
	Share         *float64   `json:"share"`         // fraction of the simulated futures that run out before the horizon; null without a forecast
	Early         *time.Time `json:"early"`         // time by which 10 % of the futures have run out; null if not before the horizon
	Likely        *time.Time `json:"likely"`        // time by which 50 % have run out, or a straight line has; null if not before the horizon
	Late          *time.Time `json:"late"`          // time by which 90 % have run out; null if not before the horizon
	Horizon       *time.Time `json:"horizon"`       // end of the forecast; null without a forecast
	Why           string     `json:"why"`           // why there is no forecast, or that the subnet has run out; may be empty
	Left          string     `json:"left"`          // time left and how sure that is, such as "~14h, 4 readings"; empty if unknown
	LeftSeconds   *float64   `json:"leftSeconds"`   // until it is as likely empty as not; null if unknown, or too far ahead
}

// CapacityBacktestList is what cnictl capacity forecast --backtest shows.
type CapacityBacktestList struct {
	APIVersion string             `json:"apiVersion" null:"never"` // version of the document
	Kind       string             `json:"kind" null:"never"`       // CapacityBacktestList
	Metadata   ListMeta           `json:"metadata"`                // standard Kubernetes list metadata
	Items      []CapacityBacktest `json:"items"`                   // by subnet and time ahead
	Partial    bool               `json:"partial"`                 // something that was asked for was not read
	Errors     []NodeError        `json:"errors"`                  // nodes that could not be read
	SampledAt  time.Time          `json:"sampledAt"`               // time of the last count read
}

// CapacityBacktest is by how much forecasts of a subnet's free addresses were wrong. Errors are means of
// the difference in addresses; null without a case.
type CapacityBacktest struct {
	ID            string   `json:"id" null:"never"` // such as subnet-0123456789abcdef0
	AheadSeconds  float64  `json:"aheadSeconds"`    // how far ahead the forecasts looked, in seconds
	Cases         int      `json:"cases"`           // forecasts that were compared with a count
	Error         *float64 `json:"error"`           // of the forecasts
	LastValue     *float64 `json:"lastValue"`       // error of the last count instead
	Line          *float64 `json:"line"`            // error of the straight line that fits best
	LastWeek      *float64 `json:"lastWeek"`        // error of the count at the same time a week before; null also if the counts do not go back that far
	Within        *float64 `json:"within"`          // share of the counts within the band of 80 %
	CoversSeconds float64  `json:"coversSeconds"`   // time from the first count to the last, in seconds
}

// CapacityRefresh is what cnictl capacity refresh shows and caches: the instance types for which
// EC2 and the built-in table differ.
type CapacityRefresh struct {
	APIVersion string          `json:"apiVersion" null:"never"` // version of the document
	Kind       string          `json:"kind" null:"never"`       // CapacityRefresh
	Metadata   ListMeta        `json:"metadata"`                // standard Kubernetes list metadata
	Region     string          `json:"region" null:"never"`     // AWS region
	Types      int             `json:"types"`                   // number of types offered in the region
	Items      []CapacityFacts `json:"items"`                   // types that differ from the built-in table, by name
	Partial    bool            `json:"partial"`                 // stopped by an interrupt or an error: types are missing, and nothing was cached
	Errors     []NodeError     `json:"errors"`                  // always empty
	SampledAt  time.Time       `json:"sampledAt"`               // when EC2 was read
}

// CapacityFacts is what EC2 reports about an instance type.
type CapacityFacts struct {
	InstanceType       string           `json:"instanceType" null:"never"` // such as m5.large
	New                bool             `json:"new"`                       // not in the built-in table
	ENIs               int              `json:"enis"`                      // maximum on the default network card
	NetworkCards       []CapacityCard   `json:"networkCards"`              // sorted by index
	DefaultNetworkCard int              `json:"defaultNetworkCard"`        // index of the default network card
	IPv4PerENI         int              `json:"ipv4PerEni"`                // IPv4 addresses per ENI, including its primary one
	IPv6PerENI         *int             `json:"ipv6PerEni"`                // IPv6 addresses per ENI; 0 without IPv6, null if unknown
	Hypervisor         string           `json:"hypervisor"`                // nitro or xen; empty for bare metal
	BareMetal          bool             `json:"bareMetal"`                 // no hypervisor
	VCPUs              *int             `json:"vcpus"`                     // number of vCPUs; null if unknown
	MemoryMiB          *int             `json:"memoryMiB"`                 // memory in MiB; null if unknown
	Arch               string           `json:"arch"`                      // amd64 or arm64; empty if unknown
	Changes            []CapacityChange `json:"changes"`                   // differences from the built-in table; empty for a new type
}

// CapacityCard is a network card of an instance type.
type CapacityCard struct {
	Index int `json:"index"` // from 0
	ENIs  int `json:"enis"`  // maximum number of ENIs
}

// CapacityChange is one difference between EC2 and the built-in table.
type CapacityChange struct {
	Name string `json:"name" null:"never"` // name of the changed member of the item
	From string `json:"from"`              // value in the built-in table; empty if unknown
	To   string `json:"to"`                // value reported by EC2
}

// CapacityFailure is a node on which ADDs fail in a simulation.
type CapacityFailure struct {
	Node    string `json:"node" null:"never"` // name of the node
	Failed  int    `json:"failed"`            // ADDs that fail, and are retried
	Waiting int    `json:"waiting"`           // pods that wait at the end
	Why     string `json:"why" null:"never"`  // reason, in words
}
