package store_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/query"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

// reporting is a node of one source with true zeros only at the given paths; any other zero
// would stand for an unreported number.
type reporting struct {
	node  document.NodeIPAM
	zeros *regexp.Regexp // document paths and column names
}

var (
	// A card's index is always reported.
	always  = regexp.MustCompile(`\.(card|device)$`)
	pool    = regexp.MustCompile(`\.(card|device)$|(cards|enis|cidrs)\[\d+\]\.(total|assigned|cooling|free|enis|prefixes|freePrefixes)$|\.routeTable$|^(eni|ip|ip%|assigned|cooling|free|warm|pods|prefixes)$`)
	zero    = regexp.MustCompile(`(^|[^0-9.])0($|[^0-9.a-zA-Z])`)
	started = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

// families are the metrics that a daemon may report, none of them zero.
var families = []string{
	"awscni_cooling_ip_addresses 2", "awscni_eni_allocated 2", "awscni_eni_max 3", "awscni_ip_max 27",
	"awscni_total_ipv4_prefixes 1", "awscni_add_ip_req_count 12", "awscni_no_available_ip_addresses 2",
	`awscni_failed_add_count{cause="pool-dry"} 1`, `awscni_del_ip_req_count{reason="PodDeleted"} 4`,
	"awscni_waiting_add_requests 1", "awscni_max_pods 29", `awscni_build_info{version="v1.20.1"} 1`,
	"process_start_time_seconds 1.76368500012e+09",
	"awscni_ec2api_req_count{fn=\"X\"} 4\nawscni_ec2api_error_count{fn=\"X\"} 1",
}

// metricsOnly are nodes with some of the families; each family also appears alone.
func metricsOnly(t *testing.T) []reporting {
	t.Helper()
	var out []reporting
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		lines := []string{"awscni_total_ip_addresses 18", "awscni_assigned_ip_addresses 7"}
		for j, f := range families {
			if i == j || i > len(families) && r.IntN(2) == 0 {
				lines = append(lines, f)
			}
		}
		s, err := fleet.SummaryOfMetrics([]byte(strings.Join(lines, "\n") + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, reporting{document.NodeIPAM{
			Metadata: document.ObjectMeta{Name: fmt.Sprint("metrics-", i)}, State: document.StateMetricsOnly, Source: document.SourceMetrics,
			SampledAt: &started, Summary: &s, Error: &document.NodeError{Reason: introspect.ReasonOff, Message: "off"},
		}, always})
	}
	return out
}

// originals are nodes that answer like each of upstream's releases, with and without
// settings.
func originals(t *testing.T) []reporting {
	t.Helper()
	files, err := filepath.Glob("../../api/introspect/testdata/shapes/*.json")
	if err != nil || len(files) < 8 {
		t.Fatalf("%v, %v", files, err)
	}
	var out []reporting
	for i, file := range append(files, "") {
		body, settings := []byte(`{}`), []string{`{"WARM_ENI_TARGET":1}`, `{}`, `{"AvailableCommands":[]}`}[i%3]
		if file != "" {
			if body, err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
		node := fleettest.ServePipe(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", started.Format(http.TimeFormat))
			answer := []byte(`{"AvailableCommands":["/v1/enis"]}`)
			switch r.URL.Path {
			case introspect.PathENIs:
				answer = body
			case introspect.PathIPAMEnv:
				answer = []byte(settings)
			}
			_, _ = w.Write(answer)
		})
		f, err := fleet.New(fleet.Options{Targets: []fleet.Target{{Name: "v1 " + filepath.Base(file), Address: "n", Dial: node.Dial}}, Now: func() time.Time { return started }})
		if err != nil {
			t.Fatal(err)
		}
		n := f.Sweep(t.Context(), fleet.Query{ENIs: true}).Items[0]
		f.Close()
		if n.Source != document.SourceV1 {
			t.Fatalf("%s: %+v", file, n.Error)
		}
		n.LatencySeconds = nil
		zeros := pool
		if len(n.Summary.Cards) == 0 {
			zeros = always
		}
		out = append(out, reporting{n, zeros})
	}
	return out
}

// summaries are nodes whose summaries have null members, in every possible combination.
func summaries(t *testing.T) []reporting {
	t.Helper()
	full := `{"kind":"NodeSummary","startedAt":"2026-11-21T11:00:00Z","cards":[{"card":0,"mode":"prefix","enis":2,"otherEnis":1,"eniLimit":3,"slotsPerEni":9,"addressLimit":27,"total":18,"assigned":7,"cooling":2,"free":9,"prefixes":2,"freePrefixes":1}],` +
		`"targets":{"warmEni":1,"warmIp":2,"minimumIp":3,"warmPrefix":4,"maxEni":5},"maxPods":{"value":29,"ipCapacity":29,"totalCapacity":29,"recommended":29},` +
		`"trunk":{"enabled":true,"eniId":"eni-t","branchLimit":9,"branchUsed":1},"cooldownSeconds":30,"waitingAdds":1,"unplaced":1,"configProblems":1,` +
		`"subnets":[{"id":"subnet-1","available":7}],"adds":{"total":9,"failed":1},"dels":{"total":4,"failed":1},"ec2Calls":[{"action":"X","calls":4,"errors":1}]}`
	member := regexp.MustCompile(`"(enis|otherEnis|eniLimit|slotsPerEni|addressLimit|cooling|prefixes|freePrefixes|warmEni|warmIp|minimumIp|warmPrefix|maxEni|value|ipCapacity|totalCapacity|recommended|branchLimit|branchUsed|cooldownSeconds|waitingAdds|unplaced|configProblems|available|failed)":\d+|"(maxPods|adds|dels|trunk)":\{[^}]*\}|"(ec2Calls|cards|subnets)":\[[^\]]*\]`)
	var out []reporting
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		body := member.ReplaceAllStringFunc(full, func(m string) string {
			if r.IntN(4) > 0 {
				return m
			}
			return m[:strings.Index(m, ":")] + ":null"
		})
		var s introspect.Summary
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		out = append(out, reporting{document.NodeIPAM{
			Metadata: document.ObjectMeta{Name: fmt.Sprint("summary-", i)}, State: document.StateLive, Source: document.SourceSummary, SampledAt: &started, Summary: &s,
		}, always})
	}
	return out
}

