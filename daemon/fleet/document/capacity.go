package document

import (
	"time"

	"cnictl/daemon/api/introspect"
)

// Kinds of documents of cnictl capacity.
const (
	KindCapacityComparison     = "CapacityComparison"
	KindCapacityForecastList   = "CapacityForecastList"
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
	Metadata   ListMeta       `json:"metadata"`                // as lists of Kubernetes have
	Items      []CapacityType `json:"items"`                   // by name of the type
	NodeGroup  *NodeGroupType `json:"nodeGroup"`               // what a managed node group of these types applies; null: of one type
	Partial    bool           `json:"partial"`                 // never: no node is read
	Errors     []NodeError    `json:"errors"`                  // none
	SampledAt  time.Time      `json:"sampledAt"`               // when it was computed
}

// CapacityType is an instance type with the max-pods that each rule gives it.
type CapacityType struct {
	InstanceType string         `json:"instanceType" null:"never"` // such as m5.large
	ENIs         int            `json:"enis"`                      // of the default network card
	IPv4PerENI   int            `json:"ipv4PerEni"`                // its primary address included
	VCPUs        *int           `json:"vcpus"`                     // null when unknown
	MemoryMiB    *int           `json:"memoryMiB"`                 // null when unknown
	IPCapacity   *int           `json:"ipCapacity"`                // pods that can run without branch ENIs; null: no limit (IPv6)
	Total        *int           `json:"totalCapacity"`             // with branch ENIs; null: no limit (IPv6)
	Rules        []CapacityRule `json:"rules"`                     // published ones, ours last
	Warnings     []string       `json:"warnings"`                  // settings without effect, and the like
	Explained    []string       `json:"explained"`                 // where published sources disagree about the type, with --explain
	RefreshedAt  *time.Time     `json:"refreshedAt"`               // when EC2 reported the facts, by capacity refresh; null: built in
}

// CapacityRule is what one rule gives.
type CapacityRule struct {
	Name    string                   `json:"name" null:"never"`   // such as nodeadm
	MaxPods *int                     `json:"maxPods"`             // null: none, and why says why not
	Terms   []introspect.MaxPodsTerm `json:"terms"`               // in the order of the computation
	Source  string                   `json:"source" null:"never"` // where the rule is published
	Why     string                   `json:"why"`                 // what one should know about the number; may be empty
}

// NodeGroupType is what a managed node group of several types applies to all its nodes.
type NodeGroupType struct {
	MaxPods      int    `json:"maxPods"`                   // the smallest of its types
	InstanceType string `json:"instanceType" null:"never"` // the one that sets it
}

// CapacitySubnetList is what cnictl capacity subnet shows.
type CapacitySubnetList struct {
	APIVersion  string           `json:"apiVersion" null:"never"` // version of the document
	Kind        string           `json:"kind" null:"never"`       // CapacitySubnetList
	Metadata    ListMeta         `json:"metadata"`                // as lists of Kubernetes have
	Node        CapacityNode     `json:"node"`                    // what is placed
	Items       []CapacitySubnet `json:"items"`                   // in the order given
	Nodes       int              `json:"nodes"`                   // that fit into all of them, at worst
	NodesAtBest int              `json:"nodesAtBest"`             // where EC2 packs single addresses
	Pods        int              `json:"pods"`                    // of these nodes, at worst
	PodsAtBest  int              `json:"podsAtBest"`              // where EC2 packs single addresses
	Partial     bool             `json:"partial"`                 // never: no node is read
	Errors      []NodeError      `json:"errors"`                  // none
	SampledAt   time.Time        `json:"sampledAt"`               // when it was computed
}

// CapacityNode is a planned node.
type CapacityNode struct {
	InstanceType    string `json:"instanceType" null:"never"` // such as m5.large
	Pods            int    `json:"pods"`                      // with an address of the pool
	ENIs            int    `json:"enis"`                      // attached
	Addresses       int    `json:"addresses"`                 // that pods can have
	Prefixes        int    `json:"prefixes"`                  // of which these addresses are, 0 without prefix delegation
	Wasted          int    `json:"wasted"`                    // of these no pod has
	SubnetAddresses int    `json:"subnetAddresses"`           // with the interfaces' own
}

// Roles of a subnet of a planned cluster.
const (
	RolePods  = "pods"  // interfaces that serve pods
	RoleNodes = "nodes" // primary interfaces alone, with custom networking
)

