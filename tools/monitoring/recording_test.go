package monitoring

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
)

// The directories of the recordings: upstream's as we received them, and our daemon's as
// TestRecordedMetrics of testenv/node/e2e makes them.
const (
	upstreamDir = "../../testenv/node/e2e/testdata/recorded"
	oursDir     = "../../testenv/node/e2e/testdata/metrics"
)

// The times of every recording. It is healthy for an hour and a half, longer than any expression
// looks back, and then has its fault, if any.
const (
	scrapeEvery = 30 * time.Second
	evalEvery   = time.Minute
	wellFor     = 90 * time.Minute
	faultyFor   = 150 * time.Minute // at most
	nodes       = 3
)

var start = time.Date(2026, 9, 1, 8, 0, 0, 0, time.UTC)

// recording is a cluster whose nodes all serve the same sequence of scrapes.
type recording struct {
	name  string
	ours  bool
	well  []string // files of healthy scrapes
	fault string   // file of the scrape after a minute of the fault; "" if none was recorded
	fires string   // an alert that fires although the daemon has no fault
}

var recordings = []recording{
	{name: "upstream/secondary", well: upstreamScrapes("secondary"), fault: upstreamDir + "/secondary/metrics.exhausted.txt"},
	{name: "upstream/two-enis", well: upstreamScrapes("two-enis")},
	{name: "upstream/prefix", well: upstreamScrapes("prefix")},
	{name: "ours/secondary", ours: true, well: scrapes(oursDir+"/secondary/", "before", "three-pods", "one-deleted")},
	{name: "ours/prefix", ours: true, well: scrapes(oursDir+"/prefix/", "before", "three-pods", "one-deleted")},
	{name: "ours/trunk", ours: true, well: scrapes(oursDir+"/trunk/", "one-pod"), fires: "AwsNodeMaxPodsTooHigh"}, // its Nodes have 110 pods
	{name: "ours/subnet-empty", ours: true, well: scrapes(oursDir+"/subnet-empty/", "before"), fault: oursDir + "/subnet-empty/fault.txt"},
	{name: "ours/unauthorized", ours: true, well: scrapes(oursDir+"/unauthorized/", "before"), fault: oursDir + "/unauthorized/fault.txt"},
	{name: "ours/throttled", ours: true, well: scrapes(oursDir+"/throttled/", "before"), fault: oursDir + "/throttled/fault.txt"},
}

func upstreamScrapes(mode string) []string {
	return scrapes(upstreamDir+"/"+mode+"/metrics.", "before", "three-pods", "one-deleted")
}

func scrapes(prefix string, moments ...string) (files []string) {
	for _, m := range moments {
		files = append(files, prefix+m+".txt")
	}
	return files
}

func recorded(t *testing.T, name string) recording {
	t.Helper()
	for _, r := range recordings {
		if r.name == name {
			return r
		}
	}
	t.Fatalf("no recording %s", name)
	return recording{}
}

// scrape maps the text of labels to the series of one scrape.
type scrape map[string]sample

type sample struct {
	labels  labels.Labels
	value   float64
	counter bool
}

func readScrape(t *testing.T, file string) scrape {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	out := scrape{}
	kind := model.MetricTypeUnknown
	for p := textparse.NewPromParser(text, labels.NewSymbolTable(), false); ; {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch entry {
		case textparse.EntryType:
			_, kind = p.Type()
		case textparse.EntrySeries:
			var ls labels.Labels
			p.Labels(&ls)
			_, _, value := p.Series()
			out[ls.String()] = sample{ls, value, kind != model.MetricTypeGauge}
		}
	}
}

// The targets of a cluster: the daemon and the policy agent of each node, and one
// kube-state-metrics.
const (
	targetDaemon = "daemon"
	targetAgent  = "agent"
	targetKube   = "kube"
)

func targetOf(metric string) string {
	switch {
	case strings.HasPrefix(metric, "kube_"):
		return targetKube
	case strings.HasPrefix(metric, "awsnodeagent_"), strings.HasPrefix(metric, "network_policy_"):
		return targetAgent
	}
	return targetDaemon
}

// targetLabels are the labels that a PodMonitor adds.
func targetLabels(target string, node int) []string {
	if target == targetKube {
		return []string{"job", "kube-state-metrics", "instance", "10.1.9.9:8080"}
	}
	container, endpoint, port := "aws-node", "metrics", 61678
	if target == targetAgent {
		container, endpoint, port = "aws-eks-nodeagent", "agentmetrics", 8162
	}
	return []string{
		"job", "kube-system/aws-node", "namespace", "kube-system", "pod", fmt.Sprintf("aws-node-%05d", node), "container", container,
		"endpoint", endpoint, "instance", fmt.Sprintf("10.1.0.%d:%d", 10+node, port), "node", fmt.Sprintf("ip-10-1-0-%d.ec2.internal", 10+node),
	}
}

