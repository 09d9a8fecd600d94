package deploy_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/iam"
	"cnictl/deploy"
	"cnictl/testenv/text/golden"
	"cnictl/testenv/text/tour"
)

const interfaces = "arn:aws:ec2:*:*:network-interface/*"

// allowed maps the actions of a policy to the resources they are allowed on.
func allowed(t *testing.T, name string) map[string]string {
	t.Helper()
	data, err := deploy.IAM(name)
	if err != nil {
		t.Fatal(err)
	}
	var p iam.Policy
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

// called returns the actions of a service that the code calls through an SDK client.
func called(t *testing.T, dir, client, service string) []string {
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
				actions[service+":"+method.Sel.Name] = true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(actions))
}

// TestIAM_Documents: the policy files match the table, and there are no others.
func TestIAM_Documents(t *testing.T) {
	t.Parallel()
	policies := iam.Policies()
	for name, p := range policies {
		text, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		golden.File(t, filepath.Join("iam", name+".json"), text)
	}
	if files, err := filepath.Glob("iam/*"); err != nil || len(files) != len(policies) {
		t.Errorf("%d files for %d policies, %v", len(files), len(policies), err)
	}
}

// TestIAM_Filled: the command of docs/install.md replaces every word in capitals, and moves every ARN
// of a document, also those of conditions, to another partition.
func TestIAM_Filled(t *testing.T) {
	t.Parallel()
	commands := slices.DeleteFunc(tour.Shown(t, "sed"), func(command string) bool { return !strings.Contains(command, "deploy/iam/") })
	if len(commands) != 1 {
		t.Fatalf("commands %q, want one", commands)
	}
	command, _, _ := strings.Cut(commands[0], " deploy/iam/")
	arn := regexp.MustCompile(`arn:([^:]*):`)
	word := regexp.MustCompile(`[A-Z]{4,}(_[A-Z]+)*`) // longer than VPC and CNI, which are names
	sid := regexp.MustCompile(`^[A-Za-z0-9]+$`)       // IAM accepts no others
	moved := 0
	for name := range iam.Policies() {
		sed := exec.CommandContext(t.Context(), "sh", "-c", command+" iam/"+name+".json")
		out, err := sed.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range arn.FindAllStringSubmatch(string(out), -1) {
			if moved++; m[1] != "aws-cn" {
				t.Errorf("%s: %s", name, m[0])
			}
		}
		if left := word.FindAllString(string(out), -1); left != nil {
			t.Errorf("%s: the words %q are left", name, left)
		}
		var p iam.Policy
		if err := json.Unmarshal(out, &p); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		for _, s := range p.Statement {
			if !sid.MatchString(s.Sid) {
				t.Errorf("%s: sid %q", name, s.Sid)
			}
		}
		if short := strings.Join(strings.Fields(string(out)), ""); len(short) > maxManaged {
			t.Errorf("%s: %d characters besides white space", name, len(short))
		}
	}
	if moved < 10 {
		t.Errorf("%d ARNs", moved)
	}
}

// maxManaged is IAM's quota of a managed policy, in characters besides white space.
const maxManaged = 6144

// TestIAM_Table: every call in the code has a row for the program that makes it, and every row
// has a call.
func TestIAM_Table(t *testing.T) {
	t.Parallel()
	daemon := []iam.Feature{iam.Start, iam.IPv4, iam.IPv6, iam.Excluded, iam.Interfaces, iam.Groups, iam.Sweep}
	for _, program := range []struct {
		dir, client, service string
		features             []iam.Feature
	}{
		{"daemon/internal/vpcapi", "ec2", "ec2", daemon},
		{"doctor/collect/ec2", "api", "ec2", []iam.Feature{iam.Doctor}},
		{"doctor/collect/ec2", "eks", "eks", []iam.Feature{iam.Migrate}}, // and IAM calls
		{"cmd/cni-metrics-helper/internal/publish", "client", "cloudwatch", []iam.Feature{iam.Helper}},
	} {
		calls := called(t, program.dir, program.client, program.service)
		if program.service == "eks" {
			calls = append(calls, called(t, program.dir, "iam", "iam")...)
		}
		if rows := iam.Needed(program.features...); !slices.Equal(calls, rows) {
			t.Errorf("%s calls\n%q\nand daemon/iam has rows of\n%q", program.dir, calls, rows)
		}
	}
	if names := iam.Needed(iam.HelperName); !slices.Equal(names, []string{"ec2:DescribeTags"}) {
		t.Errorf("the helper reads the name of its cluster with %q", names)
	}
	var last string
	for _, a := range iam.Table() {
		if a.Name <= last || len(a.Features) == 0 {
			t.Errorf("%s is out of order, there twice, or for no feature", a.Name)
		}
		last = a.Name
	}
}

