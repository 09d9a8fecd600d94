package deploy

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed chart/aws-vpc-cni/crds/*.yaml crds/*.yaml rbac/*.yaml iam/*.json aws-node.yaml cni-metrics-helper.yaml uninstall.yaml
var files embed.FS

// CRDs returns the CustomResourceDefinitions: those of the chart, then those of crds/.
func CRDs() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, dir := range []string{"chart/aws-vpc-cni/crds", "crds"} {
		entries, err := files.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			objects, err := decode(path.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			out = append(out, objects...)
		}
	}
	return out, nil
}

// RBAC returns roles with their bindings and accounts: those in the manifests "aws-node"
// and "cni-metrics-helper", or in rbac/NAME.yaml, such as "aws-node-annotate" (in addition
// to aws-node, for ANNOTATE_POD_IP).
func RBAC(name string) ([]*unstructured.Unstructured, error) {
	objects, err := decode(roleFile(name))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() != "ServiceAccount" && o.GroupVersionKind().Group != rbacv1.GroupName
	}), nil
}

// roleFile is the file that contains a role.
func roleFile(name string) string {
	if name == "aws-node" || name == "cni-metrics-helper" {
		return name + ".yaml"
	}
	return path.Join("rbac", name+".yaml")
}

// IAM returns the policy iam/NAME.json verbatim: "aws-node-ipv4", "aws-node-ipv6", each
// also with "-scoped", "cni-metrics-helper", "cnictl-doctor" or
// "network-policy-agent-logs".
func IAM(name string) (json.RawMessage, error) {
	return files.ReadFile(path.Join("iam", name+".json"))
}

// Manifest returns the objects of aws-node.yaml.
func Manifest() ([]*unstructured.Unstructured, error) {
	return decode("aws-node.yaml")
}

// MetricsHelper returns the objects of cni-metrics-helper.yaml.
func MetricsHelper() ([]*unstructured.Unstructured, error) {
	return decode("cni-metrics-helper.yaml")
}

// Uninstall returns the objects of uninstall.yaml.
func Uninstall() ([]*unstructured.Unstructured, error) {
	return decode("uninstall.yaml")
}

// Capabilities returns the capabilities of the container aws-node: the daemon and the
// entrypoint have these and no others.
func Capabilities() ([]string, error) {
	objects, err := Manifest()
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			container, _ := c.(map[string]any)
			if container["name"] != "aws-node" {
				continue
			}
			added, ok, err := unstructured.NestedStringSlice(container, "securityContext", "capabilities", "add")
			if err != nil {
				return nil, fmt.Errorf("aws-node.yaml: capabilities of aws-node: %w", err)
			}
			if !ok {
				return nil, errors.New("aws-node.yaml: the container aws-node adds no capabilities")
			}
			return added, nil
		}
	}
	return nil, errors.New("aws-node.yaml has no container aws-node")
}

// decode reads the documents of a YAML file. It fails if a document has a key twice or the
// file is not embedded.
func decode(file string) ([]*unstructured.Unstructured, error) {
	data, err := files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(doc, &o.Object); err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", file, len(out)+1, err)
		}
		out = append(out, o)
	}
}