// CapacitySubnet is a subnet and what fits into it.
type CapacitySubnet struct {
	ID          string `json:"id"`                // of a subnet of the cluster; null: a planned one
	CIDR        string `json:"cidr" null:"never"` // IPv4 block
	Role        string `json:"role" null:"never"` // pods or nodes
	Usable      int    `json:"usable"`            // addresses, less those that EC2 keeps
	Used        int    `json:"used"`              // by others
	Free        int    `json:"free"`              // usable, less these
	FreeBlocks  int    `json:"freeBlocks"`        // /28s that may become prefixes, at best
	PerNode     int    `json:"perNode"`           // addresses that a node holds here
	Nodes       int    `json:"nodes"`             // that fit, at worst
	NodesAtBest int    `json:"nodesAtBest"`       // where EC2 packs single addresses
	Pods        int    `json:"pods"`              // of these nodes, at worst; 0 in a subnet of primary interfaces
	PodsAtBest  int    `json:"podsAtBest"`        // where EC2 packs single addresses
}

// CapacityWhatIfList is what cnictl capacity whatif shows: a prediction.
type CapacityWhatIfList struct {
	APIVersion string           `json:"apiVersion" null:"never"` // version of the document
	Kind       string           `json:"kind" null:"never"`       // CapacityWhatIfList
	Metadata   ListMeta         `json:"metadata"`                // as lists of Kubernetes have
	Model      string           `json:"model" null:"never"`      // ours or original
	Nodes      int              `json:"nodes"`                   // that were simulated
	Pods       int              `json:"pods"`                    // on these at the start
	Seconds    float64          `json:"seconds"`                 // that were simulated
	Items      []CapacityWhatIf `json:"items"`                   // today's settings, then changed ones if any are
	Partial    bool             `json:"partial"`                 // not all was simulated, or some nodes could not be read
	Errors     []NodeError      `json:"errors"`                  // nodes that could not be read
	SampledAt  time.Time        `json:"sampledAt"`               // when it was computed
}

// CapacityWhatIf is what nodes hold, and what that costs, under some settings.
type CapacityWhatIf struct {
	Name      string            `json:"name" null:"never"` // today or changed
	Settings  []CapacitySetting `json:"settings"`          // that were changed, as the daemon's environment has them
	Held      CapacitySpread    `json:"held"`              // addresses of subnets that all nodes hold
	Wasted    CapacitySpread    `json:"wasted"`            // of these, addresses for pods that no pod has
	Calls     CapacityCalls     `json:"calls"`             // to EC2
	ADDs      int               `json:"adds"`              // that were answered
	Waited    int               `json:"waited"`            // ADDs that found no address at once
	Failed    int               `json:"failed"`            // ADDs that failed, and were repeated
	Waiting   int               `json:"waiting"`           // pods that wait at the end
	Longest   float64           `json:"longestSeconds"`    // that a pod waited
	Unplaced  int               `json:"unplaced"`          // pods that no node had room for
	Original  *CapacityOutcome  `json:"original"`          // what upstream's daemon does instead; null: the same, or it is the model
	Different []string          `json:"different"`         // why that is so
}

// CapacitySetting is a setting with a value.
type CapacitySetting struct {
	Name  string `json:"name" null:"never"`  // such as WARM_IP_TARGET
	Value string `json:"value" null:"never"` // as the daemon reads it
}

// CapacitySpread is how a number was over time.
type CapacitySpread struct {
	Avg float64 `json:"avg"` // over time
	P95 int     `json:"p95"` // 95 % of the time it was at most this
	Max int     `json:"max"` // the most
}

// CapacityCalls are requests to EC2 per hour. A new interface takes four, a detached one three.
type CapacityCalls struct {
	PerHour  float64 `json:"perHour"`         // requests
	Attaches float64 `json:"attachesPerHour"` // interfaces created and attached
	Assigns  float64 `json:"assignsPerHour"`  // assignments of addresses or prefixes
	Releases float64 `json:"releasesPerHour"` // of addresses or prefixes
	Detaches float64 `json:"detachesPerHour"` // interfaces detached and deleted
	Refused  float64 `json:"refusedPerHour"`  // of these operations, for want of addresses
}

// CapacityOutcome is an outcome in short.
type CapacityOutcome struct {
	Held    float64 `json:"held"`         // addresses of subnets, on average
	Wasted  float64 `json:"wasted"`       // of these, for pods that no pod has
	PerHour float64 `json:"callsPerHour"` // requests to EC2
	Failed  int     `json:"failed"`       // ADDs
	Waiting int     `json:"waiting"`      // pods that wait at the end
}

