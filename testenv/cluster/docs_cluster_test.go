package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/cluster"
	"cnictl/testenv/kubeapi"
	"cnictl/testenv/tour"
)

// typed are the commands of docs/install.md and README.md that change a cluster, by the
// way to install, in their order.
var typed = map[string][]string{
	"helm": {
		"helm upgrade --install aws-vpc-cni deploy/chart/aws-vpc-cni --namespace kube-system --values values.yaml",
		"helm upgrade aws-vpc-cni deploy/chart/aws-vpc-cni --namespace kube-system --values values.yaml",
		"helm upgrade aws-vpc-cni deploy/chart/aws-vpc-cni --namespace kube-system --reset-then-reuse-values",
		"helm history aws-vpc-cni --namespace kube-system",
		"helm rollback aws-vpc-cni --namespace kube-system",
		"helm uninstall aws-vpc-cni --namespace kube-system",
		"helm install aws-vpc-cni deploy/chart/aws-vpc-cni --namespace kube-system --set originalMatchLabels=true --take-ownership --values values.yaml",
		"helm upgrade --install cni-metrics-helper deploy/chart/cni-metrics-helper --namespace kube-system",
		"kubectl apply -f deploy/monitoring/podmonitor.yaml -f deploy/monitoring/prometheusrule.yaml",
		"kubectl apply -f deploy/rbac/cnictl.yaml",
	},
	"manifests": {"kubectl apply --server-side -f deploy/crds -f deploy/aws-node.yaml"},
	"kustomize": {"kubectl apply --server-side -k deploy-mine"},
}

// operatorKinds stand for those of the Prometheus Operator. tools/monitoring decodes the
// objects with its types.
const operatorKinds = `
{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "PLURAL.monitoring.coreos.com"},
 "spec": {"group": "monitoring.coreos.com", "names": {"kind": "KIND", "plural": "PLURAL"}, "scope": "Namespaced", "versions": [
  {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}
`

// TestDocs_Install types what docs/install.md shows, with its files, at an API server
// without nodes; the DaemonSet that results has the images and settings of the files.
func TestDocs_Install(t *testing.T) {
	kubectl, err := kubeapi.ProgramDir()
	if err != nil {
		testenv.Missing(t, "kube", err.Error(), "sudo make test LAYERS=cluster")
	}
	tools := filepath.Dir(tour.Path(t, ".cache/tools/helm"))
	for _, program := range []string{filepath.Join(kubectl, "kubectl"), filepath.Join(tools, "helm")} {
		if _, err := os.Stat(program); err != nil {
			testenv.Missing(t, "kube", err.Error(), "sudo make test LAYERS=cluster")
		}
	}
	page, err := os.ReadFile(tour.Path(t, "docs/install.md"))
	if err != nil {
		t.Fatal(err)
	}
	for way, commands := range typed {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s := kubeapi.Start(t)
			dir := t.TempDir()
			run := func(command string) string {
				t.Helper()
				c := exec.CommandContext(t.Context(), "sh", "-c", command)
				c.Dir = dir
				c.Env = []string{"PATH=" + kubectl + ":" + tools + ":/usr/bin:/bin", "HOME=" + dir, "KUBECONFIG=" + filepath.Join(dir, "kubeconfig")}
				out, err := c.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", command, err, out)
				}
				return string(out)
			}
			write := func(name, text string) {
				t.Helper()
				name = filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := (&cluster.Cluster{API: s}).WriteKubeconfig(filepath.Join(dir, "kubeconfig"), s.Endpoint()); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS(tour.Path(t, "deploy"))); err != nil {
				t.Fatal(err)
			}
			files := tour.Files(string(page), "yaml")
			write("values.yaml", files[slices.IndexFunc(files, func(f string) bool { return strings.HasPrefix(f, "global:") })])
			write("deploy-mine/kustomization.yaml", files[slices.IndexFunc(files, func(f string) bool { return strings.Contains(f, "kind: Kustomization") })])
			// The test bed's server has roles and accounts of its own.
			run("kubectl delete --ignore-not-found clusterrole,clusterrolebinding aws-node cni-metrics-helper")
			run("kubectl -n kube-system delete --ignore-not-found serviceaccount aws-node cni-metrics-helper")
			for kind, plural := range map[string]string{"PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules"} {
				write(plural+".json", strings.NewReplacer("KIND", kind, "PLURAL", plural).Replace(operatorKinds))
				run("kubectl apply -f " + plural + ".json")
				run("kubectl wait --for condition=Established --timeout 2m customresourcedefinition " + plural + ".monitoring.coreos.com")
			}
			for _, command := range commands {
				if strings.Contains(command, "deploy/chart/cni-metrics-helper") {
					command += " --set image.registry=registry.example"
				}
				run(command)
			}
			got := run("kubectl -n kube-system get daemonset aws-node -o yaml")
			want := map[string]string{"helm": "image: registry.example/aws-vpc-cni:v1\n", "manifests": "image: cnictl/aws-vpc-cni:", "kustomize": "image: registry.example/aws-vpc-cni:v1\n"}[way]
			if !strings.Contains(got, want) {
				t.Errorf("the DaemonSet has no %q:\n%s", want, got)
			}
			if way == "kustomize" && !strings.Contains(got, "- name: ENABLE_PREFIX_DELEGATION\n          value: \"true\"\n") {
				t.Errorf("the patch is not in the DaemonSet:\n%s", got)
			}
		})
	}
}
