package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// checkout is the module that these tests are in.
const checkout = "../../.."

// TestInputs changes one byte of this module and checks for which packages, of those that run
// nodes, clusters, images, charts or an API server, the go command then runs the tests again:
// those that link the changed package, and those whose file of inputs changes.
func TestInputs(t *testing.T) {
	t.Parallel()
	tr, err := readTree(t.Context(), checkout, false)
	if err != nil {
		t.Fatal(err)
	}
	texts := func(changed string) map[string]string {
		h := newHasher(tr, checkout)
		read := h.read
		h.read = func(path string) ([]byte, error) {
			data, err := read(path)
			if path == changed {
				data = append(data, '\n')
			}
			return data, err
		}
		out := map[string]string{}
		for _, p := range tr.pkgs {
			if p.hasTests() && p.gated() {
				if err := p.untold(); err != nil {
					t.Error(err)
				}
				if out[p.Rel], err = h.text(p, ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		return out
	}
	before := texts("")
	const nodes = "plugin/vpc plugin/vpc/branch testenv/node/branch testenv/node/e2e testenv/kube/cluster testenv/cmd/cluster testenv/cmd/soak testenv/cmd/demo testenv/cmd/bench deploy/images"
	var servers []string // those that start kube-apiserver
	for _, p := range tr.pkgs {
		if before[p.Rel] != "" && (p.Imports["testenv/kube/kubeapi"] || p.layer == "cluster") {
			servers = append(servers, p.Rel)
		}
	}
	if len(servers) < 8 {
		t.Errorf("only %v start an API server", servers)
	}
	watched := strings.Fields(nodes + " plugin/egress cmd/cni-metrics-helper cmd/aws-k8s-agent deploy/chart daemon/internal/kube daemon/rtnl")
	for _, row := range []struct{ changed, runs, not string }{
		// cnictl and the fleet link it, to plan with the daemon's own pool.
		{"daemon/ipam/book.go", "testenv/node/branch testenv/node/e2e testenv/kube/cluster testenv/cmd/cluster testenv/cmd/soak testenv/cmd/demo testenv/cmd/bench deploy/images " +
			"cmd/aws-k8s-agent cmd/cnictl daemon/fleet/kube deploy/chart doctor/collect testenv/kube/fleetsim", ""},
		{"plugin/vpc/add.go", nodes + " plugin/egress", ""},                                                                   // the egress plugin follows the other in a chain
		{"deploy/chart/aws-vpc-cni/values.yaml", "testenv/kube/cluster testenv/cmd/cluster testenv/cmd/soak", "deploy/chart"}, // which reads it
		{"tools/kube/go.mod", strings.Join(servers, " "), ""},                                                                 // which has the version
	} {
		if _, err := os.Stat(filepath.Join(checkout, row.changed)); err != nil {
			t.Errorf("a row changes what is not there: %v", err)
			continue
		}
		after, runs := texts(row.changed), strings.Fields(row.runs)
		for _, p := range tr.pkgs {
			if !slices.Contains(watched, p.Rel) && !slices.Contains(servers, p.Rel) || p.Rel == row.not {
				continue
			}
			linked := p.Rel == filepath.Dir(row.changed) || p.Imports[filepath.Dir(row.changed)]
			if again, want := linked || before[p.Rel] != after[p.Rel], slices.Contains(runs, p.Rel); again != want {
				t.Errorf("a byte in %s: the tests of %s run again: %v, want %v", row.changed, p.Rel, again, want)
			}
		}
	}
}

// TestInputs_Again runs the tests of a package of this module three times as the go command would: it keeps
// their result while the package's file of inputs is the same, and runs them again after one byte.
func TestInputs_Again(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	// The go command follows files of the module only. The name of the directory has two elements below the root.
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(filepath.Join(root, "bin"), "inputs-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const rel = "daemon/install" // links little; its TestMain tells the go command what it uses
	for i, row := range []struct {
		inputs string
		cached bool
	}{{"one", false}, {"one", true}, {"onf", false}} {
		path := filepath.Join(dir, inputsFile(rel))
		if err := os.WriteFile(path, []byte(row.inputs), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := stamp(path, []byte(row.inputs)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", append(slices.Clone(testArgs), "-run=^$", "./"+rel)...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", inputsVar+"="+dir)
		out, err := cmd.CombinedOutput()
		if cached := bytes.Contains(out, []byte("(cached)")); err != nil || cached != row.cached {
			t.Errorf("run %d with inputs %q: %v, from the cache: %v, want %v\n%s", i+1, row.inputs, err, cached, row.cached, out)
		}
	}
}

// TestUntold checks that no package's results are kept for other programs than it used.
func TestUntold(t *testing.T) {
	t.Parallel()
	const test = "package b\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestKernel(t *testing.T) { os.Getenv(%q) }\n"
	for _, row := range []struct{ name, variable, main, want string }{
		{"starts nothing", "HOME", "", ""},
		{"starts programs that it does not name", "CNI_TEST_BIN", "func TestMain(m *testing.M) { testenv.Main(m) }\n", "say which above TestMain"},
		{"does not tell the go command", "CNI_TEST_BIN", "//testlayers:uses=a\nfunc TestMain(m *testing.M) { os.Exit(m.Run()) }\n", "call testenv.Run"},
		{"tells all", "CNI_TEST_BIN", "//testlayers:uses=a\nfunc TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }\n", ""},
		{"a word that is none", "HOME", "//testlayers:use=a\nfunc TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }\n", `unknown word "use=a"`},
		{"uses something, but has no tests", "", "", "has none"},
		{"no number", "HOME", "//testlayers:parallel=some\nfunc TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }\n", "want a number"},
	} {
		dir := writeModule(t, "")
		text := strings.Replace(test, "%q", `"`+row.variable+`"`, 1) + "\n" + row.main
		if row.variable == "" {
			text = "package b\n\nimport \"testing\"\n\n//testlayers:uses=a\nfunc TestMain(m *testing.M) { testenv.Main(m) }\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "b/b_kernel_test.go"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		tr, err := readTree(t.Context(), dir, false)
		if err == nil {
			err = tr.writeInputs(t.Context(), dir)
		}
		if said := errorText(err); (row.want == "") != (said == "") || !strings.Contains(said, row.want) {
			t.Errorf("a package that %s: %q, want %q", row.name, said, row.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestStampTree checks that two clones have the same times, other content other ones.
func TestStampTree(t *testing.T) {
	t.Parallel()
	clone := func(text string) map[string]time.Time {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "a/testdata"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{"a/a.go": "package a\n", "a/testdata/x": text} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range []string{"init -q", "add ."} {
			cmd := exec.CommandContext(t.Context(), "git", strings.Fields(args)...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %s: %v: %s", args, err, out)
			}
		}
		if err := stampTree(t.Context(), dir, true); err != nil {
			t.Fatal(err)
		}
		times := map[string]time.Time{}
		for _, name := range []string{"a", "a/a.go", "a/testdata", "a/testdata/x"} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			times[name] = info.ModTime()
		}
		return times
	}
	one, two, other := clone("x"), clone("x"), clone("y")
	for name, at := range one {
		if !at.Equal(two[name]) || time.Since(at) < 365*24*time.Hour {
			t.Errorf("%s: %v and %v, want the same, years ago", name, at, two[name])
		}
		if (name == "a/testdata/x") != !at.Equal(other[name]) {
			t.Errorf("%s: %v, with another file %v", name, at, other[name])
		}
	}
}

// TestSummarize_Cached checks the lines of a target and of packages whose results were there.
func TestSummarize_Cached(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	results := []layerResult{{name: "pure", packages: 3, cached: 2, passed: 9}, {name: "lint", target: true}}
	if err := summarize(&out, results, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  2 of 3 packages from go test's cache\n", "lint         passed  ("} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
