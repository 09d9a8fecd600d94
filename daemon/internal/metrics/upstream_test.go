package metrics

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// original is one row of testdata/original.tsv.
type original struct {
	name, kind string
	labels     []string
	values     map[string][]string // of labels with a fixed set of values
	fromStart  bool
}

func originals(t *testing.T) map[string]original {
	t.Helper()
	data, err := os.ReadFile("testdata/original.tsv")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]original{}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 5 {
			t.Fatalf("%q has %d fields", line, len(f))
		}
		o := original{name: f[0], kind: f[1], values: map[string][]string{}, fromStart: f[4] == "start"}
		if f[2] != "-" {
			o.labels = strings.Split(f[2], ",")
		}
		for set := range strings.SplitSeq(f[3], ";") {
			if label, values, ok := strings.Cut(set, "="); ok {
				o.values[label] = strings.Split(values, "|")
			}
		}
		all[o.name] = o
	}
	if len(all) != 27+2 { // two are the promhttp handler's
		t.Fatalf("%d metrics in the table", len(all))
	}
	return all
}

// parsed is a served family.
type parsed struct {
	kind      string
	series    []map[string]string // labels
	quantiles bool
}

func parse(t *testing.T, text string) map[string]*parsed {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*parsed{}
	for name, f := range families {
		all[name] = &parsed{kind: strings.ToLower(f.GetType().String())}
		for _, m := range f.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			all[name].series = append(all[name].series, labels)
			all[name].quantiles = all[name].quantiles || m.Summary != nil && len(m.Summary.Quantile) > 0
		}
	}
	return all
}

// check compares a family with its row.
func (o original) check(t *testing.T, where string, f *parsed) {
	t.Helper()
	if f.kind != o.kind || f.quantiles {
		t.Errorf("%s: %s is a %s (quantiles: %v), want a %s without", where, o.name, f.kind, f.quantiles, o.kind)
	}
	for _, labels := range f.series {
		if got := slices.Sorted(maps.Keys(labels)); !slices.Equal(got, o.labels) {
			t.Errorf("%s: %s has labels %v, want %v", where, o.name, got, o.labels)
		}
		for label, value := range labels {
			if set := o.values[label]; set != nil && !slices.Contains(set, value) {
				t.Errorf("%s: %s has %s=%q, which is not one of %v", where, o.name, label, value, set)
			}
		}
	}
}

// TestUpstream_TableIsAsRecorded compares the table with upstream's recorded metrics.
func TestUpstream_TableIsAsRecorded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/recorded/*.txt")
	if err != nil || len(files) != 12 {
		t.Fatalf("recorded files: %v, %v", files, err)
	}
	table := originals(t)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		recorded := parse(t, string(data))
		for name, f := range recorded {
			o, ok := table[name]
			if !ok {
				t.Errorf("%s: %s is not in the table", file, name)
				continue
			}
			o.check(t, file, f)
		}
		for name, o := range table {
			if o.fromStart && recorded[name] == nil {
				t.Errorf("%s: the table has %s from the start", file, name)
			}
		}
	}
}

// TestUpstream_FromTheStart serves what upstream serves before any event.
func TestUpstream_FromTheStart(t *testing.T) {
	t.Parallel()
	m := New(Options{Version: "v1", GoVersion: "go1"})
	scrape(t, m) // the handler counts a scrape when it ends
	served := parse(t, scrape(t, m))
	for name, o := range originals(t) {
		switch f := served[name]; {
		case o.fromStart && f == nil:
			t.Errorf("%s is not served from the start", name)
		case f != nil:
			o.check(t, "at the start", f)
		}
	}
}

// events make a metric count one value of a fixed label, by metric and label.
var events = map[string]func(m *Metrics, value string){
	"awscni_ipamd_error_count fn":       func(m *Metrics, v string) { m.InternalError(v) },
	"awscni_ipamd_action_inprogress fn": func(m *Metrics, v string) { m.Action(v) },
	"awscni_reconcile_count fn":         func(m *Metrics, v string) { m.Reconciled(v) },
	"awscni_del_ip_req_count reason":    func(m *Metrics, v string) { m.DelRequest(v) },
	"awscni_pod_eni_error_count fn":     func(m *Metrics, v string) { m.PodENIError(v) },
	"awscni_aws_api_latency_ms error": func(m *Metrics, v string) {
		m.APILatency(APIWaitForENI, time.Second, "", errorIf(v == "true"))
	},
	"awscni_aws_utils_error_count fn": func(m *Metrics, v string) { m.AWSUtilsError(v, "InvalidParameterValue") },
	"awscni_ipamd_startup_duration_seconds success": func(m *Metrics, v string) {
		m.Started(time.Second, true, map[string]string{"true": "", "false": FailedNodeInit}[v])
	},
	"awscni_ipamd_startup_duration_seconds with_api_server":     func(m *Metrics, v string) { m.Started(time.Second, v == "true", "") },
	"awscni_ipamd_startup_duration_seconds failure_reason":      func(m *Metrics, v string) { m.Started(time.Second, true, v) },
	"awscni_ipamd_node_initialization_duration_seconds success": func(m *Metrics, v string) { m.NodeInitialized(time.Second, errorIf(v == "false")) },
	"awscni_connmark_backend backend":                           func(m *Metrics, v string) { m.ConnmarkBackend(v) },
	"awscni_connmark_reconcile_total result":                    func(m *Metrics, v string) { m.ConnmarkReconcile(errorIf(v == "error")) },
}

func errorIf(yes bool) error {
	if yes {
		return errors.New("no")
	}
	return nil
}

// TestUpstream_AfterItsEvent counts every value of every fixed label once.
func TestUpstream_AfterItsEvent(t *testing.T) {
	t.Parallel()
	for name, o := range originals(t) {
		for label, values := range o.values {
			count := events[name+" "+label]
			if count == nil {
				if strings.HasPrefix(name, "promhttp_") { // the handler's own
					continue
				}
				t.Errorf("nothing counts %s by %s", name, label)
				continue
			}
			for _, value := range values {
				m := New(Options{})
				count(m, value)
				f := parse(t, scrape(t, m))[name]
				if f == nil {
					t.Errorf("%s is not served after %s=%q", name, label, value)
					continue
				}
				o.check(t, fmt.Sprintf("after %s=%q", label, value), f)
				if !slices.ContainsFunc(f.series, func(labels map[string]string) bool { return labels[label] == value }) {
					t.Errorf("%s has no series %s=%q", name, label, value)
				}
			}
		}
	}
	// The others have open-ended values.
	m := New(Options{})
	exercise(m)
	served := parse(t, scrape(t, m))
	for name, o := range originals(t) {
		if f := served[name]; f == nil {
			t.Errorf("%s is not served after everything happened", name)
		} else {
			o.check(t, "after everything", f)
		}
	}
}

// TestUpstream_ValuesAreConstants requires a constant for every value of upstream's label
// fn, so that the daemon cannot misspell one.
func TestUpstream_ValuesAreConstants(t *testing.T) {
	t.Parallel()
	constants := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
				ast.Inspect(d, func(n ast.Node) bool {
					if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						text, err := strconv.Unquote(lit.Value)
						constants[text] = err == nil
					}
					return true
				})
			}
			return true
		})
	}
	for name, o := range originals(t) {
		for _, label := range []string{"fn", "reason", "failure_reason"} {
			for _, value := range o.values[label] {
				if value != "" && !constants[value] {
					t.Errorf("%s: no constant %q", name, value)
				}
			}
		}
	}
}