// CapacityRecommendation is what cnictl capacity recommend shows.
type CapacityRecommendation struct {
	APIVersion string          `json:"apiVersion" null:"never"` // version of the document
	Kind       string          `json:"kind" null:"never"`       // CapacityRecommendation
	Metadata   ListMeta        `json:"metadata"`                // as lists of Kubernetes have
	Goal       string          `json:"goal" null:"never"`       // fewest-addresses, fewest-calls or burst
	Nodes      int             `json:"nodes"`                   // that were simulated
	Seconds    float64         `json:"seconds"`                 // that were simulated with each candidate
	Today      CapacityPoint   `json:"today"`                   // with today's settings
	Items      []CapacityPoint `json:"items"`                   // the trade-off: no other settings are better in both addresses and requests; the fewest addresses first
	Chosen     *CapacityPoint  `json:"chosen"`                  // by the goal; null: no settings within the bounds meet it
	Closest    *CapacityPoint  `json:"closest"`                 // where no settings meet the goal, those with the fewest failed ADDs
	Groups     []CapacityGroup `json:"groups"`                  // what the chosen settings come to for each type and mode of nodes
	Candidates int             `json:"candidates"`              // settings within the bounds
	Tried      int             `json:"tried"`                   // of these
	Patch      string          `json:"patch"`                   // strategic merge patch of the DaemonSet, YAML; "": nothing changes
	Partial    bool            `json:"partial"`                 // not all were tried, or some nodes could not be read
	Errors     []NodeError     `json:"errors"`                  // nodes that could not be read
	SampledAt  time.Time       `json:"sampledAt"`               // when it was computed
}

// CapacityGroup is what settings come to for nodes of one type and mode.
type CapacityGroup struct {
	InstanceType string        `json:"instanceType" null:"never"` // such as m5.large
	Mode         string        `json:"mode" null:"never"`         // prefix or secondary-ip
	Nodes        int           `json:"nodes"`                     // of them
	Today        CapacityPoint `json:"today"`                     // with today's settings
	Chosen       CapacityPoint `json:"chosen"`                    // with the chosen ones
}

// CapacityPoint is an outcome of settings.
type CapacityPoint struct {
	Settings []CapacitySetting `json:"settings"`     // that differ from today's
	Held     float64           `json:"held"`         // addresses of subnets, on average
	Wasted   float64           `json:"wasted"`       // of these, for pods that no pod has
	PerHour  float64           `json:"callsPerHour"` // requests to EC2
	Waited   int               `json:"waited"`       // ADDs that found no address at once
	Failed   int               `json:"failed"`       // ADDs that failed, and were repeated
	Refused  int               `json:"refused"`      // operations that EC2 refused for want of addresses
}

// CapacityComparison is what cnictl capacity compare shows.
type CapacityComparison struct {
	APIVersion string          `json:"apiVersion" null:"never"` // version of the document
	Kind       string          `json:"kind" null:"never"`       // CapacityComparison
	Metadata   ListMeta        `json:"metadata"`                // as lists of Kubernetes have
	Pods       int             `json:"pods"`                    // that are placed
	Items      []CapacityFleet `json:"items"`                   // the cheapest first, without prices the one with the fewest addresses
	Partial    bool            `json:"partial"`                 // an interrupt ended it: types are missing
	Errors     []NodeError     `json:"errors"`                  // none
	SampledAt  time.Time       `json:"sampledAt"`               // when it was computed
}

// CapacityFleet is what the pods take on nodes of one type.
type CapacityFleet struct {
	InstanceType string   `json:"instanceType" null:"never"` // such as m5.large
	VCPUs        *int     `json:"vcpus"`                     // of a node; null when unknown
	MemoryMiB    *int     `json:"memoryMiB"`                 // of a node; null when unknown
	MaxPods      *int     `json:"maxPods"`                   // of a node; null: why says why there are no figures
	PodsPerNode  *int     `json:"podsPerNode"`               // at most, with an address of the pool; null: none fits
	Bound        string   `json:"bound"`                     // what keeps more from a node: max-pods, addresses, cpu or memory; may be empty
	Nodes        *int     `json:"nodes"`                     // that hold the pods; null: no number does
	PodMilliCPU  *int     `json:"podMilliCPU"`               // of all nodes for each pod, after kubeReserved; null when unknown
	PodMemoryMiB *int     `json:"podMemoryMiB"`              // the same
	Addresses    *int     `json:"addresses"`                 // that all nodes take from subnets
	Wasted       *int     `json:"wasted"`                    // addresses for pods that no pod has
	HourlyUSD    *float64 `json:"hourlyUSD"`                 // of all nodes, on demand; null without a price
	SpotUSD      *float64 `json:"spotUSD"`                   // of all nodes, as spot instances; null without a price
	Why          string   `json:"why"`                       // why figures are missing; may be empty
}

