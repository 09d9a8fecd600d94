package evidence

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PodOf names a pod, empty without a name.
func PodOf(namespace, name string) Pod {
	if name == "" {
		return ""
	}
	return Pod(namespace + "/" + name)
}

// Moment returns a time of an object or document, zero for an impossible one.
func Moment(at *time.Time) time.Time {
	if at == nil || at.Year() < 1970 || at.Year() > 9999 {
		return time.Time{}
	}
	return at.UTC()
}

// KubeNode is a Node object.
type KubeNode struct {
	Name           string            `json:"name,omitzero" key:"true"`
	Count          int               `json:"count,omitempty"` // number of identical entries; 0 means 1
	InstanceType   string            `json:"instanceType,omitzero"`
	Zone           string            `json:"zone,omitzero"`
	Instance       string            `json:"instance,omitzero"`
	Capacity       NodeResources     `json:"capacity,omitzero"`
	Allocatable    NodeResources     `json:"allocatable,omitzero"`
	Taints         []Taint           `json:"taints,omitzero"`
	Conditions     []Condition       `json:"conditions,omitzero"`
	Labels         map[string]string `json:"labels,omitzero"`
	Annotations    map[string]string `json:"annotations,omitzero"`
	Images         []string          `json:"images,omitempty"` // of aws-node, that kubelet reports: it reports at most 50 images
	KubeletVersion string            `json:"kubeletVersion,omitzero"`
	OSImage        string            `json:"osImage,omitzero"`
	Kernel         string            `json:"kernel,omitzero"`
	CreatedAt      time.Time         `json:"createdAt,omitzero"`
}

// NodeResources are the resources relevant to pod networking.
type NodeResources struct {
	Pods   *int `json:"pods,omitzero"`
	PodENI *int `json:"podENI,omitzero"` // vpc.amazonaws.com/pod-eni
}

// Taint is a taint of a node.
type Taint struct {
	Key    string `json:"key,omitzero"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect,omitzero"`
}