// silent are nodes that only Kubernetes reports, or nothing does.
func silent() []reporting {
	object := &document.NodeObject{InstanceType: "m5.large"}
	var out []reporting
	for _, n := range []document.NodeIPAM{
		{State: document.StateAPIOnly, Object: object},
		{State: document.StateAPIOnly, Object: object, Error: &document.NodeError{Reason: introspect.ReasonOff}},
		{State: document.StateNoDaemon, Object: object, Error: &document.NodeError{Reason: introspect.ReasonNoPod}},
		{State: document.StateForbidden, Object: object, Error: &document.NodeError{Reason: introspect.ReasonForbidden}},
		{State: document.StateUnreachable, Error: &document.NodeError{Reason: introspect.ReasonTimeout}},
	} {
		n.Metadata.Name = "silent " + string(n.State)
		out = append(out, reporting{n, always})
	}
	return out
}

// zerosOf lists the paths of a document's zeros.
func zerosOf(t *testing.T, doc any) []string {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	var paths []string
	walk(value, "", &paths)
	return paths
}

func walk(v any, path string, zeros *[]string) {
	switch v := v.(type) {
	case map[string]any:
		for name, m := range v {
			walk(m, path+"."+name, zeros)
		}
	case []any:
		for i, m := range v {
			walk(m, fmt.Sprintf("%s[%d]", path, i), zeros)
		}
	case float64:
		if v == 0 {
			*zeros = append(*zeros, path)
		}
	}
}

