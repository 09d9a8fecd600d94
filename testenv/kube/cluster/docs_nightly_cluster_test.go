//go:build nightly

package cluster_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cnictl/deploy/chart"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/kube/kubeapi"
	"cnictl/testenv/text/tour"
)

// ways lists, for each way of installing, the documentation sections that change a cluster, in
// reading order.
var ways = map[string][][2]string{
	"helm": {
		{"docs/install.md", "With Helm"}, {"docs/install.md", "Monitoring"}, {"docs/operations.md", "Install alerts and the dashboard"},
		{"docs/install.md", "cnictl"}, {"docs/cli.md", "Rights"}, {"docs/install.md", upgradeSection},
	},
	"manifests": {{"docs/install.md", "With plain manifests"}},
	"kustomize": {{"docs/install.md", "With kustomize"}},
}

const upgradeSection = "Upgrade, roll back, uninstall"

// standIn defines a kind with any content. tools/monitoring decodes the objects of the Prometheus
// Operator with the Operator's types.
const standIn = `
{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "PLURAL.GROUP"},
 "spec": {"group": "GROUP", "names": {"kind": "KIND", "plural": "PLURAL"}, "scope": "Namespaced", "versions": [
  {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}
`

// desk is a directory in which the documented commands are run.
type desk struct {
	*testing.T
	dir, path string
}

