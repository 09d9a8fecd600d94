package capacity

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cnictl/capacity/whatif"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/encode"
	"cnictl/cmd/cnictl/internal/output"
)

// Output forms for what provisions nodes. They leave out what only the user knows, such as subnets
// and the role: they are to be merged.
const (
	formKarpenter = "karpenter" // a pair of EC2NodeClass and NodePool per max-pods
	formNodeadm   = "nodeadm"   // a NodeConfig per max-pods
)

// provisions reports whether the output is for what provisions nodes.
func provisions(f *cli.Factory) bool {
	return f.Globals.Output == formKarpenter || f.Globals.Output == formNodeadm
}

// alike are the instance types of one max-pods.
type alike struct {
	maxPods int
	types   []string
}

// byMaxPods groups types by their max-pods, lowest first.
func byMaxPods(of map[string][]int) (out []alike) {
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		for _, n := range of[kind] {
			i := slices.IndexFunc(out, func(a alike) bool { return a.maxPods == n })
			if i < 0 {
				i, out = len(out), append(out, alike{maxPods: n})
			}
			if !slices.Contains(out[i].types, kind) {
				out[i].types = append(out[i].types, kind)
			}
		}
	}
	slices.SortFunc(out, func(a, b alike) int { return cmp.Compare(a.maxPods, b.maxPods) })
	return out
}

// nodesByMaxPods groups the types of nodes by the nodes' max-pods. It skips nodes that have none.
func nodesByMaxPods(nodes []whatif.Node) []alike {
	of := map[string][]int{}
	for _, n := range nodes {
		if s := n.Settings; s.MaxPods > 0 {
			of[s.Instance.Type] = append(of[s.Instance.Type], s.MaxPods)
		}
	}
	return byMaxPods(of)
}

type (
	object struct {
		APIVersion string    `json:"apiVersion"`
		Kind       string    `json:"kind"`
		Metadata   *metadata `json:"metadata,omitempty"`
		Spec       any       `json:"spec"`
	}
	metadata struct {
		Name   string            `json:"name,omitempty"`
		Labels map[string]string `json:"labels,omitempty"`
	}
	maxPodsOnly struct {
		MaxPods int `json:"maxPods"`
	}
	nodeClassSpec struct {
		Kubelet maxPodsOnly `json:"kubelet"`
	}
	nodePoolSpec struct {
		Template nodeTemplate `json:"template"`
	}
	nodeTemplate struct {
		Metadata *metadata        `json:"metadata,omitempty"`
		Spec     nodeTemplateSpec `json:"spec"`
	}
	nodeTemplateSpec struct {
		NodeClassRef nodeClassRef  `json:"nodeClassRef"`
		Requirements []requirement `json:"requirements"`
	}
	nodeClassRef struct {
		Group string `json:"group"`
		Kind  string `json:"kind"`
		Name  string `json:"name"`
	}
	requirement struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	}
	nodeConfigSpec struct {
		Kubelet nodeConfigKubelet `json:"kubelet"`
	}
	nodeConfigKubelet struct {
		Config maxPodsOnly `json:"config"`
		Flags  []string    `json:"flags,omitempty"`
	}
)

// karpenter is the EC2NodeClass and the NodePool of some types.
func karpenter(a alike, labels map[string]string) []object {
	const group = "karpenter.k8s.aws"
	name := fmt.Sprintf("max-pods-%d", a.maxPods)
	pool := nodePoolSpec{Template: nodeTemplate{Spec: nodeTemplateSpec{
		NodeClassRef: nodeClassRef{Group: group, Kind: "EC2NodeClass", Name: name},
		Requirements: []requirement{{Key: "node.kubernetes.io/instance-type", Operator: "In", Values: a.types}},
	}}}
	if len(labels) > 0 {
		pool.Template.Metadata = &metadata{Labels: labels}
	}
	return []object{
		{
			APIVersion: group + "/v1", Kind: "EC2NodeClass", Metadata: &metadata{Name: name},
			Spec: nodeClassSpec{maxPodsOnly{a.maxPods}},
		},
		{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Metadata: &metadata{Name: name}, Spec: pool},
	}
}

// nodeadm is the NodeConfig of some types.
func nodeadm(a alike, labels map[string]string) object {
	kubelet := nodeConfigKubelet{Config: maxPodsOnly{a.maxPods}}
	if len(labels) > 0 {
		kubelet.Flags = []string{"--node-labels=" + labelList(labels, ",")}
	}
	return object{APIVersion: "node.eks.aws/v1alpha1", Kind: "NodeConfig", Spec: nodeConfigSpec{kubelet}}
}

// labelList writes labels as kubelet and kubectl read them.
func labelList(labels map[string]string, between string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, name+"="+labels[name])
	}
	return strings.Join(out, between)
}

// printProvisioned writes the objects of a form for nodes with these labels.
func printProvisioned(f *cli.Factory, of []alike, labels map[string]string) error {
	var lines []string
	for _, a := range of {
		objects := karpenter(a, labels)
		merge := "# Merge into an EC2NodeClass with AMI, role, subnets and security groups, and into a NodePool that refers to it."
		if f.Globals.Output == formNodeadm {
			objects, merge = []object{nodeadm(a, labels)}, "# Merge into the user data of "+strings.Join(a.types, ", ")+"."
		}
		for i, o := range objects {
			text, err := encode.YAML(o)
			if err != nil {
				return err
			}
			if lines = append(lines, "---"); i == 0 {
				lines = append(lines, merge)
			}
			lines = append(lines, strings.Split(string(bytes.TrimRight(text, "\n")), "\n")...)
		}
	}
	return output.PrintText(f, lines...)
}

// provision writes the types with their max-pods by a single rule: that of --rule, or ours.
func (o *typeOptions) provision(f *cli.Factory, rows []row) error {
	of := map[string][]int{}
	for _, r := range rows {
		n := maxPods(r, o.provisioningRule())
		if n == nil {
			why := "the rule gives no number"
			for _, x := range r.Rules {
				if x.Name == o.provisioningRule() && x.Why != "" {
					why = x.Why
				}
			}
			return &cli.Error{
				Code: cli.ExitFindings, What: fmt.Sprintf("%s has no max-pods by the rule %s", r.InstanceType, o.provisioningRule()),
				Why: why, Do: "choose another --rule, or leave the type out",
			}
		}
		of[r.InstanceType] = []int{*n}
	}
	return printProvisioned(f, byMaxPods(of), nil)
}
