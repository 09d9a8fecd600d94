package monitoring

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	operator "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const (
	metricsPage   = "../../docs/metrics.md"
	dashboardFile = "../../deploy/monitoring/dashboard.json"
)

// ofTargets are labels that Prometheus or the Kubernetes discovery adds to every series, and
// cluster, which users with several clusters add.
var ofTargets = []string{"__name__", "job", "instance", "namespace", "pod", "container", "endpoint", "node", "cluster"}

// family is the documentation of a metric.
type family struct {
	kind   string
	labels []string
	ours   bool
}

// families are the metrics of docs/metrics.md, which a test of the daemon compares with
// what it serves, and those of the other exporters. The latter's scrapes in testdata are written by
// hand, and each names its source.
func families(t *testing.T) map[string]family {
	t.Helper()
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	out, ours := map[string]family{"up": {kind: "gauge"}}, false
	for line := range strings.Lines(string(page)) {
		ours = ours || strings.HasPrefix(line, "## Ours")
		m := regexp.MustCompile("^\\| `(\\w+)` \\| (\\w+) \\| (.*?) \\|").FindStringSubmatch(line)
		if m == nil {
			continue
		}
		f := family{kind: m[2], ours: ours}
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[3], -1) {
			f.labels = append(f.labels, name[1])
		}
		out[m[1]] = f
	}
	for _, file := range []string{"testdata/kube-state-metrics.txt", "testdata/policy-agent.txt"} {
		for _, s := range readScrape(t, file) {
			f := family{kind: "gauge"}
			s.labels.Range(func(l labels.Label) { f.labels = append(f.labels, l.Name) })
			out[s.labels.Get(labels.MetricName)] = f
		}
	}
	// A healthy agent has no series of this metric.
	out["awsnodeagent_aws_ebpfsdk_error_count"] = family{kind: "counter", labels: []string{"fn"}}
	return out
}

// lookUp finds the family of a series.
func lookUp(all map[string]family, series string) (family, bool) {
	if f, ok := all[series]; ok {
		return f, f.kind != "histogram" && f.kind != "summary"
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if f, ok := all[strings.TrimSuffix(series, suffix)]; ok && strings.HasSuffix(series, suffix) && (f.kind == "histogram" || f.kind == "summary" && suffix != "_bucket") {
			f.labels = append(slices.Clone(f.labels), "le")
			return f, true
		}
	}
	return family{}, false
}

// check reports series and labels that no daemon exposes, and, unless ours is set, metrics that
// upstream lacks.
func check(expr parser.Expr, all map[string]family, ours bool) (wrong []string) {
	known := map[string]bool{}
	for _, l := range ofTargets {
		known[l] = true
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		f, found := lookUp(all, v.Name)
		switch {
		case !found:
			wrong = append(wrong, "no such series: "+v.Name)
		case f.ours && !ours:
			wrong = append(wrong, "upstream has no "+v.Name)
		}
		for _, l := range f.labels {
			known[l] = true
		}
		for _, m := range v.LabelMatchers {
			if !slices.Contains(f.labels, m.Name) && !slices.Contains(ofTargets, m.Name) && found {
				wrong = append(wrong, v.Name+" has no label "+m.Name)
			}
		}
		return nil
	})
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		var names []string
		switch n := n.(type) {
		case *parser.AggregateExpr:
			names = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				names = n.VectorMatching.MatchingLabels
			}
		}
		for _, name := range names {
			if !known[name] {
				wrong = append(wrong, "no series has the label "+name)
			}
		}
		return nil
	})
	return wrong
}

// TestSeries: every alert and every panel uses existing series and labels.
func TestSeries(t *testing.T) {
	all := families(t)
	for name, a := range alerts(t) {
		for _, wrong := range check(a.Query(), all, a.ours) {
			t.Errorf("%s: %s", name, wrong)
		}
		for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(a.Annotations().String(), -1) {
			found := slices.Contains(ofTargets, m[1])
			parser.Inspect(a.Query(), func(n parser.Node, _ []parser.Node) error {
				if v, ok := n.(*parser.VectorSelector); ok {
					f, _ := lookUp(all, v.Name)
					found = found || slices.Contains(f.labels, m[1])
				}
				return nil
			})
			if !found {
				t.Errorf("%s: no series has the label %s of the annotations", name, m[1])
			}
		}
	}
	for _, p := range panels(t) {
		for _, wrong := range check(parse(t, p.expr), all, p.ours) {
			t.Errorf("panel %q: %s", p.title, wrong)
		}
	}
}

