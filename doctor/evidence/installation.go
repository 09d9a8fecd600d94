package evidence

// Installation holds the sources that show how aws-node was installed. Only a migration between
// upstream's daemon and ours needs them; cnictl doctor does not read them.
type Installation struct {
	Objects   Source[[]KubeObject] `json:"k8s.objects"`
	Conflist  Source[*CNIConf]     `json:"k8s.conflist"` // from the chart's value cniConfig; nil if none
	Namespace Source[Namespace]    `json:"k8s.ns"`
	Admission Source[[]Admission]  `json:"k8s.admission"`
	Monitors  Source[[]Monitor]    `json:"k8s.monitors"` // of the Prometheus operator
	AddOn     Source[*AddOn]       `json:"eks.addon"`    // nil if aws-node is not a managed add-on
	Role      Source[Role]         `json:"iam.role"`
	BPFPins   Source[[]string]     `json:"host.bpf"` // file names in /sys/fs/bpf/globals/aws
}

// KubeObject is the metadata of an object that an installation of aws-node creates.
type KubeObject struct {
	Name        string            `json:"name,omitzero" key:"true"` // KIND/NAME
	Labels      map[string]string `json:"labels,omitzero"`
	Annotations map[string]string `json:"annotations,omitzero"`
	Managers    []Manager         `json:"managers,omitzero"`
}

// Manager is a program that wrote fields of an object.
type Manager struct {
	Name      string   `json:"name,omitzero"`
	Operation string   `json:"operation" enum:"Apply,Update" default:"Update"`
	Env       []string `json:"env,omitzero"`      // variables of the container aws-node that it wrote
	InitEnv   []string `json:"initEnv,omitempty"` // variables of the init container that it wrote
}

// Namespace holds the constraints that the namespace of aws-node puts on pods.
type Namespace struct {
	Labels map[string]string `json:"labels,omitzero"`
	Quotas []string          `json:"quotas,omitzero"` // names of quotas that count system-node-critical pods
}

// Admission is a webhook that applies to pods or DaemonSets in the namespace of aws-node.
type Admission struct {
	Name          string `json:"name,omitzero" key:"true"`
	FailurePolicy string `json:"failurePolicy" enum:"Fail,Ignore" default:"Fail"`
	Service       string `json:"service,omitzero"`    // namespace/name; empty if a URL outside the cluster
	PodNetwork    *bool  `json:"podNetwork,omitzero"` // all pods of the service have addresses from the pod network
}

// Monitor is a PodMonitor or a ServiceMonitor of the Prometheus operator.
type Monitor struct {
	Name     string            `json:"name,omitzero" key:"true"` // KIND/NAMESPACE/NAME
	Selector map[string]string `json:"selector,omitzero"`
	Ports    []string          `json:"ports,omitzero"`
}

// AddOn is the managed add-on vpc-cni, as EKS describes it.
type AddOn struct {
	Version string            `json:"version,omitzero"`
	Status  string            `json:"status,omitzero"`
	Issues  []string          `json:"issues,omitempty"` // what EKS finds wrong with it, as CODE: message
	Env     map[string]string `json:"env,omitzero"`     // from its configurationValues
}

// Role is the role whose credentials new pods of aws-node get.
type Role struct {
	ARN    string  `json:"arn,omitzero"`
	Via    string  `json:"via,omitzero" enum:"pod-identity,irsa,node"`
	Issuer string  `json:"issuer,omitempty"` // issuer of the cluster's service account tokens; empty if unknown
	Trust  []Trust `json:"trust,omitzero"`
}

// Ways for pods to get a role.
const (
	ViaPodIdentity = "pod-identity" // an association with the service account
	ViaIRSA        = "irsa"         // an annotation of the service account
	ViaNode        = "node"         // the instance profile
)

// Trust is a statement that allows a role to be assumed.
type Trust struct {
	Principals []string `json:"principals,omitzero"` // service names, and ARNs of accounts, roles and OIDC providers
	Actions    []string `json:"actions,omitzero"`
	Subjects   []string `json:"subjects,omitzero"`  // patterns for the subject of the token; empty for any
	Audiences  []string `json:"audiences,omitzero"` // empty for any
}