// newDesk returns a desk for an API server without nodes.
func newDesk(t *testing.T) *desk {
	t.Helper()
	kubectl, err := kubeapi.ProgramDir()
	if err != nil {
		testenv.Missing(t, "kube", err.Error(), "sudo make test LAYERS=cluster")
	}
	for _, program := range []string{filepath.Join(kubectl, "kubectl"), tour.Path(t, ".cache/tools/helm"), filepath.Join(os.Getenv("CNI_TEST_BIN"), "cnictl")} {
		if _, err := os.Stat(program); err != nil {
			testenv.Missing(t, "kube", err.Error(), "sudo make test LAYERS=cluster")
		}
	}
	s := kubeapi.Start(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := (&cluster.Cluster{API: s}).WriteKubeconfig(kubeconfig, s.Endpoint()); err != nil {
		t.Fatal(err)
	}
	d := deskOf(t, kubeconfig, kubectl)
	// The test server comes with its own roles and accounts.
	d.run("kubectl delete --ignore-not-found clusterrole,clusterrolebinding aws-node cni-metrics-helper")
	d.run("kubectl -n kube-system delete --ignore-not-found serviceaccount,role,rolebinding aws-node cni-metrics-helper")
	return d
}

// deskOf returns a desk with the files that the pages show.
func deskOf(t *testing.T, kubeconfig, kubectl string) *desk {
	t.Helper()
	tools := filepath.Dir(tour.Path(t, ".cache/tools/helm"))
	d := &desk{T: t, dir: t.TempDir(), path: kubectl + ":" + tools + ":" + os.Getenv("CNI_TEST_BIN") + ":/usr/bin:/bin"}
	if err := os.Symlink(kubeconfig, filepath.Join(d.dir, "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(d.dir, "deploy"), os.DirFS(tour.Path(t, "deploy"))); err != nil {
		t.Fatal(err)
	}
	install := page(t, "docs/install.md")
	d.write("values.yaml", fileOf(install, "global:"))
	d.write("deploy-mine/kustomization.yaml", fileOf(install, "apiVersion: kustomize"))
	d.write("adopt.yaml", fileOf(page(t, "docs/migrate.md"), "image:"))
	return d
}

func (d *desk) run(command string) string {
	d.Helper()
	out, err := d.try(command)
	if err != nil {
		d.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

func (d *desk) try(command string) (string, error) {
	c := exec.CommandContext(d.Context(), "sh", "-c", command)
	c.Dir = d.dir
	c.Env = []string{"PATH=" + d.path, "HOME=" + d.dir, "KUBECONFIG=" + filepath.Join(d.dir, "kubeconfig"), "EDITOR=true"}
	out, err := c.CombinedOutput()
	return string(out), err
}

// define adds kinds of the Prometheus Operator and of EKS.
func (d *desk) define(kinds ...string) {
	d.Helper()
	for _, kind := range kinds {
		plural, group := strings.ToLower(kind)+"s", "monitoring.coreos.com"
		if kind == "PolicyEndpoint" {
			group = "networking.k8s.aws"
		}
		d.write(plural+".json", strings.NewReplacer("KIND", kind, "PLURAL", plural, "GROUP", group).Replace(standIn))
		d.run("kubectl apply -f " + plural + ".json")
		d.run("kubectl wait --for condition=Established --timeout 2m customresourcedefinition " + plural + "." + group)
	}
}

func (d *desk) write(name, text string) {
	d.Helper()
	name = filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(tour.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fileOf returns the file that a page shows, identified by its prefix.
func fileOf(page, prefix string) string {
	files := tour.Files(page, "yaml")
	return files[slices.IndexFunc(files, func(f string) bool { return strings.HasPrefix(f, prefix) })]
}

// TestDocs_Install runs the commands of docs/install.md, with its files. The resulting
// DaemonSet has the images and settings of the files.
func TestDocs_Install(t *testing.T) {
	for way, sections := range ways {
		var commands []string
		upgraded := -1 // the first command of upgradeSection
		for _, section := range sections {
			if section[1] == upgradeSection {
				upgraded = len(commands)
			}
			commands = append(commands, commandsOf(t, page(t, section[0]), section[1])...)
		}
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.define("PodMonitor", "PrometheusRule")
			var images []string // the daemon's image after each command
			for i, command := range commands {
				if i == upgraded { // "Write the new tag into values.yaml"
					d.write("values.yaml", strings.Replace(fileOf(page(t, "docs/install.md"), "global:"), "tag: v1", "tag: v2", 1))
				}
				d.run(command)
				images = append(images, d.run("kubectl -n kube-system get daemonset aws-node --ignore-not-found -o jsonpath='{.spec.template.spec.containers[0].image}'"))
			}
			const v1, v2 = "registry.example/aws-vpc-cni:v1", "registry.example/aws-vpc-cni:v2"
			if want := map[string][]string{"helm": {v1, v2, v1, ""}, "manifests": {"", v1}, "kustomize": {v1}}[way]; !slices.Equal(slices.Compact(slices.Clone(images)), want) {
				t.Errorf("images %q, want %q", images, want)
			}
			if way != "helm" { // which has uninstalled it
				versions := d.run("kubectl -n kube-system get daemonset/aws-node serviceaccount/aws-node configmap/amazon-vpc-cni clusterrole/aws-node clusterrolebinding/aws-node -o jsonpath='{.items[*].metadata.labels.app\\.kubernetes\\.io/version} {.items[0].spec.template.spec.containers[0].env[?(@.name==\"VPC_CNI_VERSION\")].value}'")
				if want := "v1 v1 v1 v1 v1 v1"; versions != want {
					t.Errorf("versions %q, want %q", versions, want)
				}
			}
			switch way {
			case "helm":
				runbook := d.run("kubectl -n kube-system get prometheusrule aws-node -o jsonpath='{.spec.groups[0].rules[0].annotations.runbook_url}'")
				if want := "https://git.example/cnictl/blob/main/docs/operations.md#awsnodedown"; runbook != want {
					t.Errorf("runbook_url is %q, want %q", runbook, want)
				}
			case "kustomize":
				if got := d.run("kubectl -n kube-system get daemonset aws-node -o yaml"); !strings.Contains(got, "- name: ENABLE_PREFIX_DELEGATION\n          value: \"true\"\n") {
					t.Errorf("the patch is not in the DaemonSet:\n%s", got)
				}
			}
		})
	}
}

// TestDocs_Migrate runs the commands of docs/migrate.md on a cluster with upstream's manifest
// and non-default settings, which are kept on the way there and back. Adopting changes
// nothing, and the differences before the move are those that the page lists.
func TestDocs_Migrate(t *testing.T) {
	text := page(t, "docs/migrate.md")
	const upstream, ours = "602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon-k8s-cni:v1.23.1", "registry.example/aws-vpc-cni:v1"
	for way, images := range map[string][]string{ // after each command that changes something
		"With Helm":    {upstream, ours, upstream},
		"Without Helm": {ours, upstream},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.run("kubectl apply --server-side --field-manager eks -f deploy/chart/testdata/upstream.yaml")
			d.run("kubectl -n kube-system set env daemonset/aws-node -c aws-node ENABLE_PREFIX_DELEGATION=true AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true ADDITIONAL_ENI_TAGS='{\"a\": \"b\"}'")
			of := func(path string) string {
				return strings.TrimSpace(d.run("kubectl -n kube-system get daemonset aws-node -o jsonpath='{" + path + "}'"))
			}
			settings := func() string {
				return of(".spec.template.spec.containers[0].env[?(@.name!=\"VPC_CNI_VERSION\")]") + of(".spec.template.spec.initContainers[0].env") + of(".spec.template.spec.containers[1].args")
			}
			before, generation := settings(), of(".metadata.generation")
			for _, command := range commandsOf(t, text, "Carry the settings over") {
				if !strings.Contains(command, "kubectl diff") {
					d.run(command)
					continue
				}
				differ := d.run(command + " || [ $? = 1 ]")
				for _, line := range regexp.MustCompile(`(?m)^[-+] .*`).FindAllString(differ, -1) {
					if !expectedChange.MatchString(line) {
						t.Errorf("kubectl diff shows %q", line)
					}
				}
			}
			var got []string
			for _, command := range commandsOf(t, text, way) {
				out := d.run(command)
				if strings.HasPrefix(command, "kubectl get") {
					if out != generation {
						t.Errorf("adopted: generation %s, want %s", out, generation)
					}
					continue
				}
				got = append(got, of(".spec.template.spec.containers[0].image"))
				if now := settings(); now != before {
					t.Errorf("after %s:\n%s\nwant\n%s", command, now, before)
				}
			}
			if !slices.Equal(got, images) {
				t.Errorf("images %q, want %q", got, images)
			}
			// The output of "aws eks".
			d.write("configuration.json", `{"env": {"ENABLE_PREFIX_DELEGATION": "true"}}`)
			d.write("addon.schema.json", string(chart.Addon()))
			for _, command := range commandsOf(t, text, "The add-on's configurationValues") {
				d.run(command)
			}
			d.run("helm template aws-vpc-cni deploy/chart/aws-vpc-cni --values values.yaml --values configuration.yaml --values settings.yaml")
			for _, command := range commandsOf(t, text, "Back to the add-on") {
				if strings.HasPrefix(command, "cnictl ") {
					command += " || [ $? = 3 ]" // it leaves out ENABLE_IPv4
				}
				d.run(command)
			}
			if made := d.run("cat configuration.json"); !strings.Contains(made, `"ENABLE_PREFIX_DELEGATION": "true"`) || !strings.Contains(made, `"ADDITIONAL_ENI_TAGS": "{\"a\": \"b\"}"`) {
				t.Errorf("settings for the add-on:\n%s", made)
			}
			if out := d.run("helm list --namespace kube-system --short"); out != "" {
				t.Errorf("helm still has %s", out)
			}
			of(".metadata.name") // is still there
		})
	}
}

// expectedChange matches a line of kubectl diff that docs/migrate.md announces.
var expectedChange = regexp.MustCompile(`^[-+] +(- )?((deprecated\.daemonset\.template\.)?generation: |image: |app\.kubernetes\.io/(managed-by|version): |helm\.sh/chart: |` +
	`value: v1(\.23\.1)?$|allowPrivilegeEscalation: false$|readOnlyRootFilesystem: true$|DAC_OVERRIDE$|drop:$|ALL$|seccompProfile:$|type: RuntimeDefault$)`)

// commandsOf returns the commands of a section, except for those of aws and make, and those of
// cnictl that read a cluster: TestDocs_Commands of cmd/cnictl/internal/root runs them on a
// recording.
func commandsOf(t *testing.T, page, title string) (out []string) {
	t.Helper()
	_, text, found := strings.Cut(page, "# "+title+"\n")
	if !found {
		t.Fatalf("no section %q", title)
	}
	text, _, _ = strings.Cut(text, "\n#")
	for _, command := range tour.Commands(text) {
		program, _, _ := strings.Cut(command, " ")
		if !slices.Contains([]string{"aws", "make", "cnictl"}, program) || strings.HasPrefix(command, "cnictl migrate values ") {
			out = append(out, command)
		}
	}
	if len(out) == 0 {
		t.Fatalf("section %q shows no command", title)
	}
	return out
}

// needsNode matches commands for which the API server asks a kubelet or metrics-server, and their
// errors without one.
var needsNode, noNode = regexp.MustCompile(`^kubectl (-n \S+ )?(logs|exec|top) `), regexp.MustCompile(`^$|does not have a host assigned|Metrics API not available|the text is empty`)

// alike matches commands that set something: those with the same beginning run as one, because each
// run takes a quarter of a second or more. One run cannot both set and remove a variable.
var alike = regexp.MustCompile(`^(kubectl -n kube-system set env daemonset/aws-node -c \S+|helm upgrade aws-vpc-cni \S+ -n kube-system --reset-then-reuse-values)( .*)$`)

// readers are the objects that the pages name or, as "own" and "front", leave to the reader.
const readers = `
apiVersion: v1
kind: Namespace
metadata: {name: blog}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: front, namespace: blog}
spec: {containers: [{name: front, image: front}]}
---
apiVersion: v1
kind: Pod
metadata: {name: front, namespace: kube-system}
spec: {containers: [{name: aws-node, image: front}, {name: aws-eks-nodeagent, image: front}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: own, namespace: blog}
spec:
  selector: {matchLabels: {app: own}}
  template: {metadata: {labels: {app: own}}, spec: {containers: [{name: own, image: own}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: own, namespace: kube-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: aws-node, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: eks-vpc-resource-controller-role, namespace: kube-system}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: own}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: vpc-resource-mutating-webhook}
`

// one is the file that the pages leave to the reader.
const one = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "default"}}`

// readersCustom are objects of definitions that must be established first.
const readersCustom = `
apiVersion: crd.k8s.amazonaws.com/v1alpha1
kind: ENIConfig
metadata: {name: own}
spec: {subnet: subnet-0aa11bb22cc33dd44}
---
apiVersion: vpcresources.k8s.aws/v1beta1
kind: SecurityGroupPolicy
metadata: {name: own, namespace: blog}
spec: {podSelector: {}, securityGroups: {groupIds: [sg-0123456789abcdef0]}}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {name: own, namespace: blog}
`

// TestDocs_Commands runs the commands of curl, helm, kubectl and sed on all pages, also those of the
// doctor's checks and fixes, except for those that other tests run in order. What deletes or drains
// does so in a dry run, because later commands need the objects.
func TestDocs_Commands(t *testing.T) {
	t.Parallel()
	inOrder := map[string]bool{}
	for _, sections := range ways {
		for _, section := range sections {
			for _, command := range commandsOf(t, page(t, section[0]), section[1]) {
				inOrder[command] = true
			}
		}
	}
	for _, section := range []string{ // by TestDocs_Migrate, and the last one by TestUpgrade_Page of deploy/chart
		"Carry the settings over", "The add-on's configurationValues", "With Helm", "Without Helm", "Back to the add-on", "From a release of upstream's chart",
	} {
		for _, command := range commandsOf(t, page(t, "docs/migrate.md"), section) {
			inOrder[command] = true
		}
	}
	d := newDesk(t)
	d.define("PodMonitor", "ServiceMonitor", "PolicyEndpoint")
	d.write("readers.yaml", readers)
	d.write("custom.yaml", readersCustom)
	d.write("helper.yaml", "image: {registry: registry.example}\n")
	d.run("cp deploy/aws-node.yaml . && kubectl apply -f readers.yaml -f deploy/crds")
	d.run("helm install aws-vpc-cni deploy/chart/aws-vpc-cni --namespace kube-system --set originalMatchLabels=true --take-ownership --values values.yaml")
	d.run("kubectl wait --for condition=Established --timeout 2m customresourcedefinition eniconfigs.crd.k8s.amazonaws.com securitygrouppolicies.vpcresources.k8s.aws && kubectl apply -f custom.yaml")
	d.run("kubectl -n kube-system get daemonset aws-node -o yaml | kubectl apply -f -") // view-last-applied
	d.curl()
	together := map[string]string{}
	var lines []string
	replace := strings.NewReplacer("KIND NAME", "configmap own", "NAME:", "NAME:", "NAMESPACE", "blog", "NAME", "own", "POD ", "front ", "CLUSTER_IP/", "10.96.0.1/", "ENDPOINT/", "10.96.0.1/", "KUBERNETES_SERVICE_HOST", "10.96.0.1", "REGION", "eu-west-1", "VERB RESOURCE", "list pods", "NODE ", "n1 ",
		"eks/aws-vpc-cni", "deploy/chart/aws-vpc-cni --set originalMatchLabels=true", "CHART", "deploy/chart/aws-vpc-cni", "REGISTRY", "registry.example")
	for _, command := range tour.Shown(t, tour.OnCluster...) {
		if inOrder[command] {
			continue
		}
		line := strings.TrimSpace(replace.Replace(command + " "))
		for _, file := range regexp.MustCompile(`\b[A-Z_]+\.yaml`).FindAllString(line, -1) {
			d.write(file, one)
		}
		if m := alike.FindStringSubmatch(line); m != nil {
			key := m[1]
			if strings.HasSuffix(line, "-") {
				key += " --overwrite" // the default
			}
			together[key] += m[2]
			continue
		}
		switch {
		case needsNode.MatchString(line):
			if out, _ := d.try(line); !noNode.MatchString(out) {
				t.Errorf("%s: %s", command, out)
			}
			continue
		case strings.HasPrefix(line, "helm install cni-metrics-helper"):
			line = strings.Replace(line, "values.yaml", "helper.yaml", 1) + " --take-ownership" // docs/metrics-helper.md applied the manifest
		case strings.HasPrefix(line, "helm install "):
			line = "helm uninstall aws-vpc-cni --namespace kube-system && " + line
		case regexp.MustCompile(`^kubectl (-n \S+ )?(delete|drain) `).MatchString(line):
			line += " --dry-run=server"
		case strings.Contains(line, "| grep "), strings.HasPrefix(line, "kubectl diff "), strings.HasPrefix(line, "kubectl auth can-i "):
			line += " || [ $? = 1 ]" // no such line, a difference, no
		}
		lines = append(lines, line)
	}
	for command, variables := range together {
		lines = append(lines, command+variables)
	}
	for _, line := range lines {
		if out, err := d.try(line); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}

// curl makes curl connect to a fakeaws instead of the metadata service and the port that
// docs/testing.md shows, and to the API server instead of all other hosts.
func (d *desk) curl() {
	d.Helper()
	world := fakeaws.NewWorld(fakeaws.Options{})
	subnet, err := world.AddSubnet(fakeaws.SubnetSpec{VPCID: world.AddVPC(netip.MustParsePrefix("10.0.0.0/16")).ID, CIDR: netip.MustParsePrefix("10.0.0.0/20")})
	if err != nil {
		d.Fatal(err)
	}
	i, err := world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: subnet.ID})
	if err != nil {
		d.Fatal(err)
	}
	aws, err := fakeaws.Listen(world, fakeaws.ServerOptions{ControlAddr: "127.0.0.1:0", Identify: fakeaws.OneInstance(i.ID)})
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { aws.Close() })
	_, server, _ := strings.Cut(d.run("kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}'"), "://")
	d.write(".curlrc", fmt.Sprintf("insecure\nconnect-to = \"169.254.169.254:80:%s\"\nconnect-to = \"127.0.0.1:4567:%s\"\nconnect-to = \"::%s\"\n",
		strings.TrimPrefix(aws.IMDSURL, "http://"), strings.TrimPrefix(aws.ControlURL, "http://"), server))
}
