package root

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/testenv/text/golden"
	"cnictl/testenv/text/tour"
)

// shown are runs of the tool that the pages show: section names and command lines. Readers
// can also type those that use the recording.
var shown = []struct {
	page, section, args string
	env                 map[string]string
}{
	{page: "README.md", section: "doctor", args: "doctor", env: size("110x40")},
	{page: "docs/cli.md", section: "nodes-columns", args: "nodes --columns node,zone,ip%,free,age,state --sort-by=-ip% --filter type=m5.xlarge"},
	{page: "docs/cli.md", section: "nodes-csv", args: "nodes -o custom-columns=node,ip,free --filter zone=eu-west-1c"},
	{page: "docs/cli.md", section: "nodes-name", args: "nodes -o name --filter state!=ok"},
	{page: "docs/cli.md", section: "node-enis", args: "node enis " + tour.Trunk},
	{page: "docs/cli.md", section: "ips-find", args: "ips --ip 10.0.1.22"},
	{page: "docs/cli.md", section: "top", args: "top --filter state!=ok"},
	{page: "docs/capacity.md", section: "capacity-subnet-tour", args: "capacity subnet --all --type m5.large --pods 20 --prefix-delegation", env: size("110")},
	{page: "docs/capacity.md", section: "capacity-whatif-tour", args: "capacity whatif --all --set WARM_IP_TARGET=2 --rate 10 --for 6h", env: size("110")},
	{page: "docs/capacity.md", section: "capacity-whatif-recorded", args: "capacity whatif --all --set WARM_IP_TARGET=2 --arrivals " + tour.File + " --at +0m", env: size("110")},
	{page: "docs/cli.md", section: "replay-info", args: "replay " + tour.File + " --info"},
}

func size(wxh string) map[string]string {
	return map[string]string{"CNICTL_FORCE_TTY": wxh, "NO_COLOR": "1"}
}

// typed returns a command line as a user types it, followed by its standard output.
func (w world) typed(t *testing.T, c call, as string) string {
	t.Helper()
	stdout, stderr, code := w.runNoun(t, c)
	checkNoControls(t, stdout+stderr, false)
	out := "$ cnictl " + as + "\n" + stdout
	if !slices.Contains([]int{cli.ExitOK, cli.ExitPartial, cli.ExitFindings}, code) {
		t.Errorf("%s: exit %d\n%s", as, code, stderr)
	}
	return out
}

