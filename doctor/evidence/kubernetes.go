package evidence

import (
	"net/netip"
	"time"
)

// KubeNode is a Node object.
type KubeNode struct {
	Name           string            `json:"name" key:"true"`
	Count          int               `json:"count,omitempty"` // so many alike; 0 is 1
	InstanceType   string            `json:"instanceType"`
	Zone           string            `json:"zone"`
	Instance       string            `json:"instance"`
	Capacity       NodeResources     `json:"capacity"`
	Allocatable    NodeResources     `json:"allocatable"`
	Taints         []Taint           `json:"taints"`
	Conditions     []Condition       `json:"conditions"`
	Labels         map[string]string `json:"labels"`
	Annotations    map[string]string `json:"annotations"`
	KubeletVersion string            `json:"kubeletVersion"`
	OSImage        string            `json:"osImage"`
	Kernel         string            `json:"kernel"`
	CreatedAt      time.Time         `json:"createdAt,omitzero"`
}

// NodeResources are the resources that matter to pod networking.
type NodeResources struct {
	Pods   *int `json:"pods"`
	PodENI *int `json:"podENI"` // vpc.amazonaws.com/pod-eni
}

// Taint is a taint of a node.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Condition is a condition of a node.
type Condition struct {
	Type    string    `json:"type" key:"true"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// KubePod is a pod on the node, an unscheduled pod, or another pod that matters.
type KubePod struct {
	Pod            Pod               `json:"pod" key:"true"`
	Count          int               `json:"count,omitempty"` // so many alike; 0 is 1
	Phase          string            `json:"phase" enum:"Pending,Running,Succeeded,Failed,Unknown" default:"Running"`
	Ready          *bool             `json:"ready"`
	Node           *string           `json:"node"` // nil: not bound
	HostNetwork    bool              `json:"hostNetwork"`
	IPs            []netip.Addr      `json:"ips"` // status.podIPs
	CreatedAt      time.Time         `json:"createdAt,omitzero"`
	StartedAt      time.Time         `json:"startedAt,omitzero"`
	Reason         string            `json:"reason,omitempty"`
	Message        string            `json:"message,omitempty"`
	Owner          string            `json:"owner,omitempty"` // kind of its controller
	ServiceAccount string            `json:"serviceAccount" default:"default"`
	Labels         map[string]string `json:"labels"`
	Annotations    map[string]string `json:"annotations"`
	NodeSelector   map[string]string `json:"nodeSelector"`
	Tolerations    []Toleration      `json:"tolerations"`
	Containers     []Container       `json:"containers"` // in the order of the spec
}

// Toleration is a toleration of a pod.
type Toleration struct {
	Key    string `json:"key"`
	Effect string `json:"effect"`
}

// Container is a container of a pod's spec.
type Container struct {
	Name   string            `json:"name"`
	Limits map[string]string `json:"limits"`
}

// KubeEvent is an event of an object: a pod ("namespace/name") or anything else by name.
type KubeEvent struct {
	At      time.Time `json:"at,omitzero"` // the last time
	First   time.Time `json:"first,omitzero"`
	Count   int       `json:"count" default:"1"`
	Type    string    `json:"type" default:"Warning"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Kind    string    `json:"kind" default:"Pod"`
	Name    string    `json:"name"`
	Source  string    `json:"source"`
	Action  string    `json:"action,omitempty"`
}

// DaemonSet is the DaemonSet aws-node.
type DaemonSet struct {
	Containers     []string                     `json:"containers"`
	InitContainers []string                     `json:"initContainers"`
	Images         map[string]string            `json:"images"`
	Env            map[string]map[string]string `json:"env"`
	Args           map[string][]string          `json:"args"`
	Liveness       HealthProbe                  `json:"liveness"`
	Readiness      HealthProbe                  `json:"readiness"`
	Mounts         map[string][]string          `json:"mounts"` // host paths
	CPURequest     string                       `json:"cpuRequest"`

	Selector       map[string]string            `json:"selector,omitempty"`
	PodLabels      map[string]string            `json:"podLabels,omitempty"`
	MaxUnavailable string                       `json:"maxUnavailable,omitempty"` // a number or a percentage
	PullSecrets    []string                     `json:"pullSecrets,omitempty"`
	Volumes        []string                     `json:"volumes,omitempty"`      // names
	DuplicateEnv   []string                     `json:"duplicateEnv,omitempty"` // variables that aws-node has twice
	EnvFrom        []string                     `json:"envFrom,omitempty"`      // those of aws-node whose value is elsewhere, and objects with whole environments
	Security       map[string][]string          `json:"security,omitempty"`     // fields of the security contexts, as capabilities.add=NET_RAW: of each container, and of the "pod"
	Affinity       []string                     `json:"affinity,omitempty"`     // what the pods demand of nodes, as kubernetes.io/arch In amd64,arm64, and other kinds of affinity
	Applied        map[string]map[string]string `json:"applied,omitempty"`      // variables of each container in the manifest of the last kubectl apply; nil: there was none
	Ports          []string                     `json:"ports,omitempty"`        // names of aws-node's
	Pods           Rollout                      `json:"pods,omitzero"`
}

