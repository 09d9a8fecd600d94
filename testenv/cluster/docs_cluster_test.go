package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cnictl/deploy/chart"
	"cnictl/testenv"
	"cnictl/testenv/cluster"
	"cnictl/testenv/kubeapi"
	"cnictl/testenv/tour"
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

// operatorKinds are stand-ins for the kinds of the Prometheus Operator. tools/monitoring decodes
// the objects with the Operator's types.
const operatorKinds = `
{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "PLURAL.monitoring.coreos.com"},
 "spec": {"group": "monitoring.coreos.com", "names": {"kind": "KIND", "plural": "PLURAL"}, "scope": "Namespaced", "versions": [
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
	d.run("kubectl -n kube-system delete --ignore-not-found serviceaccount aws-node cni-metrics-helper")
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
	c := exec.CommandContext(d.Context(), "sh", "-c", command)
	c.Dir = d.dir
	c.Env = []string{"PATH=" + d.path, "HOME=" + d.dir, "KUBECONFIG=" + filepath.Join(d.dir, "kubeconfig")}
	out, err := c.CombinedOutput()
	if err != nil {
		d.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
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
// DaemonSet has the images and settings of the files. No page of tour.CommandPages shows another
// command that changes a cluster.
func TestDocs_Install(t *testing.T) {
	typed := map[string]bool{}
	for way, sections := range ways {
		var commands []string
		upgraded := -1 // the first command of upgradeSection
		for _, section := range sections {
			if section[1] == upgradeSection {
				upgraded = len(commands)
			}
			commands = append(commands, commandsOf(t, page(t, section[0]), section[1])...)
		}
		for _, command := range commands {
			typed[command] = true
		}
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			for kind, plural := range map[string]string{"PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules"} {
				d.write(plural+".json", strings.NewReplacer("KIND", kind, "PLURAL", plural).Replace(operatorKinds))
				d.run("kubectl apply -f " + plural + ".json")
				d.run("kubectl wait --for condition=Established --timeout 2m customresourcedefinition " + plural + ".monitoring.coreos.com")
			}
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
	for _, name := range tour.CommandPages {
		for _, command := range tour.Commands(page(t, name)) {
			program, _, _ := strings.Cut(command, " ")
			if slices.Contains([]string{"helm", "kubectl", "sed"}, program) && !typed[command] {
				t.Errorf("%s: nothing types %q", name, command)
			}
		}
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
	`value: v1(\.23\.1)?$|allowPrivilegeEscalation: false$|readOnlyRootFilesystem: true$|drop:$|ALL$)`)

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