// TestDocs generates the outputs in README.md and docs/cli.md, the table of commands, and the
// texts shared with the help.
func TestDocs(t *testing.T) {
	pages := tour.NewPages(t, "README.md", "docs/cli.md", "docs/capacity.md", "docs/migrate.md")
	w := newWorld(t)
	w.targets["rich"] = rich(t, t.TempDir(), fleettest.Secondary())
	t.Run("of the tour", func(t *testing.T) {
		t.Chdir(strings.TrimSuffix(tour.Path(t, tour.File), tour.File)) // hints contain the path, so it must be short
		for _, s := range shown {
			args, as := s.args, s.args
			if !strings.HasPrefix(args, "replay ") {
				args += " --replay " + tour.File
				as += " --replay " + tour.File
			}
			for _, quoted := range []string{"state!=ok"} {
				as = strings.ReplaceAll(as, quoted, "'"+quoted+"'")
			}
			out := w.typed(t, call{args: args, env: s.env}, as)
			pages.Code(s.page, s.section, out)
		}
	})
	pages.Code("docs/cli.md", "pod", w.typed(t, call{args: "pod shop/cart-7d9f-1 @rich"}, "pod shop/cart-7d9f-1"))
	pages.Code("docs/cli.md", "plan", w.typed(t, call{args: "node plan rich --warm-ip-target 6 --max-pods 40 @rich", env: size("110")}, "node plan rich --warm-ip-target 6 --max-pods 40"))
	pages.Code("docs/cli.md", "explain", w.typed(t, call{args: "explain Recently we had InsufficientCidr error", env: size("110")}, "explain 'Recently we had InsufficientCidr error'"))
	golden.File(t, "../../../../docs/migrate-example.yaml", []byte(evidenceOf(t, migrateExample)))
	pages.Code("docs/migrate.md", "migrate-check", w.typed(t, call{args: "migrate check --evidence ../../../../docs/migrate-example.yaml", env: size("110")}, "migrate check --evidence docs/migrate-example.yaml"))
	pages.Code("docs/capacity.md", "capacity-type", w.typed(t, call{args: "capacity type m5.4xlarge --custom-networking", env: size("110")}, "capacity type m5.4xlarge --custom-networking"))
	pages.Code("docs/capacity.md", "capacity-explain", w.typed(t, call{args: "capacity type m5.metal --rule calculator,cnictl --prefix-delegation --explain", env: size("110")}, "capacity type m5.metal --rule calculator,cnictl --prefix-delegation --explain"))
	pages.Code("docs/capacity.md", "capacity-compare", w.typed(t, call{args: "capacity compare m7g.* --pods 500 --pod-cpu 250m --pod-memory 512Mi", env: size("110")}, "capacity compare 'm7g.*' --pods 500 --pod-cpu 250m --pod-memory 512Mi"))
	pages.Code("docs/capacity.md", "capacity-subnet", w.typed(t, call{args: "capacity subnet 10.0.0.0/20 10.0.16.0/20 --type m5.4xlarge --pods 50 --prefix-delegation --used 120", env: size("110")}, "capacity subnet 10.0.0.0/20 10.0.16.0/20 --type m5.4xlarge --pods 50 --prefix-delegation --used 120"))
	pages.Code("docs/capacity.md", "capacity-whatif", w.typed(t, call{args: "capacity whatif --type m5.large --pods 20 --count 50 --warm-ip-target 2 --rate 5", env: size("110")}, "capacity whatif --type m5.large --pods 20 --count 50 --warm-ip-target 2 --rate 5"))
	week := days(t, t.TempDir(), "week.cnirec", fleettest.Now().Add(-7*24*time.Hour), 7*24)
	pages.Code("docs/capacity.md", "capacity-forecast", w.typed(t, call{args: "capacity forecast " + week, env: size("110")}, "capacity forecast week.cnirec"))
	pages.Code("docs/capacity.md", "capacity-recommend", w.typed(t, call{args: "capacity recommend --type m5.large --pods 20 --for 1h", env: size("110")}, "capacity recommend --type m5.large --pods 20 --for 1h"))
	tree := New(&cli.Factory{Streams: &cli.Streams{}, Env: func(string) (string, bool) { return "", false }, Name: "cnictl"})
	pages.Set("docs/cli.md", "commands", commandTable(tree))
	pages.Set("docs/cli.md", "facts", factTable())
	pages.Set("docs/cli.md", "replayed", "These commands show the cluster as it was, with `--replay FILE --at TIME`: "+access.Replayed()+".\n")
	for _, topic := range []string{"filter", "exit-codes", "output", "environment"} {
		stdout, _, _ := w.runNoun(t, call{args: "help " + topic})
		pages.Code("docs/cli.md", topic, stdout)
	}
	for _, page := range []string{"README.md", "docs/cli.md", "docs/capacity.md", "docs/migrate.md"} {
		for _, name := range pages.Unset(page) {
			if page+":"+name != "docs/migrate.md:transcript" { // TestDeploy of testenv/kube/cluster checks that one
				t.Errorf("%s: nothing is made for the section %q", page, name)
			}
		}
	}
}

// commandTable lists every command.
func commandTable(root *cobra.Command) string {
	var out strings.Builder
	out.WriteString("| command | |\n|---|---|\n")
	var list func(*cobra.Command)
	list = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Hidden || sub.IsAdditionalHelpTopicCommand() || sub.Name() == "help" || sub.Name() == "completion" && sub.HasParent() && sub.Parent() == root {
				continue
			}
			use := strings.TrimPrefix(sub.CommandPath(), "cnictl ") + strings.TrimPrefix(sub.Use, sub.Name())
			fmt.Fprintf(&out, "| `%s` | %s |\n", strings.ReplaceAll(use, "|", `\|`), sub.Short)
			list(sub)
		}
	}
	list(root)
	return out.String()
}