// Rollout counts the pods of a DaemonSet.
type Rollout struct {
	Desired *int `json:"desired"`
	Updated *int `json:"updated"`
	Ready   *int `json:"ready"`
}

// HealthProbe is a probe of a container.
type HealthProbe struct {
	Command             []string `json:"command"`
	TimeoutSeconds      *int     `json:"timeoutSeconds"`
	PeriodSeconds       *int     `json:"periodSeconds"`
	InitialDelaySeconds *int     `json:"initialDelaySeconds"`
	FailureThreshold    *int     `json:"failureThreshold"`
}

// DaemonPod is a pod of the DaemonSet.
type DaemonPod struct {
	Pod        Pod               `json:"pod" key:"true"`
	Node       string            `json:"node"`
	Phase      string            `json:"phase"`
	Containers []DaemonContainer `json:"containers"`
}

// DaemonContainer is the state of one container of a DaemonPod.
type DaemonContainer struct {
	Name             string     `json:"name" key:"true"`
	Init             bool       `json:"init"`
	Ready            *bool      `json:"ready"`
	Restarts         *int       `json:"restarts"`
	RestartsLastHour *int       `json:"restartsLastHour"`
	State            string     `json:"state" enum:"running,waiting,terminated"`
	Reason           string     `json:"reason,omitempty"`
	LastState        *LastState `json:"lastState,omitempty"`
}

// LastState is how the container's previous run ended.
type LastState struct {
	Reason     string    `json:"reason"`
	ExitCode   *int      `json:"exitCode"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
}

// ENIConfig is a custom-networking object.
type ENIConfig struct {
	Name           string   `json:"name" key:"true"`
	Subnet         string   `json:"subnet"`
	SecurityGroups []string `json:"securityGroups"`
	Valid          bool     `json:"valid" default:"true"`
}

// CNINode holds the features that the daemon and the VPC resource controller agree on.
type CNINode struct {
	Features []Feature `json:"features"`
}

// Feature is a feature of a CNINode.
type Feature struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// SecurityGroupPolicy selects pods that get their own security groups. A nil selector was not
// given; an empty one selects all.
type SecurityGroupPolicy struct {
	Name                   string             `json:"name" key:"true"`
	PodSelector            *map[string]string `json:"podSelector"`
	ServiceAccountSelector *map[string]string `json:"serviceAccountSelector"`
	GroupIDs               []string           `json:"groupIds"`
}

// Webhook is a webhook of the VPC resource controller.
type Webhook struct {
	Name          string `json:"name" key:"true"`
	FailurePolicy string `json:"failurePolicy"`
	Reachable     *bool  `json:"reachable"`
}

// KubeProxy is kube-proxy's mode and pods.
type KubeProxy struct {
	Mode string     `json:"mode" enum:"iptables,ipvs,nftables"`
	Pods []ProxyPod `json:"pods"`
}

// ProxyPod is a pod of kube-proxy.
type ProxyPod struct {
	Pod    Pod    `json:"pod" key:"true"`
	Node   string `json:"node"`
	Phase  string `json:"phase"`
	Ready  *bool  `json:"ready"`
	Reason string `json:"reason,omitempty"`
}

// RBAC lists the existing roles and bindings, of those that the CNI and the resource controller
// need, and what aws-node may not do ("patch cninodes").
type RBAC struct {
	Roles    []string `json:"roles"`
	Bindings []string `json:"bindings"`
	Denied   []string `json:"denied"`
}

// ReviewedRights are the rights that the API server is asked about for RBAC.Denied. Whether
// aws-node has any other right is unknown, even if Denied is empty.
var ReviewedRights = []string{
	"list pods", "list nodes", "create events", "list eniconfigs", "get cninodes", "patch cninodes",
}

// ServiceAccount is the service account of aws-node.
type ServiceAccount struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations"`
}

// NetworkPolicies is the policy agent's input.
type NetworkPolicies struct {
	CRDs      *bool            `json:"crds"`
	Endpoints []PolicyEndpoint `json:"endpoints"`
}

// PolicyEndpoint is a policy and the pods that it selects.
type PolicyEndpoint struct {
	Name string `json:"name" key:"true"`
	Pods []Pod  `json:"pods"`
}
