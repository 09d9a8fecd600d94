package evidence

import (
	"strings"
	"time"
)

// SchemaVersion is the version of the evidence file format. Within a version, members are only
// added.
const SchemaVersion = 2

// Mode is where the evidence was read from, which determines the sources it can have.
type Mode string

// Modes.
const (
	ModeNode    Mode = "node"    // on the node, with the rights of kubelet and the node role
	ModeLaptop  Mode = "laptop"  // through the API server, with AWS credentials
	ModeBundle  Mode = "bundle"  // from a support bundle
	ModeCluster Mode = "cluster" // through the API server alone
)

// Evidence is everything that one run of the doctor examines.
type Evidence struct {
	At       time.Time     // time of the first reading; for a bundle, when it was packed
	Mode     Mode          // where the evidence was read
	Interval time.Duration // between the two readings
	Scope    Scope
	Report   []string // symptoms reported by people; no cause is inferred from them
	Nodes    []Node
}

// Scope is what the doctor was asked to examine: one node, one pod, or the cluster.
type Scope struct {
	Node    string `json:"node,omitempty"`
	Pod     Pod    `json:"pod,omitempty"`
	Cluster bool   `json:"cluster,omitempty"`
}

// Node is what was read from one node.
type Node struct {
	Name   string
	First  *Reading
	Second *Reading // nil without a second reading
}

// Last returns the newest reading.
func (n Node) Last() *Reading {
	if n.Second != nil {
		return n.Second
	}
	return n.First
}

// Source is one source in one reading.
type Source[T any] struct {
	Content T
	Missing string // why it could not be read; empty if it was read
}

// Read returns a source that was read.
func Read[T any](content T) Source[T] { return Source[T]{Content: content} }

// Lacking returns a source that could not be read.
func Lacking[T any](reason string) Source[T] { return Source[T]{Missing: reason} }

// OK reports whether the source was read.
func (s Source[T]) OK() bool { return s.Missing == "" }

// Then derives a source from another.
func Then[T, U any](s Source[T], make func(T) U) Source[U] {
	if !s.OK() {
		return Lacking[U](s.Missing)
	}
	return Read(make(s.Content))
}

// Reasons why a source is missing. Any other text is shown verbatim.
const (
	MissingDisabled  = "disabled"  // switched off by a setting
	MissingRefused   = "refused"   // connection refused
	MissingForbidden = "forbidden" // a permission is missing
	MissingTimeout   = "timeout"
	MissingAbsent    = "absent"    // the object does not exist
	MissingNotAsked  = "not-asked" // not requested
	MissingMode      = "mode"      // cannot be read in this mode

	// Sources that no mode of the doctor reads, and only an evidence file can contain.
	MissingQuota = notAsked + "it needs servicequotas:GetServiceQuota, which the doctor's policy leaves out; put it in an evidence file"

	// What no mode reads, and no evidence file contains.
	MissingPull     = notAsked + "registries are never queried"
	MissingServices = notAsked + "Services are never read"

	// Sources that cnictl migrate check --aws reads, and an evidence file can contain.
	MissingIAM   = notAsked + "cnictl migrate check --aws reads it with iam:SimulatePrincipalPolicy; or put it in an evidence file"
	MissingRole  = notAsked + "cnictl migrate check --aws reads it with iam:GetRole; or put it in an evidence file"
	MissingAddOn = notAsked + "cnictl migrate check --aws reads it with eks:DescribeAddon; or put it in an evidence file"

	notAsked = "not asked: "
)

// HiddenAccount stands in bundles for the number of an AWS account.
const HiddenAccount = "<account-id>"

// Untried reports whether a source is missing without a failure: reading it was not requested, the
// mode cannot read it, or it does not exist.
func Untried(missing string) bool {
	return missing == MissingMode || missing == MissingNotAsked || missing == MissingAbsent || strings.HasPrefix(missing, notAsked)
}

// Pod names a pod: namespace/name.
type Pod string