// placeholders replaces the placeholders of the pages for names of the reader's cluster.
var placeholders = strings.NewReplacer("NAMESPACE/POD", "blog/front-84b6d7-c5n2r", "NAMESPACE/NAME", "blog/front-84b6d7-c5n2r",
	"NODE", "ip-10-0-1-17.eu-west-1.compute.internal", "CODE", "ip/subnet-exhausted", "capacity type TYPE", "capacity type m5.large", "--pods N", "--pods 100", "'", "")

// TestDocs_Commands runs every cnictl command that the pages show, on the recording if the
// command reads a cluster. Commands mentioned in the prose must have a help text.
func TestDocs_Commands(t *testing.T) {
	w := newWorld(t)
	t.Chdir(strings.TrimSuffix(tour.Path(t, tour.File), tour.File))
	done := map[string]bool{}
	for _, page := range tour.CommandPages(t) {
		text, err := os.ReadFile(tour.Path(t, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range tour.Mentions(string(text)) {
			args := placeholders.Replace(strings.TrimPrefix(command, "cnictl "))
			if done[args+" --help"] {
				continue
			}
			done[args+" --help"] = true
			stdout, stderr, code := w.runNoun(t, call{args: args + " --help"})
			if first, _, _ := strings.Cut(args, " "); code != cli.ExitOK || !strings.Contains(stdout, "\n  cnictl "+first) {
				t.Errorf("%s: %s: exit %d\n%s", page, command, code, stderr)
			}
		}
		for _, command := range tour.Commands(string(text)) {
			args, ok := strings.CutPrefix(command, "cnictl ")
			args = placeholders.Replace(args)
			if !ok || done[args] {
				continue
			}
			done[args] = true
			args = strings.TrimSuffix(args, " --watch") // TestTerminal_Watch has it: a recording does not change
			switch {
			case strings.HasPrefix(args, "migrate values"): // TestDocs_Migrate runs these, with the files that they read
				continue
			case args == "tui", strings.HasPrefix(args, "replay "): // TestTerminal_Screens and TestTerminal_Replay of cmd/cnictl
				continue
			case strings.HasPrefix(args, "local "), strings.HasPrefix(args, "bundle "): // they read this machine or a cluster: only name and flags are checked
				args += " --help"
			case strings.HasPrefix(args, "node config"): // recordings have no settings
				args = "node config large @large"
			case strings.Contains(args, "--from ours"):
				file := filepath.Join(t.TempDir(), "ours.yaml")
				if err := os.WriteFile(file, []byte(evidenceOf(t, ours)), 0o600); err != nil {
					t.Fatal(err)
				}
				args += " --evidence " + file
			case strings.HasPrefix(args, "migrate check") && !strings.Contains(args, "--evidence"): // nor installations
				args += " --evidence docs/migrate-example.yaml"
			case strings.Contains(args, "--evidence"), strings.Contains(args, "--replay"), strings.HasPrefix(args, "doctor explain"), strings.HasPrefix(args, "capacity type"), strings.HasPrefix(args, "explain"):
			default:
				args += " --replay " + tour.File
			}
			_, stderr, code := w.runNoun(t, call{args: args, env: size("110")})
			if !slices.Contains([]int{cli.ExitOK, cli.ExitPartial, cli.ExitFindings}, code) {
				t.Errorf("%s: %s: exit %d\n%s", page, command, code, stderr)
			}
		}
	}
}

// migrateExample is the situation of the example in migrate.md: upstream's published manifest of
// v1.23.1, with a policy agent that was not updated, a sidecar, and a variable that was set by hand.
const migrateExample = `schemaVersion: 1
at: 2026-11-21T14:02:11Z
base: healthy
mode: laptop
once: true
scope: {cluster: true}
world: {agentVersion: v1.4.0}
sources:
  k8s.ds: {containers: {with: [proxy]}, env: {aws-node: {WARM_IP_TARGET: '5'}}, pods: {desired: 3, updated: 3, ready: 3}}
  k8s.objects:
    with:
      - {name: DaemonSet/aws-node, labels: {app.kubernetes.io/managed-by: null}, annotations: {meta.helm.sh/release-name: null}, managers: [{name: kubectl-client-side-apply}, {name: kubectl-set, env: [WARM_IP_TARGET]}]}
nodes:
  - {count: 3, world: {node: worker}}
`
