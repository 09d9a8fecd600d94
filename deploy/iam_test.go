package deploy_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cnictl/deploy"
)

type policy struct {
	Version   string
	Statement []struct {
		Sid, Effect      string
		Action, Resource []string
		Condition        map[string]map[string]string
	}
}

const interfaces = "arn:aws:ec2:*:*:network-interface/*"

// allowed maps the actions of a policy to the resources they are allowed on.
func allowed(t *testing.T, name string) map[string]string {
	t.Helper()
	data, err := deploy.IAM(name)
	if err != nil {
		t.Fatal(err)
	}
	var p policy
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if p.Version != "2012-10-17" {
		t.Errorf("%s: version %q", name, p.Version)
	}
	out := map[string]string{}
	for _, s := range p.Statement {
		if s.Effect != "Allow" {
			t.Errorf("%s: effect %q", name, s.Effect)
		}
		for _, a := range s.Action {
			if _, twice := out[a]; twice || strings.Contains(a, "*") {
				t.Errorf("%s: action %q is there twice or for many", name, a)
			}
			out[a] = strings.Join(s.Resource, " ")
		}
	}
	return out
}

// called are the EC2 actions that a client has calls of, by the name of the SDK's client.
func called(t *testing.T, dir, client string) []string {
	t.Helper()
	files, err := filepath.Glob("../" + dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	actions := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			method, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := method.X.(*ast.SelectorExpr); ok && of.Sel.Name == client { // c.ec2.Method
				actions["ec2:"+method.Sel.Name] = true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(actions))
}

// TestIAM_Node: the policies allow what the daemon calls, each action in the families
// that have it, and nothing else.
func TestIAM_Node(t *testing.T) {
	t.Parallel()
	calls := called(t, "daemon/internal/vpcapi", "ec2")
	if len(calls) < 10 {
		t.Fatalf("found only %q: does this test still understand the client?", calls)
	}
	families := map[string][]string{ // → actions of the other family
		"aws-node-ipv4": {"ec2:AssignIpv6Addresses", "ec2:UnassignIpv6Addresses"},
		"aws-node-ipv6": {"ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"},
	}
	for name, others := range families {
		want := slices.DeleteFunc(slices.Clone(calls), func(a string) bool { return slices.Contains(others, a) })
		have := allowed(t, name)
		if got := slices.Sorted(maps.Keys(have)); !slices.Equal(got, want) {
			t.Errorf("%s allows\n%q\nand the daemon calls\n%q", name, got, want)
		}
		for action, resource := range have {
			wantResource := "*"
			if action == "ec2:CreateTags" {
				wantResource = interfaces
			}
			if resource != wantResource {
				t.Errorf("%s: %s on %s, want %s", name, action, resource, wantResource)
			}
		}
	}
}

func TestIAM_Helper(t *testing.T) {
	t.Parallel()
	want := map[string]string{"cloudwatch:PutMetricData": "*", "ec2:DescribeTags": "*"}
	if have := allowed(t, "cni-metrics-helper"); !maps.Equal(have, want) {
		t.Errorf("%v, want %v", have, want)
	}
}

// TestIAM_Doctor: the policy allows what the doctor asks EC2, which only reads.
func TestIAM_Doctor(t *testing.T) {
	t.Parallel()
	have := allowed(t, "cnictl-doctor")
	if got, want := slices.Sorted(maps.Keys(have)), called(t, "doctor/collect/ec2", "api"); !slices.Equal(got, want) {
		t.Errorf("it allows\n%q\nand the doctor calls\n%q", got, want)
	}
	for action, resource := range have {
		if !strings.HasPrefix(action, "ec2:Describe") && !strings.HasPrefix(action, "ec2:Get") || resource != "*" {
			t.Errorf("%s on %s", action, resource)
		}
	}
}
