package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLayerOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		rel   string
		files []string
		want  string
	}{
		{"daemon/ipam", []string{"book_test.go"}, "pure"},
		{"daemon/rtnl", []string{"a_test.go", "b_kernel_test.go"}, "adapter"},
		{"daemon/internal/kube", []string{"kube_kubeapi_test.go"}, "adapter"},
		{"cmd/aws-cni", []string{"x_kernel_test.go", "main_binary_test.go"}, "binary"},
		{"testenv/node", []string{"node_test.go"}, "binary"},
		{"testenv/kube/cluster", []string{"a_test.go", "pods_cluster_test.go", "b_binary_test.go"}, "cluster"},
		{"testenv/cmd/cluster", []string{"main_cluster_test.go", "main_test.go"}, "cluster"},
		{"testenv/node/agent", []string{"a_test.go"}, "binary"},
		{"testenv/nodes", []string{"a_test.go"}, "pure"},
		{"daemon/x", []string{"kernel_test.go"}, "pure"},
	} {
		if got := layerOf(tc.rel, tc.files); got != tc.want {
			t.Errorf("%s %v: %s, want %s", tc.rel, tc.files, got, tc.want)
		}
	}
}

func TestSelectLayers(t *testing.T) {
	t.Parallel()
	got, err := selectLayers([]string{"race", "pure"}, false)
	if err != nil || len(got) != 2 || got[0].name != "race" || got[1].name != "pure" {
		t.Errorf("got %v, %v", got, err)
	}
	bed := pkg{layer: "pure", Rel: "testenv/a", Concurrent: true}
	if day := got[0]; !slices.Contains(day.args, "-short") || day.pick(bed) {
		t.Errorf("race by day: %v, with the test bed: %v", day.args, day.pick(bed))
	}
	night, err := selectLayers([]string{"race"}, true)
	if err != nil || slices.Contains(night[0].args, "-short") || !slices.Contains(night[0].args, "-race") || !night[0].pick(bed) {
		t.Errorf("race at night: %v, %v", night, err)
	}
	for _, bad := range [][]string{nil, {"quick"}} {
		if _, err := selectLayers(bad, false); err == nil || !strings.Contains(err.Error(), "pure, adapter, binary, cluster, race") {
			t.Errorf("%v: error %v, want the list of layers", bad, err)
		}
	}
}

// TestReadTree reads a module written for the purpose.
func TestReadTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                    "module m\n\ngo 1.26\n",
		"a/a.go":                    "package a\n\nfunc F() { go func() {}() }\n",
		"a/a_test.go":               "package a\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {}\nfunc Testament() {}\nfunc FuzzF(f *testing.F) {}\nfunc TestMain(m *testing.M) {}\n",
		"a/x_test.go":               "package a_test\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n",
		"b/b.go":                    "package b\n\nimport \"sync\"\n\nvar Mu sync.Mutex\n",
		"b/b_kernel_test.go":        "package b\n\nimport \"testing\"\n\nfunc TestKernel(t *testing.T) {}\n",
		"b/b_test.go":               "package b\n\nimport \"testing\"\n\nfunc TestPlain(t *testing.T) {}\n",
		"testenv/node/node_test.go": "package node\n\nimport \"testing\"\n\nfunc TestNode(t *testing.T) {}\n",
		"testenv/api/api.go":        "package api\n\nfunc F() { go F() }\n",
		"testenv/api/api_test.go":   "package api\n\nimport \"testing\"\n\nfunc TestAPI(t *testing.T) {}\n",
		"c/c.go":                    "package c\n\nimport \"sync\"\n\nvar cache sync.Map\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read, err := readTree(t.Context(), dir, false)
	if err != nil {
		t.Fatal(err)
	}
	pkgs := read.pkgs
	byRel := map[string]pkg{}
	for _, p := range pkgs {
		byRel[p.Rel] = p
	}
	for rel, want := range map[string]pkg{
		"a":            {layer: "pure", Tests: []string{"TestF", "TestX"}, Fuzz: []string{"FuzzF"}, Concurrent: true},
		"b":            {layer: "adapter", Tests: []string{"TestKernel", "TestPlain"}, Concurrent: true},
		"testenv/node": {layer: "binary", Tests: []string{"TestNode"}},
		"testenv/api":  {layer: "pure", Tests: []string{"TestAPI"}, Concurrent: true},
		"c":            {layer: "pure"},
	} {
		got := byRel[rel]
		slices.Sort(got.Tests)
		if got.layer != want.layer || !slices.Equal(got.Tests, want.Tests) ||
			!slices.Equal(got.Fuzz, want.Fuzz) || got.Concurrent != want.Concurrent {
			t.Errorf("%s: got %+v, want %+v", rel, got, want)
		}
	}
	var race []string
	for _, p := range layers[4].packages(pkgs) {
		race = append(race, p.Rel)
	}
	for _, p := range layers[5].packages(pkgs) {
		race = append(race, "at night "+p.Rel)
	}
	if !slices.Equal(race, []string{"a", "at night b"}) {
		t.Errorf("race layers: %v", race)
	}
}

