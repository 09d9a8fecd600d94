package skel_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	library "github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"cnictl/daemon/api/cause"
	"cnictl/plugin/netconf"
	"cnictl/plugin/skel"
)

// fine is a plugin that does nothing.
func fine(about string) *skel.Plugin {
	verb := func(*skel.Request) *skel.Error { return nil }
	return &skel.Plugin{About: about, Add: verb, Del: verb, Check: verb, GC: verb, Status: verb, Parse: func(stdin []byte) (string, string, error) {
		conf, err := netconf.ParseEgress(stdin)
		return conf.Name, conf.CNIVersion, err
	}}
}

// TestRun_AsTheLibrary: codes and messages are those of the CNI library for every verb,
// environment and configuration. Not parallel: the library reads the process environment
// and standard input.
func TestRun_AsTheLibrary(t *testing.T) {
	usual := map[string]string{"CNI_CONTAINERID": "c1", "CNI_NETNS": "/run/netns/none", "CNI_IFNAME": "eth0", "CNI_PATH": "/opt/cni/bin"}
	environments := []map[string]string{
		{}, {"CNI_CONTAINERID": ""}, {"CNI_NETNS": ""}, {"CNI_PATH": "", "CNI_IFNAME": ""}, {"CNI_CONTAINERID": "a/b"}, {"CNI_CONTAINERID": ".."},
		{"CNI_IFNAME": "sixteenletters16"}, {"CNI_IFNAME": ".."}, {"CNI_IFNAME": "a:b"}, {"CNI_IFNAME": "a b"}, {"CNI_NETNS": "/proc/self/ns/net"},
		{"CNI_NETNS": "/proc/self/ns/net", "CNI_NETNS_OVERRIDE": "TRUE"},
	}
	configurations := []string{
		`{"name":"a","cniVersion":"1.1.0"}`, `{"name":"a","cniVersion":"0.4.0"}`, `{"name":"a"}`, `{"name":"a","cniVersion":"0.3.1"}`, `{"name":"a","cniVersion":"9.9.9"}`,
		`{"name":"a","cniVersion":"x"}`, `{"name":"a","cniVersion":"1.0.0.0"}`, `{"name":"a","cniVersion":5}`, `{"cniVersion":"1.0.0"}`, `{"name":"a/b"}`, `{"name":5}`, `{`, ``, `[]`, `null`, `{"name":"a","cniVersion":"0.9.0"}`,
	}
	more := []string{ // with the usual environment
		`{}`, `{"name":null}`, `{"name":""}`, `{"name":"a","name":"b/"}`, `{"NAME":"a/b"}`,
		`{"name":"a","cniVersion":""}`, `{"name":"a","cniVersion":" 1.0.0"}`, `{"name":"a","cniVersion":"1"}`, `{"name":"a","cniVersion":"-1.0.0"}`,
		`{"name":"a","cniVersion":"2.0.0"}`, `{"name":"a","cniVersion":"0.1.0"}`, `{"name":"a","cniVersion":"0.5.0"}`, `{"name":"a","cniVersion":"1.1.1"}`,
	}
	// Our texts name the configuration where encoding/json names Go types.
	plain := map[string]string{
		"cannot unmarshal number into Go struct field .name of type string":                   "name is number, not string, at offset 8",
		"cannot unmarshal number into Go struct field .cniVersion of type string":             "cniVersion is number, not string, at offset 25",
		`cannot unmarshal array into Go value of type struct { Name string "json:\"name\"" }`: "the configuration is array, not object, at offset 0",
	}
	for _, verb := range []string{"ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION", "JUMP", "add"} {
		for _, changes := range environments {
			confs := configurations
			if len(changes) == 0 {
				confs = slices.Concat(configurations, more)
			}
			for _, conf := range confs {
				t.Setenv("CNI_NETNS_OVERRIDE", "")
				t.Setenv("CNI_COMMAND", verb)
				for _, set := range []map[string]string{usual, changes} {
					for k, v := range set {
						t.Setenv(k, v)
					}
				}
				want, wantCode := byLibrary(t, conf), 0
				wantText := ""
				if want != nil {
					wantText, wantCode = want.msg, want.code
				}
				got, code := "", 0
				var out, errOut bytes.Buffer
				exit := skel.Run(&skel.Process{Getenv: os.Getenv, Stdin: strings.NewReader(conf), Stdout: &out, Stderr: &errOut}, fine("x"))
				if exit != 0 {
					var printed types.Error
					if err := json.Unmarshal(out.Bytes(), &printed); err != nil {
						t.Fatal(err)
					}
					got = printed.Msg
					code = codeOf(out.String())
				}
				if prefix, prose, ok := strings.Cut(wantText, "json: "); ok && strings.HasPrefix(got, prefix) {
					wantText = prefix + plain[prose]
				}
				if got != wantText || code != wantCode || (exit != 0) != (want != nil) {
					t.Errorf("%s %v %s: %d %q, library %d %q", verb, changes, conf, code, got, wantCode, wantText)
				}
			}
		}
	}
}