// Condition is a condition of a node.
type Condition struct {
	Type    string    `json:"type,omitzero" key:"true"`
	Status  string    `json:"status,omitzero"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// KubePod is a pod on the node, an unscheduled one, or another relevant one.
type KubePod struct {
	Pod            Pod               `json:"pod,omitzero" key:"true"`
	Count          int               `json:"count,omitempty"` // number of identical entries; 0 means 1
	Phase          string            `json:"phase" enum:"Pending,Running,Succeeded,Failed,Unknown" default:"Running"`
	Ready          *bool             `json:"ready,omitzero"`
	Node           *string           `json:"node,omitzero"` // nil if not bound
	HostNetwork    bool              `json:"hostNetwork,omitzero"`
	IPs            []netip.Addr      `json:"ips,omitzero"` // status.podIPs
	CreatedAt      time.Time         `json:"createdAt,omitzero"`
	StartedAt      time.Time         `json:"startedAt,omitzero"`
	Reason         string            `json:"reason,omitempty"`
	Message        string            `json:"message,omitempty"`
	Owner          string            `json:"owner,omitempty"` // kind of its controller
	ServiceAccount string            `json:"serviceAccount" default:"default"`
	Labels         map[string]string `json:"labels,omitzero"`
	Annotations    map[string]string `json:"annotations,omitzero"`
	NodeSelector   map[string]string `json:"nodeSelector,omitzero"`
	Tolerations    []Toleration      `json:"tolerations,omitzero"`
	Containers     []Container       `json:"containers,omitzero"` // in the order of the spec
}

// On returns the node that the pod is bound to, empty if it is not.
func (p KubePod) On() string {
	if p.Node == nil {
		return ""
	}
	return *p.Node
}

// Toleration is a toleration of a pod.
type Toleration struct {
	Key    string `json:"key,omitzero"`
	Effect string `json:"effect,omitzero"`
}

// Container is a container of a pod's spec.
type Container struct {
	Name   string            `json:"name,omitzero"`
	Limits map[string]string `json:"limits,omitzero"`

	HostPorts []int `json:"hostPorts,omitempty"`
}

// KubeEvent is an event. Name is "namespace/name" for a pod, and a plain name for other objects.
type KubeEvent struct {
	At      time.Time `json:"at,omitzero"` // time of the last occurrence
	First   time.Time `json:"first,omitzero"`
	Count   int       `json:"count" default:"1"`
	Type    string    `json:"type" default:"Warning"`
	Reason  string    `json:"reason,omitzero"`
	Message string    `json:"message,omitzero"`
	Kind    string    `json:"kind" default:"Pod"`
	Name    string    `json:"name,omitzero"`
	Source  string    `json:"source,omitzero"`
	Action  string    `json:"action,omitempty"`
}

// DaemonSet is the DaemonSet aws-node.
type DaemonSet struct {
	Containers     []string                     `json:"containers,omitzero"`
	InitContainers []string                     `json:"initContainers,omitzero"`
	Images         map[string]string            `json:"images,omitzero"`
	Env            map[string]map[string]string `json:"env,omitzero"`
	Args           map[string][]string          `json:"args,omitzero"`
	Liveness       HealthProbe                  `json:"liveness,omitzero"`
	Readiness      HealthProbe                  `json:"readiness,omitzero"`
	Mounts         map[string][]string          `json:"mounts,omitzero"` // host paths
	CPURequest     string                       `json:"cpuRequest,omitzero"`

	Selector       map[string]string `json:"selector,omitempty"`
	PodLabels      map[string]string `json:"podLabels,omitempty"`
	MaxUnavailable string            `json:"maxUnavailable,omitempty"` // a number or a percentage
	Strategy       string            `json:"strategy,omitempty" enum:"RollingUpdate,OnDelete"`
	MinReady       int               `json:"minReadySeconds,omitempty"`
	ChangedAt      time.Time         `json:"changedAt,omitzero"` // when someone last changed its spec; zero if unknown
	PullSecrets    []string          `json:"pullSecrets,omitempty"`
	Volumes        []string          `json:"volumes,omitempty"`      // volume names
	DuplicateEnv   []string          `json:"duplicateEnv,omitempty"` // variables set twice in aws-node
	// variables of aws-node whose value comes from elsewhere, and objects imported as a whole
	EnvFrom []string `json:"envFrom,omitempty"`
	// fields of the security contexts, such as capabilities.add=NET_RAW, by container, and under "pod" for the pod
	Security map[string][]string `json:"security,omitempty"`
	// what the pods require of nodes, such as kubernetes.io/arch In amd64,arm64, and other kinds of affinity
	Affinity []string `json:"affinity,omitempty"`
	// variables by container in the manifest of the last kubectl apply; nil if none
	Applied map[string]map[string]string `json:"applied,omitempty"`
	Ports   []string                     `json:"ports,omitempty"` // port names of aws-node
	Pods    Rollout                      `json:"pods,omitzero"`
}

// Containers of the DaemonSet.
const (
	ContainerNode  = "aws-node"
	ContainerInit  = "aws-vpc-cni-init"
	ContainerAgent = "aws-eks-nodeagent"
)

// Names of images in any registry: our daemon's, upstream's, the policy agent's.
const (
	ImageOurs     = "aws-vpc-cni"
	ImageUpstream = "amazon-k8s-cni"
	ImageAgent    = "aws-network-policy-agent"
)

// ImageName returns the last part of an image's name, without tag and digest.
func ImageName(image string) string {
	image, _, _ = strings.Cut(image[strings.LastIndexByte(image, '/')+1:], "@")
	image, _, _ = strings.Cut(image, ":")
	return image
}

// EnforcesPolicies reports whether the policy agent's flag is on.
func (d DaemonSet) EnforcesPolicies() bool {
	return slices.Contains(d.Args[ContainerAgent], "--enable-network-policy=true")
}

// AtOnce returns how many pods a rollout may replace at once, at least one. With OnDelete there is no rollout.
func (d DaemonSet) AtOnce() int {
	percent, relative := strings.CutSuffix(d.MaxUnavailable, "%")
	n, _ := strconv.Atoi(percent)
	if relative && d.Pods.Desired != nil {
		n = (*d.Pods.Desired*n + 99) / 100
	}
	return max(1, n)
}

// ByHand reports whether an update waits until someone deletes the pods.
func (d DaemonSet) ByHand() bool { return d.Strategy == "OnDelete" }

// Rollout counts the pods of a DaemonSet.
type Rollout struct {
	Desired *int `json:"desired,omitzero"`
	Updated *int `json:"updated,omitzero"`
	Ready   *int `json:"ready,omitzero"`
}

// HealthProbe is a probe of a container.
type HealthProbe struct {
	Command             []string `json:"command,omitzero"`
	TimeoutSeconds      *int     `json:"timeoutSeconds,omitzero"`
	PeriodSeconds       *int     `json:"periodSeconds,omitzero"`
	InitialDelaySeconds *int     `json:"initialDelaySeconds,omitzero"`
	FailureThreshold    *int     `json:"failureThreshold,omitzero"`
}

// DaemonPod is a pod of the DaemonSet.
type DaemonPod struct {
	Pod        Pod               `json:"pod,omitzero" key:"true"`
	Node       string            `json:"node,omitzero"` // or, before it is bound, the one that it is made for
	Phase      string            `json:"phase,omitzero"`
	CreatedAt  time.Time         `json:"createdAt,omitzero"`
	Reason     string            `json:"reason,omitempty"` // why it does not run
	Message    string            `json:"message,omitempty"`
	Containers []DaemonContainer `json:"containers,omitzero"`
}

// DaemonContainer is the state of one container of a DaemonPod.
type DaemonContainer struct {
	Name             string     `json:"name,omitzero" key:"true"`
	Init             bool       `json:"init,omitzero"`
	Ready            *bool      `json:"ready,omitzero"`
	Restarts         *int       `json:"restarts,omitzero"`
	RestartsLastHour *int       `json:"restartsLastHour,omitzero"`
	State            string     `json:"state,omitzero" enum:"running,waiting,terminated"`
	Reason           string     `json:"reason,omitempty"`
	LastState        *LastState `json:"lastState,omitempty"`
}

// LastState is how the container's previous run ended.
type LastState struct {
	Reason     string    `json:"reason,omitzero"`
	ExitCode   *int      `json:"exitCode,omitzero"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
}