const stream = `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestSkip","Output":"=== RUN   TestSkip\n"}
{"Action":"output","Package":"m/a","Test":"TestSkip","Output":"    a_test.go:9: needs root: run sudo go test\n"}
{"Action":"output","Package":"m/a","Test":"TestSkip","Output":"--- SKIP: TestSkip (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestSkip"}
{"Action":"output","Package":"m/a","Test":"TestBad/case","Output":"=== RUN   TestBad/case\n"}
{"Action":"output","Package":"m/a","Test":"TestBad/case","Output":"    wait.go:9: waiting for an event since 15s: not yet\n"}
{"Action":"output","Package":"m/a","Test":"TestBad/case","Output":"    a_test.go:3: wrong\n"}
{"Action":"output","Package":"m/a","Test":"TestBad/case","Output":"    a_test.go:4: log\n"}
{"Action":"fail","Package":"m/a","Test":"TestBad/case"}
{"Action":"fail","Package":"m/a","Test":"TestBad"}
{"Action":"fail","Package":"m/a"}
go: downloading something
{"ImportPath":"m/b [m/b.test]","Action":"build-output","Output":"b/b.go:3: undefined: x\n"}
{"ImportPath":"m/b [m/b.test]","Action":"build-fail"}
{"Action":"output","Package":"m/b","Output":"FAIL\tm/b [build failed]\n"}
{"Action":"fail","Package":"m/b","FailedBuild":"m/b [m/b.test]"}
{"Action":"run","Package":"m/c","Test":"TestPanics"}
{"Action":"output","Package":"m/c","Test":"TestPanics","Output":"panic: oh\n"}
{"Action":"fail","Package":"m/c"}
`

