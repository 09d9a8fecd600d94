package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fixture is a package with one file.
func fixture(t *testing.T, path, file, src string) Package {
	t.Helper()
	f, err := parseFile(path+"/"+file, src)
	if err != nil {
		t.Fatal(err)
	}
	p := Package{Path: path, Name: strings.TrimSuffix(f.AST.Name.Name, "_test"), Files: []File{f}}
	for _, imp := range f.AST.Imports {
		name := strings.Trim(imp.Path.Value, `"`)
		if f.Test {
			p.TestImports = append(p.TestImports, name)
		} else {
			p.Imports = append(p.Imports, name)
		}
	}
	return p
}

// tree has one file: a source file, or a Markdown text among a few others.
func tree(t *testing.T, path, file, src string) Tree {
	t.Helper()
	if strings.HasSuffix(file, ".go") {
		return Tree{Packages: []Package{fixture(t, path, file, src)}}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"README.md": "", "docs/testing.md": "", "docs/decisions/002-b.md": "", path + "/" + file: src} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	docs, notes, names, err := loadDocs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Tree{Docs: docs, Notes: notes, Names: names}
}

// fixtures are small trees: some break a rule, the others are near misses that must pass.
var fixtures = map[string]struct {
	rule       string
	path, file string
	src        string
	want       string // part of the one violation; "" = none
}{
	"unknown package":       {"layout", "daemon/new", "a.go", "package new", "unknown package"},
	"known package":         {"layout", "daemon/ipam", "a.go", "package ipam", ""},
	"meaningless directory": {"layout", "testenv/utils", "a.go", "package utils", "noun of the domain"},
	"meaningless package":   {"layout", "testenv/x", "a.go", "package helpers", "noun of the domain"},
	"underscore":            {"layout", "testenv/x", "a.go", "package mock_x", "no underscores"},
	"unknown binary":        {"layout", "cmd/extra", "main.go", "package main", "unknown package"},

	"upward":                  {"layers", "daemon/ipam", "a.go", `package ipam; import _ "cnictl/daemon/warmpool"`, "layer 0a leaf may not import layer 0b pure"},
	"downward":                {"layers", "daemon/warmpool", "a.go", `package warmpool; import _ "cnictl/daemon/ipam"`, ""},
	"leaf to leaf":            {"layers", "daemon/ipam", "a.go", `package ipam; import _ "cnictl/daemon/api/cause"`, "layer 0a leaf may not import layer 0a leaf"},
	"checkpoint on logline":   {"layers", "daemon/api/checkpoint", "a.go", `package checkpoint; import _ "cnictl/daemon/api/logline"`, ""},
	"logline on checkpoint":   {"layers", "daemon/api/logline", "a.go", `package logline; import _ "cnictl/daemon/api/checkpoint"`, "layer 0a leaf may not import layer 0a leaf"},
	"planner on resync":       {"layers", "daemon/warmpool", "a.go", `package warmpool; import _ "cnictl/daemon/resync"`, "downward only"},
	"sim on planner":          {"layers", "testenv/sim", "a.go", `package sim; import _ "cnictl/daemon/warmpool"`, ""},
	"what-if on sim":          {"layers", "capacity/whatif", "a.go", `package whatif; import _ "cnictl/testenv/sim"`, "downward only"},
	"sim from its binary":     {"layers", "testenv/cmd/sim", "main.go", `package main; import _ "cnictl/testenv/sim"`, ""},
	"pure on contract":        {"layers", "daemon/resync", "a.go", `package resync; import _ "cnictl/daemon/config"`, "downward only"},
	"contract to contract":    {"layers", "daemon/api/introspect", "a.go", `package introspect; import _ "cnictl/daemon/config"`, "downward only"},
	"adapter on adapter":      {"layers", "daemon/internal/kube", "a.go", `package kube; import _ "cnictl/daemon/internal/imds"`, "adapters never import each other"},
	"adapter on rtnl":         {"layers", "plugin/podnet/apply", "a.go", `package apply; import _ "cnictl/daemon/rtnl"`, ""},
	"rtnl on adapter":         {"layers", "daemon/rtnl", "a.go", `package rtnl; import _ "cnictl/daemon/internal/hostnet"`, "downward only"},
	"fleet on client":         {"layers", "daemon/fleet", "a.go", `package fleet; import _ "cnictl/daemon/api/introspect/client"`, ""},
	"client on fleet":         {"layers", "daemon/api/introspect/client", "a.go", `package client; import _ "cnictl/daemon/fleet"`, "adapters never import each other"},
	"fleet on show":           {"layers", "daemon/fleet/store", "a.go", `package store; import _ "cnictl/tui/show"`, "layer 2 adapter may not import layer 2 display"},
	"show on fleet's words":   {"layers", "tui/show", "a.go", `package show; import _ "cnictl/daemon/fleet/human"`, ""},
	"shell on shell":          {"layers", "daemon/ipamd", "a.go", `package ipamd; import _ "cnictl/daemon/launch"`, "downward only"},
	"shell on binary":         {"layers", "plugin/vpc", "a.go", `package vpc; import _ "cnictl/cmd/aws-cni"`, "downward only"},
	"inside tui":              {"layers", "tui/pages/node", "a.go", `package node; import _ "cnictl/tui/draw"`, ""},
	"inside a binary":         {"layers", "cmd/cnictl", "main.go", `package main; import _ "cnictl/cmd/cnictl/internal/cli"`, ""},
	"binary on binary":        {"layers", "cmd/cnictl", "main.go", `package main; import _ "cnictl/cmd/aws-cni/internal/x"`, "downward only"},
	"test file upward":        {"layers", "daemon/ipam", "a_test.go", `package ipam; import _ "cnictl/daemon/warmpool"`, ""},
	"testenv on everything":   {"layers", "testenv/node", "a.go", `package node; import _ "cnictl/daemon/ipamd"`, ""},
	"testenv on testenv":      {"layers", "testenv/node", "a.go", `package node; import _ "cnictl/testenv/network/vpc"`, ""},
	"testenv from code":       {"test support", "daemon/ipamd", "a.go", `package ipamd; import _ "cnictl/testenv/network/netns"`, "_test.go files and testenv/cmd only"},
	"testenv from a tool":     {"test support", "cmd/cnictl", "main.go", `package main; import _ "cnictl/testenv/aws/fakeaws"`, "_test.go files and testenv/cmd only"},
	"fleettest from code":     {"test support", "cmd/cnictl", "main.go", `package main; import _ "cnictl/daemon/fleet/fleettest"`, "_test.go files and testenv/cmd only"},
	"testenv from a test":     {"test support", "daemon/ipamd", "a_test.go", `package ipamd; import _ "cnictl/testenv/network/netns"`, ""},
	"testenv from its binary": {"test support", "testenv/cmd/demo", "main.go", `package main; import _ "cnictl/testenv/node"`, ""},

	"plugin on the daemon":    {"wire only", "plugin/vpc", "a.go", `package vpc; import _ "cnictl/daemon/ipamd"`, "reach the daemon through"},
	"cnictl on the daemon":    {"wire only", "cmd/cnictl/internal/node", "a.go", `package node; import _ "cnictl/daemon/launch"`, "reach the daemon through"},
	"cnictl on the planner":   {"wire only", "cmd/cnictl/internal/node", "a.go", `package node; import _ "cnictl/daemon/warmpool"`, ""},
	"tui on fleet":            {"wire only", "tui/app", "a.go", `package app; import _ "cnictl/daemon/fleet"`, ""},
	"the agent on the daemon": {"wire only", "cmd/aws-k8s-agent", "main.go", `package main; import _ "cnictl/daemon/ipamd"`, ""},

	"pure with os":           {"purity", "daemon/warmpool", "a.go", `package warmpool; import _ "os"`, "decides and does not act"},
	"pure with slog":         {"purity", "daemon/ipam", "a.go", `package ipam; import _ "log/slog"`, "decides and does not act"},
	"pure with rand":         {"purity", "testenv/sim", "a.go", `package sim; import _ "math/rand/v2"`, "decides and does not act"},
	"pure with netlink":      {"purity", "daemon/hostnet/rules", "a.go", `package rules; import _ "github.com/vishvananda/netlink"`, "standard library only"},
	"pure with netip":        {"purity", "daemon/ipam", "a.go", `package ipam; import ("net/netip"; "time"); var _ netip.Addr; var _ time.Time`, ""},
	"pure with the clock":    {"purity", "daemon/warmpool", "a.go", `package warmpool; import "time"; var now = time.Now()`, "warmpool/a.go:1: uses time.Now"},
	"pure, clock renamed":    {"purity", "daemon/warmpool", "a.go", `package warmpool; import t "time"; var f = t.Since`, "uses time.Since"},
	"pure test, clock":       {"purity", "daemon/warmpool", "a_test.go", `package warmpool; import "time"; var now = time.Now()`, ""},
	"adapter with the clock": {"purity", "daemon/internal/kube", "a.go", `package kube; import "time"; var now = time.Now()`, ""},
	"another Now":            {"purity", "daemon/warmpool", "a.go", `package warmpool; type c struct{}; func (c) Now() {}; func f(time c) { time.Now() }`, ""},

	"global logger":          {"edges", "daemon/fleet", "a.go", `package fleet; import "log/slog"; func f() { slog.SetDefault(nil) }`, "*slog.Logger that was passed in"},
	"exit":                   {"edges", "plugin/vpc", "a.go", `package vpc; import "os"; func f() { os.Exit(1) }`, "main chooses the exit status"},
	"exit in main.go":        {"edges", "cmd/aws-cni", "main.go", `package main; import "os"; func main() { os.Exit(1) }`, ""},
	"init":                   {"edges", "daemon/ipamd", "a.go", `package ipamd; func init() {}`, "no init functions"},
	"init method":            {"edges", "daemon/ipamd", "a.go", `package ipamd; type t int; func (t) init() {}`, ""},
	"init in generated code": {"edges", "daemon/api/cnirpc", "a.pb.go", "// Code generated by x. DO NOT EDIT.\n\npackage cnirpc\n\nfunc init() {}", ""},

	"timeout":                    {"waiting", "daemon/ipamd", "a_test.go", `package ipamd; import "context"; var f = context.WithTimeout`, "uses context.WithTimeout: wait with testenv."},
	"timeout in code":            {"waiting", "daemon/ipamd", "a.go", `package ipamd; import "context"; var f = context.WithTimeout`, ""},
	"timer, renamed":             {"waiting", "daemon/ipamd", "a_test.go", `package ipamd; import t "time"; var c = t.After(1)`, "a_test.go:1: uses time.After: wait"},
	"timer on a fake clock":      {"waiting", "daemon/ipamd", "a_test.go", `package ipamd; import ("testing/synctest"; "time"); var c, s = time.After(1), synctest.Test`, ""},
	"timer with a reason":        {"waiting", "daemon/ipamd", "a_test.go", "package ipamd; import \"time\"\nvar c = time.After(1) //realtime: the timer itself is tested\n", ""},
	"timer without a reason":     {"waiting", "daemon/ipamd", "a_test.go", "package ipamd; import \"time\"\nvar c = time.After(1) //realtime: \n", "uses time.After"},
	"timer with a reason, near":  {"waiting", "daemon/ipamd", "a_test.go", "package ipamd; import \"time\"\n//realtime: of the next line\nvar c = time.After(1)\n", "uses time.After"},
	"clock in a benchmark":       {"waiting", "daemon/ipamd", "a_bench_test.go", `package ipamd; import "time"; var f = time.Since`, ""},
	"clock":                      {"waiting", "daemon/ipamd", "a_test.go", `package ipamd; import "time"; func f() { for late := time.Now(); time.Now().Before(late); {} }`, "uses time.Now().Before"},
	"moments compared":           {"waiting", "daemon/ipamd", "a_test.go", `package ipamd; import "time"; func f(a, b time.Time) bool { return a.Add(1).Before(b) }`, ""},
	"deadline":                   {"waiting", "daemon/ipamd", "a_test.go", `package ipamd; import ("net"; "time"); func f(c net.Conn) { c.SetReadDeadline(time.Now().Add(1)) }`, "uses SetReadDeadline of a moment"},
	"difference":                 {"waiting", "testenv/node", "a_test.go", `package node; import "time"; func f(a, b time.Time) bool { return a.Sub(b) > 3*time.Second }`, "a comparison of moments with a duration"},
	"difference, negative":       {"waiting", "testenv/node", "a_test.go", `package node; import "time"; func f(a, b time.Time) bool { early := a.Sub(b); return early < -3*time.Second }`, "a comparison of moments with a duration"},
	"difference from a constant": {"waiting", "daemon/ipam", "a_kernel_test.go", `package ipam; import "time"; const most = time.Minute; func f(a, b time.Time) bool { return most <= a.Sub(b) }`, "a comparison of moments with a duration"},
	"difference, at least":       {"waiting", "testenv/node", "a_test.go", `package node; import "time"; func f(a, b time.Time) bool { return a.Sub(b) < 3*time.Second }`, ""},
	"difference of a set clock":  {"waiting", "daemon/ipam", "a_test.go", `package ipam; import "time"; func f(a, b time.Time) bool { return a.Sub(b) > 3*time.Second }`, ""},
	"order":                      {"waiting", "testenv/node", "a_test.go", `package node; import "time"; func f(a, b time.Time) bool { return a.Sub(b) > 0 }`, ""},
	"field":                      {"waiting", "daemon/ipam", "a_test.go", `package ipam; import ("net/http"; "time"); var c = http.Client{Timeout: 3 * time.Second}`, "uses a Timeout"},
	"assigned":                   {"waiting", "daemon/ipam", "a_test.go", `package ipam; import ("net/http"; "time"); func f(c *http.Client) { c.Timeout = 3 * time.Second }`, "uses a Timeout"},
	"argument":                   {"waiting", "daemon/ipam", "a_kernel_test.go", `package ipam; import ("net"; "time"); func f() { net.DialTimeout("tcp", "", time.Second) }`, "uses DialTimeout with a limit"},
	"field, left":                {"waiting", "daemon/ipam", "a_test.go", `package ipam; import ("net/http"; "testing"; "cnictl/testenv"); func f(t *testing.T) any { return http.Client{Timeout: testenv.Left(t)} }`, ""},
	"test bed":                   {"waiting", "testenv/node", "a.go", `package node; import ("testing"; "time"); func f(testing.TB) { <-time.After(1) }`, "uses time.After"},
	"test bed, programs":         {"waiting", "testenv/node", "a.go", `package node; import "time"; func f() { <-time.After(1) }`, ""},
	"deadline soon":              {"waiting", "daemon/ipamd", "a_test.go", `package ipamd; import ("net"; "cnictl/testenv"); func f(c net.Conn) { c.SetReadDeadline(testenv.Soon()) }`, ""},

	"package without a comment": {"docs", "daemon/ipam", "a.go", "package ipam", "no package comment"},
	"package with a comment":    {"docs", "daemon/ipam", "doc.go", "// Package ipam is.\npackage ipam", ""},
	"tests alone":               {"docs", "deploy", "a_test.go", "package deploy", ""},

	"dead link":                {"links", "docs", "a.md", "See [x](\nand [x](gone.md).", "docs/a.md:2: links to gone.md, which does not exist"},
	"dead image":               {"links", "docs", "a.md", `![x](<gone.png> "title")`, "links to gone.png, which does not exist"},
	"dead reference":           {"links", "docs", "a.md", "[x][y]\n\n[y]: ../docs/gone.md", "docs/a.md:3: links to ../docs/gone.md"},
	"dead with an anchor":      {"links", "docs/decisions", "001-a.md", "[x](testing.md#layers)", "links to testing.md#layers, which does not exist"},
	"link from the disk":       {"links", "docs", "a.md", "[x](/docs/testing.md)", "which is not relative"},
	"link out of the tree":     {"links", "docs", "a.md", "[x](../../testing.md)", "which does not exist"},
	"dead after a fence":       {"links", "docs", "a.md", "```go\n[x](a)\n```\n[x](gone)", "docs/a.md:4"},
	"link beside":              {"links", "docs", "a.md", "[x](testing.md), [y](./testing.md#layers), [z](#here)", ""},
	"link up":                  {"links", "docs/decisions", "001-a.md", "[x](../testing.md) [y](../../README.md) [z](../..) [d](..)", ""},
	"link to another site":     {"links", "docs", "a.md", "[x](https://example.com/gone.md) [y](mailto:a@example.com)\n[z]: http://example.com", ""},
	"link in code":             {"links", "docs", "a.md", "`[x](gone)` and ``\n~~~\n[x](gone)\n```\n[x](gone)\n~~~", ""},
	"link in another place":    {"links", "daemon", "notes.md", "[x](gone)", ""},
	"stale doc link":           {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// f is as [Gone].\nfunc f() {}", "ipam/a.go:3: a comment refers to [Gone], which does not exist"},
	"stale link to a pointer":  {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// F is ([*Gone]).\nfunc F() {}", "refers to [Gone]"},
	"stale link to a member":   {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// T has [T.Gone].\ntype T struct{ Here int }", "refers to [T.Gone]"},
	"stale link to a package":  {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// F is [ipam.Gone].\nfunc F() {}", "refers to [ipam.Gone]"},
	"link to no package":       {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// F is [gone.F].\nfunc F() {}", "refers to [gone.F]"},
	"stale link, unexported":   {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// f undoes [goneBy].\nfunc f() {}", "refers to [goneBy]"},
	"stale link in a function": {"doc links", "daemon/ipam", "a_test.go", "package ipam\n\nfunc f() {\n\t_ = 1 // as [Gone] does\n}", "a_test.go:4: a comment refers to [Gone]"},
	"stale link, two lines":    {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// F is [F]. It is not like\n// [F.Gone].\nfunc F() {}", "refers to [F.Gone]"},
	"see nothing":              {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// f is slow: see\n// goneBy.\nfunc f() {}", "refers to goneBy"},
	"see no exported name":     {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// f is slow. See Gone.\nfunc f() {}", "refers to Gone"},
	"see no word":              {"doc links", "daemon/ipam", "a.go", "package ipam\n\nvar x = 1 // plus one, see gone\n", "refers to gone"},
	"see no member":            {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// T is (see T.Gone).\ntype T struct{ Here int }", "refers to T.Gone"},
	"see no package":           {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// f is the other one; see daemon/gone.\nfunc f() {}", "refers to daemon/gone"},
	"doc links":                {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// F is [F], ([*T]), [T.Here], [T.M] and [I.M]; [aB] and [ipam.T.Here].\nfunc F() {}\n\nfunc aB() {}\n\n// T is.\ntype T struct{ Here int }\n\nfunc (*T) M() {}\n\ntype I interface{ M() }", ""},
	"links to other modules":   {"doc links", "daemon/ipam", "a.go", "package ipam\n\nimport (\n\t\"github.com/aws/smithy-go\"\n\tother \"k8s.io/api/core/v1\"\n)\n\n// F is [smithy.APIError], [other.Pod] or [net.Conn].\nfunc F() {}", ""},
	"embedded members":         {"doc links", "daemon/ipam", "a.go", "package ipam\n\nimport \"sync\"\n\n// T is [T.Lock], [T.Mutex] and [U.Lock].\ntype T struct{ sync.Mutex }\n\ntype U = T", ""},
	"brackets without a link":  {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// F reads x[Gone], [device], [0], [a b], WIDTH[xHeight] and:\n//\n//\t[Gone]\nfunc F() {}", ""},
	"seen":                     {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// f is slow: see (step), see T.Here, (see T) or see daemon/ipam. See ipam; see x.\nfunc f(x int) { step() }\n\nfunc step() {}\n\ntype T struct{ Here int }", ""},
	"see without a name":       {"doc links", "daemon/ipam", "a.go", "package ipam\n\n// see returns what users would see: gone things, as others see them. See the kernel's, see\n// proc(5), see RFC 9110; see how, and see CNI_ADD_WAIT.\nfunc see() {}", ""},
	"generated comment":        {"doc links", "daemon/api/cnirpc", "a.pb.go", "// Code generated by x. DO NOT EDIT.\n\n// Package cnirpc is [Gone].\npackage cnirpc", ""},

	"notes in a comment":    {"citations", "daemon/ipam", "a.go", "package ipam\n\n// f is so (spec/ipamd.md\n// §4).\nfunc f() {}", "ipam/a.go:3: cites a text that the repository does not have"},
	"notes in a function":   {"citations", "daemon/ipam", "a_test.go", "package ipam\n\nfunc f() {\n\t_ = 1 // as in spec/\n}", "a_test.go:4"},
	"a section of notes":    {"citations", "daemon/ipam", "a.go", "package ipam // capacity.md §2.1", "cites a text"},
	"notes in a page":       {"citations", "docs", "a.md", "# a\n\nIt is so (spec: ipamd §4.1).", "docs/a.md:3"},
	"notes in another page": {"citations", "deploy", "a.md", "[x](../spec.md) and spec/deploy.md", "deploy/a.md:1"},
	"notes in a manifest":   {"citations", "deploy", "a.yaml", "a: 1\n  # from spec/deploy.md §2\n", "deploy/a.yaml:2"},
	"notes in a list":       {"citations", "daemon/config/testdata", "a.tsv", "# as spec/plugin.md\na\tb", "testdata/a.tsv:1"},
	"public sources":        {"citations", "daemon/ipam", "a.go", "package ipam\n\n// f is so: RFC 9110 §13.1.2, the CNI specification, amazon-vpc-cni-k8s: docs/spec/troubleshooting.md,\n// https://example.com/spec/x.md, docs/capacity.md, /spec/containers/0 and podspec/.\nfunc f() {}", ""},
	"a path in a value":     {"citations", "daemon/ipam", "a.go", `package ipam; var at = "spec/ipamd.md"`, ""},
	"a path in a manifest":  {"citations", "deploy", "a.yaml", "a: spec/deploy.md\n# kubectl patch: spec/template/spec", ""},

	"switch of a crash":   {"crash points", "daemon/ipam", "a.go", `package ipam; var at = "CNI_CRASH_AT"`, "ipam/a.go:1: has \"CNI_CRASH_AT\""},
	"switch in a test":    {"crash points", "testenv/node", "a.go", `package node; var at = "CNI_CRASH_AT"`, ""},
	"unnamed crash point": {"crash points", "daemon/ipamd", "a.go", `package ipamd; import "cnictl/daemon/api/crashpoint"; func f() { crashpoint.Here("x") }`, "no constant"},
	"named crash point":   {"crash points", "daemon/ipamd", "a.go", `package ipamd; import "cnictl/daemon/api/crashpoint"; func f() { crashpoint.Here(crashpoint.BeforeFile) }`, ""},
}

func TestRules(t *testing.T) {
	t.Parallel()
	for name, tc := range fixtures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := rules[tc.rule](tree(t, tc.path, tc.file, tc.src))
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("unexpected: %v", got)
			case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0].String(), tc.want)):
				t.Errorf("got %v, want one with %q", got, tc.want)
			}
		})
	}
}

func TestRootRules(t *testing.T) {
	t.Parallel()
	got := checkLayout(Tree{Root: []string{".ci", "daemon", "pkg", "README.md"}})
	if len(got) != 1 || !strings.Contains(got[0].String(), "pkg: top-level names are fixed") {
		t.Errorf("got %v", got)
	}
}

func TestBudgetRule(t *testing.T) {
	t.Parallel()
	b := budget{pkg: "cmd/aws-cni", forbidden: oncePerPod, maxBytes: 100, why: "it is small"}
	for name, tc := range map[string]struct {
		bin  Binary
		want string
	}{
		"within":   {Binary{Deps: []string{"os", "net", "github.com/vishvananda/netlink"}, Bytes: 100}, ""},
		"grpc":     {Binary{Deps: []string{"google.golang.org/grpc/codes"}}, "links google.golang.org/grpc/codes"},
		"protobuf": {Binary{Deps: []string{"google.golang.org/protobuf/proto"}}, "links google.golang.org/protobuf"},
		"net/http": {Binary{Deps: []string{"net/http"}}, "links net/http"},
		"aws":      {Binary{Deps: []string{"github.com/aws/smithy-go"}}, "links github.com/aws/smithy-go"},
		"too big":  {Binary{Bytes: 101}, "is 101 bytes, at most 100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := checkBudget(b, tc.bin)
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("unexpected: %v", got)
			case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0].String(), tc.want)):
				t.Errorf("got %v, want one with %q", got, tc.want)
			}
		})
	}
}

// TestEveryRuleHasFixtures: a rule without a fixture that breaks it is not tested.
func TestEveryRuleHasFixtures(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for name, f := range fixtures {
		if rules[f.rule] == nil {
			t.Errorf("%s: no rule %q", name, f.rule)
		}
		broken[f.rule] = broken[f.rule] || f.want != ""
	}
	for name := range rules {
		if !broken[name] {
			t.Errorf("no fixture breaks rule %q", name)
		}
	}
}