// ENIConfig is an ENIConfig object, used for custom networking.
type ENIConfig struct {
	Name           string   `json:"name,omitzero" key:"true"`
	Subnet         string   `json:"subnet,omitzero"`
	SecurityGroups []string `json:"securityGroups,omitzero"`
	Valid          bool     `json:"valid" default:"true"`
}

// CNINode is the object through which the daemon and the VPC resource controller communicate.
type CNINode struct {
	Features []Feature `json:"features,omitzero"`
}

// Feature is a feature of a CNINode.
type Feature struct {
	Name  string `json:"name,omitzero"`
	Value string `json:"value,omitempty"`
}

// SecurityGroupPolicy assigns security groups to the pods it selects. A nil selector is absent;
// an empty one selects all.
type SecurityGroupPolicy struct {
	Name                   string             `json:"name,omitzero" key:"true"`
	PodSelector            *map[string]string `json:"podSelector,omitzero"`
	ServiceAccountSelector *map[string]string `json:"serviceAccountSelector,omitzero"`
	GroupIDs               []string           `json:"groupIds,omitzero"`
}

// Webhook is a webhook of the VPC resource controller.
type Webhook struct {
	Name          string `json:"name,omitzero" key:"true"`
	FailurePolicy string `json:"failurePolicy,omitzero"`
	Reachable     *bool  `json:"reachable,omitzero"`
}

