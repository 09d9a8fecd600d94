package file_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
)

const start = "schemaVersion: 2\nat: 2026-11-21T14:02:11Z\n"

// TestLoad_Plain: a reading has what its file says, and nothing else.
func TestLoad_Plain(t *testing.T) {
	t.Parallel()
	ev, err := file.Load([]byte(start + `mode: laptop
interval: 30s
sources:
  kern.sysctl: {net.ipv4.ip_forward: 0}
  metrics: {missing: timeout}
later: {sources: {kern.ct: {count: 7}}}
nodes:
  - node: a
    sources:
      k8s.node: {name: a, instanceType: c5.9xlarge, capacity: {pods: 234}}
      kern.rule: [{priority: 512, to: 10.0.0.1/32, table: main}, {family: 6, priority: 1, table: 12}]
      metrics: {samples: {x: -1.5}}
    later:
      sources:
        metrics: {missing: refused}
  - node: b
`))
	if err != nil {
		t.Fatal(err)
	}
	a, b := ev.Nodes[0], ev.Nodes[1]
	var read []string
	for id, s := range a.First.Sources() {
		if s.Reason() == "" {
			read = append(read, id)
		} else if s.Reason() != evidence.MissingNotAsked {
			t.Errorf("%s: %s", id, s.Reason())
		}
	}
	if diff := cmp.Diff([]string{"metrics", "kern.rule", "kern.sysctl", "k8s.node"}, read); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	rules := a.First.Rules.Content
	for what, ok := range map[string]bool{
		"the name":               a.Name == "a" && b.Name == "b",
		"the times":              a.First.At.Equal(ev.At) && a.Second.At.Equal(ev.At.Add(30*time.Second)) && ev.Interval == 30*time.Second,
		"what all nodes share":   b.First.Sysctls.Content["net.ipv4.ip_forward"] == "0" && b.First.Metrics.Missing == "timeout",
		"a default":              rules[0].Family == 4 && rules[1].Family == 6,
		"tables":                 rules[0].Table == "main" && rules[1].Table == "12",
		"a node's own":           a.First.Metrics.Content.Samples["x"] == -1.5,
		"what is later":          a.Second.Metrics.Missing == "refused" && *b.Second.Conntrack.Content.Count == 7 && !b.First.Conntrack.OK(),
		"what is the same later": a.Second.Node.Content.Name == "a" && b.Second.Sysctls.OK(),
		"the instance type":      !a.First.InstanceType.OK(),
	} {
		if !ok {
			t.Errorf("%s is not as in the file", what)
		}
	}
	one, err := file.Load([]byte(start + "sources: {k8s.node: {name: ip-10-0-0-9.ec2.internal}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if n := one.Nodes[0]; n.Name != "ip-10-0-0-9.ec2.internal" || n.Second != nil || one.Scope.Node != n.Name || one.Interval != 0 {
		t.Errorf("one node: %+v", one)
	}
}

// TestLoad_Format1: files that earlier releases saved are read, and what describes a situation is
// refused with what to do.
func TestLoad_Format1(t *testing.T) {
	t.Parallel()
	const old = "schemaVersion: 1\nat: 2026-11-21T14:02:11Z\n"
	ev, err := file.Load([]byte(old + `mode: laptop
base: none
interval: 30s
once: false
scope:
    cluster: true
sources:
    k8s.wh:
        missing: forbidden
    k8s.node: {name: a, labels: {x: y, z: ""}, createdAt: -1d}
nodes:
    - world:
        node: a
      sources:
        log.ipamd:
            from: 2026-11-21T14:00:00Z
            lines:
                - {level: info, msg: one, every: 2s, count: 2}
        kern.rule: [{priority: 512, table: main}]
      later:
        sources:
            log.ipamd:
                truncated: false
                lines:
                    - {level: info, msg: two}
                    - raw
            k8s.node: {labels: {x: null}}
            kern.rule: []
    - world:
        node: b
      sources: {kern: {missing: refused}, kern.ct: {count: 1}}
`))
	if err != nil {
		t.Fatal(err)
	}
	a, b := ev.Nodes[0], ev.Nodes[1]
	lines := a.Second.LogIPAMD.Content.Lines
	for what, ok := range map[string]bool{
		"names":            a.Name == "a" && b.Name == "b",
		"lines are added":  len(a.First.LogIPAMD.Content.Lines) == 1 && len(lines) == 3 && lines[0].Every == 2*time.Second && lines[2].Text == "raw",
		"the rest stays":   a.Second.LogIPAMD.Content.From.Minute() == 0,
		"names disappear":  a.Second.Node.Content.Name == "a" && cmp.Equal(a.Second.Node.Content.Labels, map[string]string{"z": ""}),
		"a list":           len(a.First.Rules.Content) == 1 && a.First.Rules.Content[0].Family == 4 && a.Second.Rules.OK() && len(a.Second.Rules.Content) == 0,
		"a group":          b.First.Rules.Missing == "refused" && *b.First.Conntrack.Content.Count == 1,
		"a second reading": b.Second != nil && b.Second.At.Equal(ev.At.Add(30*time.Second)) && b.Second.Webhooks.Missing == "forbidden",
		"a relative time":  b.First.Node.Content.CreatedAt.Equal(ev.At.Add(-24 * time.Hour)),
		"nothing else":     !a.First.InstanceType.OK(),
	} {
		if !ok {
			t.Errorf("%s: not as in the file", what)
		}
	}
	named, err := file.Load([]byte(old + "once: true\nworld: {node: other}\nsources: {k8s.ds: null}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if n := named.Nodes[0]; n.Name != "other" || n.Second != nil || named.Scope.Node != "other" || !n.First.DaemonSet.OK() {
		t.Errorf("one node: %+v", named)
	}
	for where, text := range map[string]string{
		"line 3: base":                  "base: healthy",
		"line 3: world":                 "world: {daemon: ours}",
		"line 3: sources.kern":          "sources: {kern: expected}",
		"line 3: nodes[0].count":        "nodes: [{count: 2}]",
		"line 3: nodes[0].world":        "nodes: [{world: {maxPods: 3}}]",
		"line 3: nodes[0].later.world":  "nodes: [{later: {world: {}}}]",
		"line 3: later.sources.metrics": "later: {sources: {metrics: expected}}",
	} {
		_, err := file.Load([]byte(old + text))
		if err == nil || !strings.HasPrefix(err.Error(), where+": ") || !strings.Contains(err.Error(), "go run ./testenv/cmd/situation FILE") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestLoad_Refuses: an error names line, member and what is accepted.
func TestLoad_Refuses(t *testing.T) {
	t.Parallel()
	const node = start + "nodes:\n- node: a\n  sources:\n    "
	for name, row := range map[string]struct{ text, want string }{
		"nothing":             {"", "the file is empty"},
		"not YAML":            {"a: [", "not YAML"},
		"a list":              {"- a", "line 1: want an object, not a list"},
		"no version":          {"at: 2026-11-21T14:02:11Z", "schemaVersion: required: 2"},
		"a later version":     {"schemaVersion: 3\nnew: thing", "line 1: schemaVersion: 3 is later than this cnictl, which reads 2"},
		"a version of text":   {"schemaVersion: new", `line 1: schemaVersion: want 2, not "new"`},
		"no time":             {"schemaVersion: 2", "at: required"},
		"a relative time":     {"schemaVersion: 2\nat: -3h", `line 2: at: want a time, such as 2026-11-21T14:02:11Z, not "-3h"`},
		"a time long ago":     {"schemaVersion: 2\nat: 1066-10-14T09:00:00Z", "line 2: at: want a time after 1970"},
		"two documents":       {start + "---\na: b", "more than one document"},
		"an unknown member":   {start + "wrold: {}", `line 3: unknown member "wrold"; known: schemaVersion, at, mode`},
		"a situation":         {start + "world: {}", `line 3: unknown member "world"`},
		"a member of a node":  {start + "nodes:\n- node: a\n  count: 2", `line 5: nodes[0]: unknown member "count"; known: node, sources, later`},
		"an unknown source":   {start + "sources: {intro.eni: []}", `line 3: sources: no source "intro.eni"; it has intro.enis,`},
		"a member of a value": {node + "kern.rule:\n    - priority: 1\n    - prio: 2", `line 8: nodes[0].sources.kern.rule[1]: unknown member "prio"; known: family, priority`},
		"a member in a map":   {node + "k8s.ds: {env: {aws-node: {A: [1]}}}", "line 6: nodes[0].sources.k8s.ds.env.aws-node.A: want a text, not a list"},
		"an unknown word":     {start + "mode: moon", `line 3: mode: want one of node, laptop, bundle, cluster, not "moon"`},
		"a word of a source":  {node + "kern.ipt: {mode: both}", `line 6: nodes[0].sources.kern.ipt.mode: want one of nft, legacy, not "both"`},
		"a member twice":      {node + "kern.ct:\n      count: 1\n      count: 2", "line 8: nodes[0].sources.kern.ct.count: given twice"},
		"a source twice":      {start + "sources:\n  kern.ct: {}\n  kern.ct: {}", "line 5: sources.kern.ct: given twice"},
		"text for a number":   {node + "kern.ct: {count: many}", `line 6: nodes[0].sources.kern.ct.count: want an integer ≥ 0, not "many"`},
		"a number for text":   {node + "k8s.node: {name: 5}", "line 6: nodes[0].sources.k8s.node.name: want a text, not 5"},
		"below zero":          {node + "k8s.node: {capacity: {pods: -1}}", "want an integer ≥ 0, not -1"},
		"too large":           {node + "kern.ct: {count: 99999999999999999999}", "want an integer ≥ 0, not 99999999999999999999"},
		"no address":          {node + "ckpt: {allocations: [{address: 10.0.0.400}]}", `sources.ckpt.allocations[0].address: want an IP address, not "10.0.0.400"`},
		"a zone":              {node + `ckpt: {allocations: [{address: "fe80::1%\e]0;x\a"}]}`, "want an IP address"},
		"no table":            {node + "kern.rule: [{table: mian}]", `kern.rule[0].table: want a text, not "mian"`},
		"no duration":         {start + "interval: soon", `line 3: interval: want a duration, such as 1h30m, not "soon"`},
		"no second reading":   {start + "once: true\nlater: {}", "line 4: later: there is no second reading: once is true"},
		"no object":           {node + "kern.ct: 5", "line 6: nodes[0].sources.kern.ct: want an object, not 5"},
		"expected":            {node + "kern.ct: expected", `line 6: nodes[0].sources.kern.ct: want an object, not "expected"`},
		"an edit":             {node + "kern.rule: {without: []}", "line 6: nodes[0].sources.kern.rule: want a list, not an object"},
		"missing for nothing": {node + "metrics: {missing: null}", "sources.metrics.missing: want a reason"},
		"no name":             {start + "nodes: [{sources: {}}]", "line 3: nodes[0].node: required: the name of the node"},
		"no nodes":            {start + "nodes: []", "line 3: nodes: want a list of nodes, not an empty list"},
		"too many bytes":      {strings.Repeat(" ", file.MaxBytes+1), "8388608 are accepted"},
		"too deep":            {node + "intro.env: {ipamd: " + strings.Repeat("{a: ", 200) + "1" + strings.Repeat("}", 200) + "}", "nested deeper than 100 levels"},
		"an anchor in itself": {start + "sources: &a {kern.sysctl: *a}", "nested deeper than 100 levels"},
		"anchors that multiply": {
			start + "report:\n  - &a " + strings.Repeat("x", 1000) + "\n" + "nodes: [" + strings.Repeat("*a,", 9000) + "]\n", "anchors make the file larger than 8388608 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev, err := file.Load([]byte(row.text))
			if err == nil || ev != nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, %v; want an error with %q", ev, err, row.want)
			}
		})
	}
}

// TestLoad_Anchors: one value may be used for several nodes.
func TestLoad_Anchors(t *testing.T) {
	t.Parallel()
	ev, err := file.Load([]byte(start + "nodes:\n- &n {node: a, sources: &s {kern.ct: {count: 1}}, later: {sources: *s}}\n- *n\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range ev.Nodes {
		if n.Name != "a" || *n.First.Conntrack.Content.Count != 1 || *n.Second.Conntrack.Content.Count != 1 {
			t.Errorf("%+v", n)
		}
	}
}

// TestSave_AnyEvidence: whatever was read is read again as the same, whatever its values.
func TestSave_AnyEvidence(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		fill := func() *evidence.Reading {
			r := evidence.Unread(time.Time{}, "")
			for _, s := range r.Sources() {
				if random.IntN(4) == 0 {
					s.Lack([]string{evidence.MissingNotAsked, "a reason: ' \n"}[random.IntN(2)])
					continue
				}
				anything(random, reflect.ValueOf(s.Value()).Elem(), 0)
			}
			return r
		}
		ev := &evidence.Evidence{At: time.Date(2026, 11, 21, 14, 2, 11, 5, time.UTC), Mode: evidence.ModeLaptop, Interval: time.Minute}
		for i := range 3 {
			n := evidence.Node{Name: fmt.Sprint("n", i), First: fill()}
			if i > 0 {
				n.Second = fill()
			}
			ev.Nodes = append(ev.Nodes, n)
		}
		saved, err := file.Save(ev)
		if err != nil {
			t.Fatal(err)
		}
		again, err := file.Load(saved)
		if err != nil {
			t.Fatalf("seed %d: %v in\n%s", seed, err, saved)
		}
		twice, err := file.Save(again)
		if err != nil || string(twice) != string(saved) {
			diff := cmp.Diff(strings.Split(string(saved), "\n"), strings.Split(string(twice), "\n"))
			t.Fatalf("seed %d: saved again it is another (-first +again): %v\n%s", seed, err, diff)
		}
	}
}

// anything fills a value at random.
func anything(random *rand.Rand, v reflect.Value, depth int) {
	texts := []string{
		"", "a", "null", "5", "~", "yes", "- x", "a: b", "two\nlines\n", " \t", "#", "é\u2028", "'\"\\", "{,", "<&>", "2026-11-21T14:02:11Z", "-40s",
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(random.Int64N(1<<32), random.Int64N(1e9)).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if random.IntN(2) == 0 && depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			if anything(random, v.Elem(), depth+1); v.Elem().Kind() == reflect.Map && v.Elem().IsNil() {
				v.Elem().Set(reflect.MakeMap(v.Elem().Type())) // otherwise it would be read as a nil pointer
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch name := f.Tag.Get("json"); {
			case !f.IsExported() || name == "-" || f.Tag.Get("enum") != "" || v.Field(i).Type() == reflect.TypeFor[evidence.Table]():
			case f.Anonymous || name != "":
				anything(random, v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		if n := random.IntN(4) - 1; n >= 0 && depth < 8 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				anything(random, v.Index(i), depth+1)
			}
		}
	case reflect.Map:
		if n := random.IntN(4) - 1; n >= 0 && depth < 8 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				value := reflect.New(v.Type().Elem()).Elem()
				anything(random, value, depth+1)
				v.SetMapIndex(reflect.ValueOf(texts[random.IntN(len(texts))]).Convert(v.Type().Key()), value)
			}
		}
	case reflect.String:
		v.SetString(texts[random.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.Float64:
		v.SetFloat(float64(random.IntN(1000)) / 8)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(random.Int64N(1 << 20))
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		v.SetUint(random.Uint64N(1 << 20))
	}
}

// FuzzLoad: any file is refused or read, and what was read can be written and read again.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(start + "sources: {kern.rule: [{priority: 1024, table: main}], k8s.ds: null, log.ipamd: {lines: [a]}}"))
	f.Add([]byte("schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nnodes: [{world: {node: b}, later: {sources: {kern.ct: {count: 1}}}}]"))
	f.Add([]byte(`{"schemaVersion":2,"at":"2026-11-21T14:02:11Z","nodes":[{"node":"a","later":{}},{"node":"b"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ev, err := file.Load(data)
		if (err == nil) != (ev != nil) {
			t.Fatalf("%v, %v", ev, err)
		}
		if err != nil || len(data) > 1<<16 {
			return
		}
		saved, err := file.Save(ev)
		if err != nil {
			return
		}
		if _, err := file.Load(saved); err != nil {
			t.Fatalf("%v in\n%s", err, saved)
		}
	})
}

// fleetFile is the file of 5,000 nodes with two sources and two readings each.
func fleetFile(t testing.TB) []byte {
	t.Helper()
	ev := evidence.Evidence{At: time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC), Mode: evidence.ModeLaptop, Interval: time.Minute}
	for i := range 5000 {
		name, free, restarts := fmt.Sprintf("ip-10-0-%d-%d.ec2.internal", i/250, i%250), i%29, i
		reading := func(status string, assigned float64) *evidence.Reading {
			r := evidence.Unread(ev.At, evidence.MissingNotAsked)
			r.Node = evidence.Read(evidence.KubeNode{
				Name: name, InstanceType: "m5.large", Zone: "eu-west-1a", Instance: fmt.Sprintf("i-%017x", i),
				Capacity:   evidence.NodeResources{Pods: &free},
				Conditions: []evidence.Condition{{Type: "Ready", Status: status, Since: ev.At}}, KubeletVersion: "v1.33.1",
			})
			r.Metrics = evidence.Read(evidence.Metrics{Samples: map[string]float64{
				"awscni_assigned_ip_addresses": assigned, "awscni_total_ip_addresses": 29, "awscni_eni_allocated": 3,
				"awscni_restarts": float64(restarts),
			}})
			return r
		}
		ev.Nodes = append(ev.Nodes, evidence.Node{Name: name, First: reading("True", float64(free)), Second: reading("False", float64(free+1))})
	}
	data, err := file.Save(&ev)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// BenchmarkLoad: a fleet of 5,000 nodes.
func BenchmarkLoad(b *testing.B) {
	data := fleetFile(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		ev, err := file.Load(data)
		if err != nil || len(ev.Nodes) != 5000 || ev.Nodes[4999].Second == nil {
			b.Fatal(err)
		}
	}
}

// TestLoad_Memory: reading a fleet takes little memory.
func TestLoad_Memory(t *testing.T) {
	data := fleetFile(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := file.Load(data); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; taken > 300 {
		t.Errorf("%d bytes of evidence took %d MB to read, want at most 300", len(data), taken)
	}
}