// Reading holds all sources, read at about the same time.
type Reading struct {
	At time.Time `json:"-"`

	ENIs      Source[[]ENI]               `json:"intro.enis"`
	Counters  Source[map[string]Counters] `json:"intro.counters"` // by network card
	Env       Source[Env]                 `json:"intro.env"`
	ENIConfig Source[*string]             `json:"intro.eniconfig"` // nil if the daemon answered 404
	Daemon

	Metrics    Source[Metrics]    `json:"metrics"`
	Checkpoint Source[Checkpoint] `json:"ckpt"`

	LogIPAMD   Source[Log]            `json:"log.ipamd"`
	LogPlugin  Source[Log]            `json:"log.plugin"`
	LogAgent   Source[Log]            `json:"log.np"`
	LogKubelet Source[Log]            `json:"log.kubelet"`
	LogAWSNode Source[map[string]Log] `json:"log.awsnode"` // by container

	Links      Source[[]Link]            `json:"kern.link"`
	Rules      Source[[]Rule]            `json:"kern.rule"`
	Routes     Source[[]Route]           `json:"kern.route"`
	IPTables   Source[IPTables]          `json:"kern.ipt"`
	Sysctls    Source[map[string]string] `json:"kern.sysctl"`
	Neighbours Source[[]Neighbour]       `json:"kern.neigh"`
	Conntrack  Source[Conntrack]         `json:"kern.ct"`

	Packages     Source[Packages]                     `json:"host.pkg"`
	CNI          Source[CNI]                          `json:"host.cni"`
	ContainerEnv Source[map[string]map[string]string] `json:"host.env"` // by container
	Kubelet      Source[Kubelet]                      `json:"host.kubelet"`
	Resources    Source[Resources]                    `json:"host.res"`
	Listeners    Source[[]Listener]                   `json:"host.listen"`
	RunFiles     Source[[]string]                     `json:"host.run"` // file names in /var/run/aws-node

	IMDS         Source[IMDS]            `json:"imds"`
	Interfaces   Source[[]Interface]     `json:"ec2.eni"`
	Subnets      Source[[]Subnet]        `json:"ec2.subnet"`
	Reservations Source[[]Reservation]   `json:"ec2.resv"`
	InstanceType Source[InstanceType]    `json:"ec2.type"`
	Instances    Source[[]Instance]      `json:"ec2.inst"`
	Quota        Source[Quota]           `json:"ec2.quota"`
	Groups       Source[[]SecurityGroup] `json:"ec2.sg"`
	RouteTables  Source[[]RouteTable]    `json:"ec2.rtb"`
	IAM          Source[IAM]             `json:"iam.sim"`

	Node            Source[KubeNode]              `json:"k8s.node"`
	Nodes           Source[[]KubeNode]            `json:"k8s.nodes"` // the other nodes
	Pods            Source[[]KubePod]             `json:"k8s.pod"`
	Events          Source[[]KubeEvent]           `json:"k8s.evt"`
	DaemonSet       Source[*DaemonSet]            `json:"k8s.ds"` // nil if not installed
	DaemonPods      Source[[]DaemonPod]           `json:"k8s.ds.pods"`
	ENIConfigs      Source[[]ENIConfig]           `json:"k8s.eniconfig"`
	CNINode         Source[*CNINode]              `json:"k8s.cninode"` // nil if none
	GroupPolicies   Source[[]SecurityGroupPolicy] `json:"k8s.sgp"`
	Webhooks        Source[[]Webhook]             `json:"k8s.wh"`
	ConfigMap       Source[map[string]string]     `json:"k8s.cm"` // nil if none
	KubeProxy       Source[KubeProxy]             `json:"k8s.kp"`
	RBAC            Source[RBAC]                  `json:"k8s.rbac"`
	ServiceAccount  Source[ServiceAccount]        `json:"k8s.sa"`
	NetworkPolicies Source[NetworkPolicies]       `json:"k8s.np"`
	Probes          Source[[]Probe]               `json:"probe"`
	Installation
}

// Probe is a connection attempt from the node.
type Probe struct {
	From   string    `json:"from,omitzero"` // "host" or a pod
	Kind   string    `json:"kind,omitzero" enum:"tcp,http,tls,dns,icmp"`
	Target string    `json:"target,omitzero"`
	Result string    `json:"result,omitzero" enum:"ok,timeout,refused,unreachable,nxdomain,error"`
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"at,omitzero"`
}