func TestCollector(t *testing.T) {
	t.Parallel()
	var shown bytes.Buffer
	c := newCollector("pure", &shown)
	if err := c.read(strings.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	if c.passed != 1 || c.failed != 4 || c.skipped != 1 {
		t.Errorf("%d passed, %d failed, %d skipped; want 1, 4, 1", c.passed, c.failed, c.skipped)
	}
	if want := []string{"m/a TestSkip: needs root: run sudo go test"}; !slices.Equal(c.skips, want) {
		t.Errorf("skips %q, want %q", c.skips, want)
	}
	want := []string{"m/a TestBad/case: a_test.go:3: wrong | a_test.go:4: log", "m/b (package): see above", "m/c (package): see above", "m/c TestPanics: did not finish"}
	if !slices.Equal(c.fails, want) {
		t.Errorf("fails %q, want %q", c.fails, want)
	}
	for _, text := range []string{"a_test.go:3: wrong", "b/b.go:3: undefined: x", "TestPanics did not finish", "panic: oh"} {
		if !strings.Contains(shown.String(), text) {
			t.Errorf("failures do not show %q:\n%s", text, shown.String())
		}
	}
	if strings.Contains(shown.String(), "=== RUN") {
		t.Errorf("failures show test2json's own lines:\n%s", shown.String())
	}
	if c.status[testID{"m/a", "TestSkip"}] != "skip" || c.status[testID{"m/a", "TestGood"}] != "pass" || c.status[testID{"m/a", "TestBad"}] != "fail" {
		t.Errorf("status %v", c.status)
	}
}

func TestSummarize(t *testing.T) {
	t.Parallel()
	results := []layerResult{{name: "pure", passed: 3, skipped: 1, skips: []string{"m/a TestSkip: why"}}, {name: "race", note: "not run: x"}}
	var out bytes.Buffer
	if err := summarize(&out, results, nil); err != nil {
		t.Error(err)
	}
	if !strings.HasSuffix(out.String(), "\n3 passed, 0 failed, 1 skipped\n") || !strings.Contains(out.String(), "skipped (pure) m/a TestSkip: why") || !strings.Contains(out.String(), "not run: x") {
		t.Errorf("summary:\n%s", out.String())
	}
	out.Reset()
	results[0].fails = []string{"m/a TestBad: a_test.go:3: wrong"}
	if err := summarize(&out, results, []string{"m/a TestX did not run"}); !errors.Is(err, errFailed) {
		t.Errorf("error %v, want %v", err, errFailed)
	}
	if !strings.HasSuffix(out.String(), "\n3 passed, 1 failed, 1 skipped\n") || !strings.Contains(out.String(), "failed (pure) m/a TestBad: a_test.go:3: wrong\n") {
		t.Errorf("summary:\n%s", out.String())
	}
}

// A skip hides a test, and so does a TestMain that does not run it.
func TestHiddenAndMissing(t *testing.T) {
	t.Parallel()
	r := layerResult{name: "race", skips: []string{"m/a TestKernel: skip: needs root: why; run: sudo go test", "m/a TestLong: skip: -short",
		"m/a TestLong/x: skip: -short: takes minutes", "m/a TestOther: no reason given"},
		status: map[testID]string{{"m/a", "TestKernel"}: "skip", {"m/a", "FuzzA"}: "pass"}}
	want := []string{"(race) must not be skipped: m/a TestKernel: skip: needs root: why; run: sudo go test",
		"(race) must not be skipped: m/a TestOther: no reason given"}
	if got := r.hidden(layer{args: []string{"-race", "-short"}}); !slices.Equal(got, want) {
		t.Errorf("hidden: %q", got)
	}
	if got := r.hidden(layer{args: []string{"-timeout=20m"}}); len(got) != 4 {
		t.Errorf("hidden in a layer that runs without -short: %q", got)
	}
	tree := []pkg{{ImportPath: "m/a", Tests: []string{"TestKernel", "TestGone"}, Fuzz: []string{"FuzzA"}}, {ImportPath: "m/b", Fuzz: []string{"FuzzB"}}}
	want = []string{"(race) did not run: m/a TestGone", "(race) did not run: m/b FuzzB"}
	if got := r.missing(tree); !slices.Equal(got, want) {
		t.Errorf("missing: %q", got)
	}
	r.failed = 1
	if got := r.missing(tree); got != nil {
		t.Errorf("missing after a failure: %q", got)
	}
}

// A run that leaves files of the CNI on the machine fails; what was there before is the user's.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	made := func(name string) []string {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
		return nodeFiles(root)
	}
	none, users := nodeFiles(root), made("var/log/aws-routed-eni")
	if got := leftBehind(users, made("etc/cni/net.d")); none != nil || len(users) != 1 || got != nil {
		t.Errorf("%q, then %q, then %q", none, users, got)
	}
	if got := leftBehind(users, made("host/var/log")); len(got) != 1 || !strings.Contains(got[0], root+"/host ") {
		t.Errorf("%q", got)
	}
}