// CapacityForecastList is what cnictl capacity forecast shows.
type CapacityForecastList struct {
	APIVersion string             `json:"apiVersion" null:"never"` // version of the document
	Kind       string             `json:"kind" null:"never"`       // CapacityForecastList
	Metadata   ListMeta           `json:"metadata"`                // as lists of Kubernetes have
	Items      []CapacityForecast `json:"items"`                   // by the time at which they run out
	Partial    bool               `json:"partial"`                 // the recordings were not read to the end
	Errors     []NodeError        `json:"errors"`                  // none
	SampledAt  time.Time          `json:"sampledAt"`               // of the last count that was read
}

// CapacityForecast is when a subnet runs out of addresses. The band from early to late holds
// 80 % of the futures that were drawn.
type CapacityForecast struct {
	ID            string     `json:"id"`            // such as subnet-0123456789abcdef0
	Zone          string     `json:"zone"`          // of its nodes; empty: unknown
	CIDR          string     `json:"cidr"`          // IPv4 block
	Available     *int       `json:"available"`     // free addresses by EC2's last count
	AsOf          *time.Time `json:"asOf"`          // of that count
	Readings      int        `json:"readings"`      // counts that were read
	Seconds       float64    `json:"seconds"`       // from the first to the last
	ChangePerHour *float64   `json:"changePerHour"` // of the free addresses; null: no forecast
	Share         *float64   `json:"share"`         // of the futures that run out before the horizon; null: no forecast
	Early         *time.Time `json:"early"`         // 10 % run out by then; null: not before the horizon
	Likely        *time.Time `json:"likely"`        // 50 %
	Late          *time.Time `json:"late"`          // 90 %
	Horizon       *time.Time `json:"horizon"`       // how far the forecast looks; null: no forecast
	Why           string     `json:"why"`           // why there is no forecast, or that it has run out; may be empty
}

// CapacityRefresh is what cnictl capacity refresh shows, and its cache: the instance types that
// EC2 reports otherwise than the built-in table.
type CapacityRefresh struct {
	APIVersion string          `json:"apiVersion" null:"never"` // version of the document
	Kind       string          `json:"kind" null:"never"`       // CapacityRefresh
	Metadata   ListMeta        `json:"metadata"`                // as lists of Kubernetes have
	Region     string          `json:"region" null:"never"`     // that was read
	Types      int             `json:"types"`                   // that the region offers
	Items      []CapacityFacts `json:"items"`                   // those that differ from the built-in table, by name
	Partial    bool            `json:"partial"`                 // an interrupt or error ended it: types are missing, and nothing was cached
	Errors     []NodeError     `json:"errors"`                  // none
	SampledAt  time.Time       `json:"sampledAt"`               // when EC2 was read
}

// CapacityFacts is what EC2 reports of an instance type.
type CapacityFacts struct {
	InstanceType       string           `json:"instanceType" null:"never"` // such as m5.large
	New                bool             `json:"new"`                       // not in the built-in table
	ENIs               int              `json:"enis"`                      // of the default network card
	NetworkCards       []CapacityCard   `json:"networkCards"`              // by index
	DefaultNetworkCard int              `json:"defaultNetworkCard"`        // index
	IPv4PerENI         int              `json:"ipv4PerEni"`                // its primary address included
	IPv6PerENI         *int             `json:"ipv6PerEni"`                // 0: no IPv6; null when unknown
	Hypervisor         string           `json:"hypervisor"`                // nitro or xen; empty for bare metal
	BareMetal          bool             `json:"bareMetal"`                 // no hypervisor
	VCPUs              *int             `json:"vcpus"`                     // null when unknown
	MemoryMiB          *int             `json:"memoryMiB"`                 // null when unknown
	Arch               string           `json:"arch"`                      // amd64 or arm64; empty when unknown
	Changes            []CapacityChange `json:"changes"`                   // against the built-in table; none of a new type
}

// CapacityCard is a network card of an instance type.
type CapacityCard struct {
	Index int `json:"index"` // from 0
	ENIs  int `json:"enis"`  // that it takes
}

// CapacityChange is a fact that EC2 reports otherwise than the built-in table.
type CapacityChange struct {
	Name string `json:"name" null:"never"` // of the field above
	From string `json:"from"`              // in the built-in table; empty: unknown
	To   string `json:"to"`                // by EC2
}