// actionsOf lists the actions of a policy, each once.
func actionsOf(p iam.Policy) []string {
	set := map[string]bool{}
	for _, s := range p.Statement {
		for _, a := range s.Action {
			set[a] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// TestIAM_Scoped: the scoped policies allow the same actions as the others, and without a
// condition only describe actions.
func TestIAM_Scoped(t *testing.T) {
	t.Parallel()
	all := iam.Policies()
	for _, name := range []string{"aws-node-ipv4", "aws-node-ipv6"} {
		if got, want := actionsOf(all[name+"-scoped"]), actionsOf(all[name]); !slices.Equal(got, want) {
			t.Errorf("%s-scoped allows\n%q\nwant\n%q", name, got, want)
		}
		for _, s := range all[name+"-scoped"].Statement {
			if free := s.Sid == "DescribeNetwork"; free != (s.Condition == nil) {
				t.Errorf("%s-scoped: %s has the condition %v", name, s.Sid, s.Condition)
			}
		}
	}
}

// TestIAM_Node: the policies allow what the daemon calls, each action only in the families
// that need it, and nothing else.
func TestIAM_Node(t *testing.T) {
	t.Parallel()
	calls := called(t, "daemon/internal/vpcapi", "ec2", "ec2")
	if len(calls) < 10 {
		t.Fatalf("found only %q: does this test still understand the client?", calls)
	}
	families := map[string][]string{ // actions that only the other family needs
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

// TestIAM_AgentLogs: the policy allows what the network policy agent needs to send its log to
// CloudWatch (EKS User Guide), and writes only to the group of one cluster. The agent is
// AWS's, so there are no calls in our code to compare with.
func TestIAM_AgentLogs(t *testing.T) {
	t.Parallel()
	const group = "arn:aws:logs:*:*:log-group:/aws/eks/CLUSTER_NAME/cluster"
	const written = group + " " + group + ":*"
	want := map[string]string{"logs:CreateLogGroup": written, "logs:CreateLogStream": written, "logs:PutLogEvents": written, "logs:DescribeLogGroups": "*"}
	if have := allowed(t, "network-policy-agent-logs"); !maps.Equal(have, want) {
		t.Errorf("%v, want %v", have, want)
	}
}

// TestIAM_Doctor: the policy allows the doctor's requests to EC2, EKS and IAM, all of which only read.
func TestIAM_Doctor(t *testing.T) {
	t.Parallel()
	have := allowed(t, "cnictl-doctor")
	want := slices.Concat(called(t, "doctor/collect/ec2", "api", "ec2"), called(t, "doctor/collect/ec2", "eks", "eks"), called(t, "doctor/collect/ec2", "iam", "iam"))
	if got := slices.Sorted(maps.Keys(have)); !slices.Equal(got, want) {
		t.Errorf("it allows\n%q\nand the doctor calls\n%q", got, want)
	}
	for action, resource := range have {
		_, name, _ := strings.Cut(action, ":")
		reads := func(verb string) bool { return strings.HasPrefix(name, verb) }
		if !slices.ContainsFunc([]string{"Describe", "Get", "List", "Simulate"}, reads) || resource != "*" {
			t.Errorf("%s on %s", action, resource)
		}
	}
}