// TestUnknown_IsNotZero: whatever a node's source, no unreported number becomes a zero in
// the document, in a table cell, or in a sort key.
func TestUnknown_IsNotZero(t *testing.T) {
	t.Parallel()
	for _, x := range slices.Concat(metricsOnly(t), originals(t), summaries(t), silent()) {
		name := x.node.Metadata.Name
		for _, path := range zerosOf(t, x.node) {
			if !x.zeros.MatchString(path) {
				t.Errorf("%s: the document has a zero at %s", name, path)
			}
		}
		n := store.NewNode(x.node)
		for _, c := range tables.Nodes() {
			if x.zeros.MatchString(c.Name) {
				continue
			}
			if text := c.Text(n); c.Name != "node" && c.Name != "subnets" && zero.MatchString(text) {
				t.Errorf("%s: column %s is %q", name, c.Name, text)
			}
			if c.Number == nil {
				continue
			}
			if v, known := c.Number(n); known && v == 0 {
				t.Errorf("%s: column %s is ordered as 0", name, c.Name)
			}
		}
		if strings.HasPrefix(name, "v1") {
			continue
		}
		totals := store.Of([]document.NodeIPAM{x.node}).Totals
		did := totals.Activity
		for name, sum := range map[string]*int{
			"limit": totals.Limit, "room": totals.Room, "ENI limit": totals.ENILimit, "max-pods": totals.Pods,
			"cooling": totals.Cooling.Value(), "ENIs": totals.ENIs.Value(), "waiting": did.Waiting.Value(), "ADDs": did.ADDs.Value(),
			"failed": did.Failed.Value(), "DELs": did.DELs.Value(), "EC2": did.EC2.Value(), "EC2 errors": did.EC2Errors.Value(),
		} {
			if sum != nil && *sum == 0 {
				t.Errorf("%s: the sum of %s is 0", x.node.Metadata.Name, name)
			}
		}
	}
}

// TestUnknown_IsOrderedLast: in both directions, and a filter's lower bound never matches
// it.
func TestUnknown_IsOrderedLast(t *testing.T) {
	t.Parallel()
	rows := []*store.Node{}
	for _, cooling := range []*int{nil, new(3), new(0), nil, new(7)} {
		s := &introspect.Summary{Cards: []introspect.CardSummary{{Total: 9, Assigned: 1, Free: 1, Cooling: cooling, ENIs: cooling}}}
		rows = append(rows, store.NewNode(document.NodeIPAM{Metadata: document.ObjectMeta{Name: fmt.Sprint("n", len(rows))}, State: document.StateLive, Source: document.SourceMetrics, Summary: s}))
	}
	for order, want := range map[string]string{"cooling": "0 3 7 - -", "-cooling": "7 3 0 - -", "eni": "0 3 7 - -", "-eni": "7 3 0 - -"} {
		sorted := slices.Clone(rows)
		o, err := query.ParseOrder(order, tables.Nodes())
		if err != nil {
			t.Fatal(err)
		}
		o.Sort(sorted, func(n *store.Node) string { return n.Metadata.Name })
		var got []string
		for _, n := range sorted {
			got = append(got, show.Int(n.Cooling))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", order, got, want)
		}
	}
}

// TestTotals_OfUnknown: they are lower bounds, and unknown if no node reports.
func TestTotals_OfUnknown(t *testing.T) {
	t.Parallel()
	node := func(name string, cooling *int) document.NodeIPAM {
		return document.NodeIPAM{Metadata: document.ObjectMeta{Name: name}, State: document.StateLive, Summary: &introspect.Summary{
			Cards: []introspect.CardSummary{{Total: 9, Assigned: 1, Free: 1, Cooling: cooling, ENIs: cooling}}}}
	}
	s := store.New()
	check := func(when string, want store.Least) {
		t.Helper()
		if v := s.View().Totals; v.Cooling != want || v.ENIs != want {
			t.Errorf("%s: cooling %+v, ENIs %+v, want %+v", when, v.Cooling, v.ENIs, want)
		}
	}
	s.Put(node("a", nil))
	check("no node reports", store.Least{Bound: true})
	s.Put(node("b", new(4)))
	check("one of two reports", store.Least{N: 4, Known: true, Bound: true})
	s.Put(node("a", new(0)))
	check("both report", store.Least{N: 4, Known: true})
	s.Put(node("b", nil))
	check("only the other reports", store.Least{Known: true, Bound: true})
	s.Remove("a")
	check("no node reports again", store.Least{Bound: true})
	s.Remove("b")
	check("there is no node", store.Least{Known: true})
}