// TestSeries_Mistakes: the mistakes that TestSeries must find.
func TestSeries_Mistakes(t *testing.T) {
	all := families(t)
	for expr, want := range map[string]string{
		"awscni_ip_pool_available_addresses < 1":                  "no such series",
		"increase(awscni_eni_allocation_errors_total[5m]) > 0":    "no such series",
		"awscni_cooling_ip_addresses > 0":                         "upstream has no",
		`awscni_ipamd_error_count{func="nodeInit"} > 0`:           "has no label func",
		"sum by (code) (awscni_ipamd_error_count) > 0":            "no series has the label code",
		"awscni_aws_api_latency_ms > 5":                           "no such series",
		"rate(awscni_aws_api_latency_ms_bucket[5m]) > 0":          "no such series",
		`sum by (fn) (rate(awscni_ipamd_error_count[5m])) > 0`:    "",
		`rate(awscni_ipamd_startup_duration_seconds_sum[1h]) > 0`: "",
	} {
		got := strings.Join(check(parse(t, expr), all, false), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

func parse(t *testing.T, expr string) parser.Expr {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return parsed
}

// panel is an expression of the dashboard.
type panel struct {
	title, expr string
	ours        bool
}

func panels(t *testing.T) (out []panel) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Templating struct{ List []struct{ Name string } }
		Panels     []struct {
			ID                 int
			Title, Description string
			GridPos            struct{ X, Y, W, H int }
			Targets            []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"__rate_interval": "5m"}
	for _, v := range board.Templating.List {
		values[v.Name] = ".*"
	}
	taken := map[[2]int]string{}
	for _, p := range board.Panels {
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[at]; other != "" || at[0] >= 24 {
					t.Errorf("panels %q and %q overlap", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
		for _, target := range p.Targets {
			expr := regexp.MustCompile(`\$(\w+)`).ReplaceAllStringFunc(target.Expr, func(name string) string {
				value, ok := values[name[1:]]
				if !ok {
					t.Errorf("panel %q uses %s, which is not defined", p.Title, name)
				}
				return value
			})
			ours := strings.Contains(p.Description, "Upstream's daemon has no such metric") || strings.Contains(expr, "awscni_cooling_ip_addresses")
			out = append(out, panel{p.Title, expr, ours})
		}
	}
	return out
}

// happened are events of a bad day, without which some panels are rightly empty.
var happened = []string{
	`awscni_aws_api_error_count{api="CreateNetworkInterface",error="RequestLimitExceeded"} +1`,
	`awscni_ipamd_error_count{fn="increaseIPPoolAllocENI"} +1`,
	`awscni_pod_eni_error_count{fn="tryEnableSecurityGroupsForPods"} +1`,
	`awsnodeagent_aws_ebpfsdk_error_count{fn="RecoverAllBpfProgramsAndMaps"} +1`,
}

var happenedToOurs = []string{
	`awscni_failed_add_count{cause="ec2-throttled"} +1`,
	`awscni_ec2_backoff_seconds{cause="ec2-throttled",target="attach"} 12`,
	`awscni_policy_agent_calls_total{call="enforce",result="success"} +1`,
	"awscni_trunk_eni 1", "awscni_branch_eni 3", "awscni_branch_eni_max 9",
}

// TestPanels: each expression returns data, with upstream's metrics and with ours.
func TestPanels(t *testing.T) {
	for name, changes := range map[string][]string{secondary: happened, "ours/secondary": append(happenedToOurs, happened...)} {
		t.Run(name, func(t *testing.T) {
			r := recorded(t, name)
			b := load(t, r, false, changes, true, faultyFor, 10*time.Minute)
			down := load(t, r, false, []string{"down"}, false, faultyFor, 10*time.Minute)
			engine := newEngine(t)
			for _, p := range panels(t) {
				store := b.store
				if strings.HasSuffix(p.expr, "== 0)") {
					store = down.store
				}
				if p.ours && !r.ours {
					continue
				}
				q, err := engine.NewInstantQuery(t.Context(), store, nil, p.expr, start.Add(b.end))
				if err != nil {
					t.Errorf("panel %q: %v", p.title, err)
					continue
				}
				result := q.Exec(t.Context())
				if v, ok := result.Value.(promql.Vector); result.Err != nil || !ok || len(v) == 0 {
					t.Errorf("panel %q has no data (%v): %s", p.title, result.Err, p.expr)
				}
				q.Close()
			}
		})
	}
}

// TestObjects: the operator's types have every field of the objects.
func TestObjects(t *testing.T) {
	var rule operator.PrometheusRule
	var monitor operator.PodMonitor
	for file, into := range map[string]any{"prometheusrule.yaml": &rule, "podmonitor.yaml": &monitor} {
		text, err := os.ReadFile("../../deploy/monitoring/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	got := map[string]bool{}
	for _, g := range rule.Spec.Groups {
		for _, r := range g.Rules {
			got[r.Alert+" "+parse(t, r.Expr.String()).String()] = true
		}
	}
	want := map[string]bool{}
	for name, a := range alerts(t) {
		want[name+" "+a.Query().String()] = true
	}
	if !maps.Equal(got, want) {
		t.Error("prometheusrule.yaml has other alerts than rules.yaml: run make generate")
	}
}
