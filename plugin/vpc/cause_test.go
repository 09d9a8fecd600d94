package vpc_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"cnictl/daemon/api/cause"
)

// TestCause_EveryErrorHasOne: every error of the plugin has a cause.
func TestCause_EveryErrorHasOne(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	errors := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if name, ok := literal.Type.(*ast.Ident); !ok || name.Name != "cniError" {
				return true
			}
			errors++
			for _, element := range literal.Elts {
				pair, ok := element.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "cause" {
					return true
				}
			}
			t.Errorf("%v: an error without a cause", set.Position(literal.Pos()))
			return true
		})
	}
	if errors < 15 {
		t.Errorf("only %d errors found", errors)
	}
}

// TestCause_InTheLog: the log line of a failure ends with its cause; no other line has one.
func TestCause_InTheLog(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		env   map[string]string
		stdin string
		want  cause.Code
	}{
		{"configuration", env("ADD"), `{"name":"a","mtu":9001}`, cause.InvalidConfig},
		{"arguments", env("ADD", "CNI_ARGS", "FOO"), `{"name":"a"}`, cause.InvalidRequest},
		{"namespace", env("ADD"), `{"name":"a"}`, cause.NetnsGone},
		{"no daemon, and DEL goes on", env("DEL"), `{"name":"a"}`, cause.DaemonUnreachable},
		{"previous result", env("CHECK"), `{"name":"a","cniVersion":"1.1.0","prevResult":{"interfaces":5}}`, cause.InvalidRequest},
		{"no daemon", env("STATUS"), `{"name":"a","cniVersion":"1.1.0"}`, cause.DaemonUnreachable},
		{"list", env("GC"), `{"name":"a","cniVersion":"1.1.0","cni.dev/valid-attachments":7}`, cause.InvalidRequest},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, _, log := run(row.env, row.stdin)
			found := false
			for line := range strings.Lines(log) {
				failure := strings.HasPrefix(line, `{"level":"error",`)
				if strings.HasSuffix(line, `","cause":"`+string(row.want)+"\"}\n") {
					found = true
				} else if failure && !strings.Contains(line, `","cause":"`) {
					t.Errorf("a failure without a cause: %s", line)
				}
				if !failure && strings.Contains(line, `","cause":"`) {
					t.Errorf("a cause where nothing failed: %s", line)
				}
			}
			if !found {
				t.Errorf("no line with cause %s:\n%s", row.want, log)
			}
		})
	}
}