// change is the effect of a fault on a series: "NAME{…} 5" sets it, "NAME{…} +5" increases it by
// 5 per minute, "NAME -" removes all series with that name, "down" takes down the daemon as a target,
// and "agent down" the policy agent.
type change struct {
	labels labels.Labels
	name   string
	value  float64
	grows  bool
	gone   bool
	ends   string // a target to take down
}

func parseChange(t *testing.T, text string) change {
	t.Helper()
	switch text {
	case "down":
		return change{ends: targetDaemon}
	case "agent down":
		return change{ends: targetAgent}
	}
	series, value, ok := cutLast(text, " ")
	if name, found := strings.CutSuffix(text, " -"); found {
		return change{name: name, gone: true}
	}
	ls, err := parser.NewParser(parser.Options{}).ParseMetric(series)
	if err != nil || !ok {
		t.Fatalf("change %q: %v", text, err)
	}
	c := change{labels: ls, name: ls.Get(labels.MetricName), grows: strings.HasPrefix(value, "+")}
	if c.value, err = strconv.ParseFloat(value, 64); err != nil {
		t.Fatalf("change %q: %v", text, err)
	}
	return c
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// bed is a recording loaded into a Prometheus.
type bed struct {
	t     *testing.T
	store *teststorage.TestStorage
	end   time.Duration
}

// load plays a recording, optionally with its fault, and with changes on the first node or on all
// nodes from the start of the fault until it ends.
func load(t *testing.T, r recording, withFault bool, changes []string, everywhere bool, lasts, end time.Duration) *bed {
	t.Helper()
	b := &bed{t, teststorage.New(t), wellFor + end}
	daemon := make([]scrape, len(r.well))
	for i, file := range r.well {
		daemon[i] = readScrape(t, file)
	}
	var fault scrape
	if withFault {
		fault = readScrape(t, r.fault)
	}
	kube, agent := readScrape(t, "testdata/kube-state-metrics.txt"), readScrape(t, "testdata/policy-agent.txt")
	var parsed []change
	for _, c := range changes {
		parsed = append(parsed, parseChange(t, c))
	}
	app := b.store.Appender(t.Context())
	for at := time.Duration(0); at <= b.end; at += scrapeEvery {
		faulty := max(0, min(at-wellFor, lasts))
		now := daemon[min(int(at/(20*time.Minute)), len(daemon)-1)]
		for node := range nodes {
			affected := changed(parsed, faulty.Minutes(), at-wellFor < lasts && (node == 0 || everywhere))
			s := now
			if fault != nil && at >= wellFor {
				s = continued(now, fault, faulty.Minutes())
			}
			b.append(app, targetDaemon, node, at, s, affected)
			b.append(app, targetAgent, node, at, agent, affected)
			if node == 0 {
				b.append(app, targetKube, 0, at, kube, affected)
			}
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	return b
}

// changed returns the changes in effect some minutes after the start of the fault.
func changed(all []change, minutes float64, lasting bool) []change {
	if minutes <= 0 || !lasting {
		return nil
	}
	out := make([]change, len(all))
	for i, c := range all {
		if c.grows {
			c.value *= minutes
		}
		out[i] = c
	}
	return out
}

// continued repeats the recorded minute of a fault, while counters keep growing.
func continued(before, fault scrape, minutes float64) scrape {
	out := scrape{}
	for key, s := range fault {
		if s.counter {
			s.value = before[key].value + (s.value-before[key].value)*(1+float64(int(minutes)))
		}
		out[key] = s
	}
	return out
}

func (b *bed) append(app storage.Appender, target string, node int, at time.Duration, s scrape, changes []change) {
	b.t.Helper()
	when := start.Add(at)
	out := map[string]sample{}
	for key, x := range s {
		if strings.HasSuffix(x.labels.Get(labels.MetricName), "_timestamp_seconds") {
			x.value = float64(when.Truncate(time.Minute).Unix()) // a recorded time advances, too
		}
		out[key] = x
	}
	up := 1.0
	for _, c := range changes {
		switch {
		case c.ends == target:
			up = 0
			clear(out)
		case c.ends != "":
		case targetOf(c.name) != target:
		case c.gone:
			for key, x := range out {
				if x.labels.Get(labels.MetricName) == c.name {
					delete(out, key)
				}
			}
		case c.grows:
			out[c.labels.String()] = sample{labels: c.labels, value: out[c.labels.String()].value + c.value}
		default:
			out[c.labels.String()] = sample{labels: c.labels, value: c.value}
		}
	}
	of := targetLabels(target, node)
	put := func(ls labels.Labels, value float64) {
		set := labels.NewBuilder(ls)
		for i := 0; i < len(of); i += 2 {
			if !ls.Has(of[i]) { // kube-state-metrics sets namespace and pod itself
				set.Set(of[i], of[i+1])
			}
		}
		if _, err := app.Append(0, set.Labels(), when.UnixMilli(), value); err != nil {
			b.t.Fatal(err)
		}
	}
	put(labels.FromStrings(labels.MetricName, "up"), up)
	for _, x := range out {
		put(x.labels, x.value)
	}
}
