package kube

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/cluster"
)

// Keys and values that mark nodes and pods.
const (
	unschedulableTaint = "node.kubernetes.io/unschedulable"
	noSchedule         = "NoSchedule"
	podENIResource     = "vpc.amazonaws.com/pod-eni" // and an annotation
	podIPsAnnotation   = "vpc.amazonaws.com/pod-ips"
	mirrorAnnotation   = "kubernetes.io/config.mirror"
	nicConfig          = "k8s.amazonaws.com/nicConfig"
	multiNIC           = "multi-nic-attachment"
)

// maxAnnotation bounds the part of an annotation's value that is kept. It is above what
// cluster.ParseBranch accepts, which therefore rejects a truncated value.
const maxAnnotation = 64<<10 + 1

// objectMeta holds the metadata fields that are used.
type objectMeta struct {
	Namespace         string            `json:"namespace"`
	Name              string            `json:"name"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	CreationTimestamp string            `json:"creationTimestamp"`
	DeletionTimestamp *string           `json:"deletionTimestamp"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
}

// nodeObject holds the fields of a core/v1 Node that are used.
type nodeObject struct {
	Metadata objectMeta `json:"metadata"`
	Spec     struct {
		Unschedulable bool `json:"unschedulable"`
		Taints        []struct {
			Key    string `json:"key"`
			Effect string `json:"effect"`
		} `json:"taints"`
	} `json:"spec"`
	Status struct {
		Capacity map[string]json.RawMessage `json:"capacity"`
	} `json:"status"`
}

// parseNode reads a Node.
func parseNode(raw []byte) (cluster.Node, error) {
	var obj nodeObject
	if err := json.Unmarshal(raw, &obj); err != nil {
		return cluster.Node{}, err
	}
	n := cluster.Node{Labels: obj.Metadata.Labels, Annotations: obj.Metadata.Annotations, Unschedulable: obj.Spec.Unschedulable}
	for _, t := range obj.Spec.Taints {
		if t.Key == unschedulableTaint && t.Effect == noSchedule {
			n.Unschedulable = true
		}
	}
	var err error
	if n.MaxPods, err = count(obj.Status.Capacity, "pods"); err != nil {
		return cluster.Node{}, err
	}
	if n.PodENIs, err = count(obj.Status.Capacity, podENIResource); err != nil {
		return cluster.Node{}, err
	}
	return n, nil
}

// quantity matches a count in the forms that the API server stores: canonical, with a
// suffix only if the value was written with one of that kind. The exponent is bounded, so
// that no input makes us compute 1e999999999.
var quantity = regexp.MustCompile(`^"?([0-9]{1,10})(k|M|Ki|Mi|e[0-9])?"?$`)

var suffixes = map[string]int64{"": 1, "k": 1e3, "M": 1e6, "Ki": 1 << 10, "Mi": 1 << 20}

// count reads a count from the node's capacity, 0 if absent.
func count(capacity map[string]json.RawMessage, name string) (int, error) {
	raw, ok := capacity[name]
	if !ok {
		return 0, nil
	}
	refused := fmt.Errorf("status.capacity[%s] is %.64s, want a count", name, raw)
	parts := quantity.FindSubmatch(raw)
	if parts == nil {
		return 0, refused
	}
	n, err := strconv.ParseInt(string(parts[1]), 10, 64)
	if err != nil {
		return 0, refused
	}
	factor, ok := suffixes[string(parts[2])]
	if !ok { // e and a digit
		factor = int64(math.Pow10(int(parts[2][1] - '0')))
	}
	if n > math.MaxInt32/factor {
		return 0, refused
	}
	return int(n * factor), nil
}

// podObject holds the fields of a core/v1 Pod that are used.
type podObject struct {
	Metadata objectMeta `json:"metadata"`
	Spec     struct {
		NodeName    string `json:"nodeName"`
		HostNetwork bool   `json:"hostNetwork"`
		Containers  []struct {
			Resources struct {
				Limits map[string]json.RawMessage `json:"limits"`
			} `json:"resources"`
		} `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase  string     `json:"phase"`
		PodIPs []struct{} `json:"podIPs"`
	} `json:"status"`
}

// parsePod reads a Pod.
func parsePod(raw []byte) (cluster.Pod, error) {
	var obj podObject
	if err := json.Unmarshal(raw, &obj); err != nil {
		return cluster.Pod{}, err
	}
	meta := obj.Metadata
	p := cluster.Pod{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID,
		NodeName: obj.Spec.NodeName, HostNetwork: obj.Spec.HostNetwork,
		Finished: obj.Status.Phase == "Succeeded" || obj.Status.Phase == "Failed",
		IPs:      len(obj.Status.PodIPs),
		LinkHash: netnames.Hash(meta.Namespace, meta.Name, 0),
		MultiNIC: meta.Annotations[nicConfig] == multiNIC, Mirror: meta.Annotations[mirrorAnnotation] != "",
		PodENI: kept(meta.Annotations[podENIResource]), PodIPs: kept(meta.Annotations[podIPsAnnotation]),
	}
	p.CreatedAt, _ = time.Parse(time.RFC3339, meta.CreationTimestamp) // only shown
	p.Ended = p.Finished || meta.DeletionTimestamp != nil
	if len(obj.Spec.Containers) > 0 {
		for name := range obj.Spec.Containers[0].Resources.Limits {
			p.BranchENI = p.BranchENI || strings.HasPrefix(name, podENIResource)
		}
	}
	return p, nil
}

func kept(value string) string {
	if len(value) > maxAnnotation {
		return strings.Clone(value[:maxAnnotation])
	}
	return value
}

// eniConfig is an ENIConfig, or what is wrong with the object of that name.
type eniConfig struct {
	config  cluster.ENIConfig
	problem string
}

// parseENIConfig reads an ENIConfig. An unusable one is kept with the reason, for the error
// that ENIConfig returns.
func parseENIConfig(raw []byte) (eniConfig, error) {
	var obj struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Subnet         string   `json:"subnet"`
			SecurityGroups []string `json:"securityGroups"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &obj); err != nil {
		return eniConfig{}, err
	}
	config, err := cluster.ParseENIConfig(obj.Metadata.Name, obj.Spec.Subnet, obj.Spec.SecurityGroups)
	if err != nil {
		return eniConfig{problem: err.Error()}, nil
	}
	return eniConfig{config: config}, nil
}

// cniNode is a CNINode and its resource version, on which a change is based.
type cniNode struct {
	node    cluster.CNINode
	version string
}

func parseCNINode(raw []byte) (cniNode, error) {
	var obj struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Spec struct {
			Features  []featureObject `json:"features"`
			ManagedBy string          `json:"managedBy"`
		} `json:"spec"`
		Status struct {
			Trunk *struct {
				ID string `json:"id"`
			} `json:"trunkInterface"`
		} `json:"status"`
	}
	if err := json.Unmarshal(raw, &obj); err != nil {
		return cniNode{}, err
	}
	out := cniNode{version: obj.Metadata.ResourceVersion, node: cluster.CNINode{ManagedBy: obj.Spec.ManagedBy}}
	for _, f := range obj.Spec.Features {
		out.node.Features = append(out.node.Features, cluster.Feature(f))
	}
	if obj.Status.Trunk != nil {
		out.node.Trunk = obj.Status.Trunk.ID
	}
	return out, nil
}

// featureObject is an entry of a CNINode's spec.features.
type featureObject struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"` // upstream writes no empty one
}
