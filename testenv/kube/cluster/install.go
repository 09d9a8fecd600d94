package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"cnictl/deploy"
	"cnictl/testenv/network/vpc"
)

// fieldManager owns the objects that the cluster itself creates.
const fieldManager = "cluster"

// publishAPI publishes the endpoint of the Service "kubernetes", as EKS does: pods reach the API
// server at the Service's address.
func (c *Cluster) publishAPI(ctx context.Context) error {
	at := c.apiForPods()
	family := "IPv4"
	if at.Addr().Is6() {
		family = "IPv6"
	}
	return c.apply(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": discoveryv1.SchemeGroupVersion.String(), "kind": "EndpointSlice",
		"metadata": map[string]any{
			"name": "kubernetes", "namespace": metav1.NamespaceDefault,
			"labels": map[string]any{discoveryv1.LabelServiceName: "kubernetes"},
		},
		"addressType": family,
		"endpoints":   []any{map[string]any{"addresses": []any{at.Addr().String()}, "conditions": map[string]any{"ready": true}}},
		"ports":       []any{map[string]any{"name": "https", "port": int64(at.Port()), "protocol": "TCP"}},
	}})
}

// apply creates an object or updates it.
func (c *Cluster) apply(ctx context.Context, o *unstructured.Unstructured) error {
	group := o.GroupVersionKind().GroupVersion()
	objects := c.API.Objects().Resource(group.WithResource(strings.ToLower(o.GetKind()) + "s"))
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	var err error
	if o.GetNamespace() == "" {
		_, err = objects.Apply(ctx, o.GetName(), o, options)
	} else {
		_, err = objects.Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, options)
	}
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// definitions returns the CRDs that EKS provides: the chart has only the CNI's own.
func definitions() ([]*unstructured.Unstructured, error) {
	all, err := deploy.CRDs()
	return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool {
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		return group == "crd.k8s.amazonaws.com"
	}), err
}

// Release is the name of the CNI's release.
const Release = "aws-vpc-cni"

// Chart returns the directory of the CNI's chart.
func (c *Cluster) Chart() string {
	return filepath.Join(checkout(c.opts.Binaries), "deploy/chart/aws-vpc-cni")
}

// Helm runs helm in the CNI's namespace and returns its standard output.
func (c *Cluster) Helm(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.programs[helm], append(args, "--namespace", SystemNamespace, "--kubeconfig", c.Kubeconfig)...)
	cmd.Env = environment("HELM_CACHE_HOME="+filepath.Join(c.opts.Dir, "helm"), "HELM_CONFIG_HOME="+filepath.Join(c.opts.Dir, "helm"))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("helm %s: %w: %s", args[0], err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}

// writeValues writes the chart's values: the names of the images on the nodes, how to reach AWS,
// and Options.Env. It disables the network policy agent, whose image is AWS's.
func (c *Cluster) writeValues() error {
	env := map[string]any{"AWS_ENDPOINT_URL_EC2": "http://" + vpc.EC2.String()}
	initial := map[string]any{}
	for name, value := range c.opts.Env {
		env[name] = value
		if value == "" {
			env[name] = nil // helm removes it
		}
		if slices.Contains(initVariables, name) {
			initial[name] = value
		}
	}
	data, err := json.MarshalIndent(map[string]any{
		"global":    map[string]any{"image": map[string]any{"registry": "cnictl"}},
		"nodeAgent": map[string]any{"enabled": false},
		"env":       env,
		"init":      map[string]any{"env": initial},
		// What docs/security.md recommends beside ANNOTATE_POD_IP.
		"admissionPolicy": map[string]any{"create": c.opts.Env["ANNOTATE_POD_IP"] == "true"},
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("write values: %w", err)
	}
	c.Values = filepath.Join(c.opts.Dir, "values.json")
	return os.WriteFile(c.Values, data, 0o600)
}

// initVariables are set in both containers.
var initVariables = []string{"ENABLE_IPv6", "ENABLE_V6_EGRESS"}