func codeOf(out string) (n int) {
	_, rest, _ := strings.Cut(out, `"code": `)
	for _, c := range rest {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}

type failure struct {
	code int
	msg  string
}

// byLibrary runs a plugin that does nothing with the CNI library.
func byLibrary(t *testing.T, stdin string) *failure {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stdin")
	if err := os.WriteFile(file, []byte(stdin), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	before, beforeOut := os.Stdin, os.Stdout
	os.Stdin, os.Stdout = in, null
	defer func() { os.Stdin, os.Stdout = before, beforeOut }()
	verb := func(*library.CmdArgs) error { return nil }
	said := library.PluginMainFuncsWithError(library.CNIFuncs{Add: verb, Del: verb, Check: verb, GC: verb, Status: verb}, version.All, "x")
	if said == nil {
		return nil
	}
	return &failure{int(said.Code), said.Msg}
}

func TestRun_AboutAndVersion(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][2]string{
		"":        {"", "egress CNI plugin v9\nCNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0\n"},
		"VERSION": {`{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}` + "\n", ""},
	} {
		var out, errOut bytes.Buffer
		getenv := func(k string) string { return map[string]string{"CNI_COMMAND": command}[k] }
		exit := skel.Run(&skel.Process{Getenv: getenv, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut}, fine("egress CNI plugin v9"))
		if exit != 0 || out.String() != want[0] || errOut.String() != want[1] {
			t.Errorf("%q: exit %d, %q, %q", command, exit, out.String(), errOut.String())
		}
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err  skel.Error
		want string
	}{
		{skel.Error{Code: 999, Msg: "m"}, "{\n    \"code\": 999,\n    \"msg\": \"m\"\n}"},
		{skel.Error{Code: 7, Msg: "<m>", Details: "d"}, "{\n    \"code\": 7,\n    \"msg\": \"\\u003cm\\u003e\",\n    \"details\": \"d\"\n}"},
		{skel.Error{Code: 7, Msg: "m", Cause: cause.Internal, Details: "d"}, "{\n    \"code\": 7,\n    \"msg\": \"m\",\n    \"details\": \"internal: d\"\n}"},
		{skel.Error{Code: 7, Msg: "m", Cause: cause.Internal}, "{\n    \"code\": 7,\n    \"msg\": \"m\",\n    \"details\": \"internal: internal error\"\n}"},
	} {
		if got := string(row.err.JSON()); got != row.want {
			t.Errorf("%s, want %s", got, row.want)
		}
	}
}

// TestError_EveryOneHasACause: every error of this package, and of plugins that use its type,
// has a cause.
func TestError_EveryOneHasACause(t *testing.T) {
	t.Parallel()
	found := 0
	for _, dir := range []string{".", "../egress"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				literal, ok := n.(*ast.CompositeLit)
				if !ok || !isError(literal.Type) {
					return true
				}
				found++
				for _, element := range literal.Elts {
					pair, ok := element.(*ast.KeyValueExpr)
					if key, isKey := pair.Key.(*ast.Ident); ok && isKey && key.Name == "Cause" {
						return true
					}
				}
				t.Errorf("%v: an error without a cause", set.Position(literal.Pos()))
				return true
			})
		}
	}
	if found < 20 {
		t.Errorf("only %d errors found", found)
	}
}

// isError reports whether e is this package's type Error, under either name.
func isError(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "Error"
	case *ast.SelectorExpr:
		from, ok := e.X.(*ast.Ident)
		return ok && from.Name == "skel" && e.Sel.Name == "Error"
	}
	return false
}