// KubeProxy holds kube-proxy's mode and pods.
type KubeProxy struct {
	Mode string     `json:"mode,omitzero" enum:"iptables,ipvs,nftables"`
	Pods []ProxyPod `json:"pods,omitzero"`
}

// ProxyPod is a pod of kube-proxy.
type ProxyPod struct {
	Pod     Pod    `json:"pod,omitzero" key:"true"`
	Node    string `json:"node,omitzero"`
	Phase   string `json:"phase,omitzero"`
	Ready   *bool  `json:"ready,omitzero"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// RBAC holds the existing roles and bindings that the CNI and the resource controller need, and
// which rights aws-node was found not to have. Rights are spelt as in ReviewedRights.
type RBAC struct {
	Roles    []string `json:"roles,omitzero"`
	Bindings []string `json:"bindings,omitzero"`
	Denied   []string `json:"denied,omitzero"`
	Reviewed []string `json:"reviewed,omitempty"` // all rights that were checked; see Checked
}

// Checked lists the rights that the API server was asked about. Whether aws-node has any other
// right is unknown. Evidence of earlier versions does not say so: these asked about six rights,
// and spelt them without API group.
func (r RBAC) Checked() []string {
	if r.Reviewed == nil {
		return []string{"list pods", "list nodes", "create events", "list eniconfigs", "get cninodes", "patch cninodes"}
	}
	return r.Reviewed
}

// ReviewedRights are the rights that the roles in deploy grant to aws-node, including the one for
// ANNOTATE_POD_IP.
var ReviewedRights = []string{
	"get nodes", "list nodes", "watch nodes",
	"get pods", "list pods", "watch pods",
	"patch pods",
	"get namespaces", "list namespaces", "watch namespaces",
	"create events", "list events", "patch events",
	"create events.events.k8s.io", "list events.events.k8s.io", "patch events.events.k8s.io",
	"get eniconfigs.crd.k8s.amazonaws.com", "list eniconfigs.crd.k8s.amazonaws.com", "watch eniconfigs.crd.k8s.amazonaws.com",
	"get cninodes.vpcresources.k8s.aws", "list cninodes.vpcresources.k8s.aws", "patch cninodes.vpcresources.k8s.aws",
	"watch cninodes.vpcresources.k8s.aws",
	"get policyendpoints.networking.k8s.aws", "list policyendpoints.networking.k8s.aws", "watch policyendpoints.networking.k8s.aws",
	"get clusterpolicyendpoints.networking.k8s.aws", "list clusterpolicyendpoints.networking.k8s.aws",
	"watch clusterpolicyendpoints.networking.k8s.aws",
	"get policyendpoints/status.networking.k8s.aws", "get clusterpolicyendpoints/status.networking.k8s.aws",
	"get /apis/networking.k8s.aws", "get /apis/networking.k8s.aws/*",
}

// SplitRight splits a right into its verb, and its resource and API group or its URL.
func SplitRight(right string) (verb, resource, group string) {
	verb, resource, _ = strings.Cut(right, " ")
	if !strings.HasPrefix(resource, "/") {
		resource, group, _ = strings.Cut(resource, ".")
	}
	return verb, resource, group
}

// ServiceAccount is the service account of aws-node.
type ServiceAccount struct {
	Name        string            `json:"name,omitzero"`
	Annotations map[string]string `json:"annotations,omitzero"`
}

// NetworkPolicies holds the input of the network policy agent.
type NetworkPolicies struct {
	CRDs      *bool            `json:"crds,omitzero"`
	Endpoints []PolicyEndpoint `json:"endpoints,omitzero"`
}

// PolicyEndpoint is a policy and the pods that it selects.
type PolicyEndpoint struct {
	Name string `json:"name,omitzero" key:"true"`
	Pods []Pod  `json:"pods,omitzero"`
}
