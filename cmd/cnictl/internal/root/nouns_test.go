package root

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/record"
	"cnictl/daemon/fleet/watch"
	"cnictl/testenv/text/golden"
)

// rich is a node with our daemon that answers every path: the real server serves the pool, the
// documents of testdata/rich the rest.
func rich(t *testing.T, dir string, view fleettest.View) string {
	t.Helper()
	socket := strings.TrimPrefix(fleettest.Serve(t, dir, "rich-pool", view), "unix:")
	pool := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "node"})
	pool.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(pool.Transport.(*http.Transport).CloseIdleConnections)
	return fleettest.ServeHandler(t, dir, "rich", func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/v1/")
		q := r.URL.Query()
		switch {
		case name == "plan" && len(q) > 0:
			name = "plan-if"
		case name == "pod":
			name = "pod-" + q.Get("name")
		}
		body, err := os.ReadFile(filepath.Join("testdata", "rich", filepath.Base(name)+".json"))
		if err != nil && strings.HasPrefix(name, "pod-") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			body = []byte(`{"kind":"Fault","code":"not-found","message":"the daemon has given no address to that pod"}`)
		} else if err != nil {
			pool.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Date", fleettest.Now().Format(http.TimeFormat))
		// The error is ignored: the test checks what it received.
		_, _ = w.Write(body)
	})
}

// hostile answers every path of our daemon with terminal escapes.
func hostile(w http.ResponseWriter, r *http.Request) {
	const s = `"\u001b[2J\u202e\r\nfake \u0007\u009b"`
	w.Header().Set("Date", fleettest.Now().Format(http.TimeFormat))
	body := strings.ReplaceAll(map[string]string{
		"/v1/plan": `{"kind":"NodePlan","actions":[{"kind":S,"eniId":S,"subnetId":S,"reason":S,"title":S,"text":S}],
			"blocked":[{"cause":S,"message":S}],"unmet":[{"target":S,"reason":S,"title":S}]}`,
		"/v1/failures": `{"kind":"NodeFailures","items":[{"at":"2026-11-21T14:02:01Z","pod":{"namespace":"a","name":"b"},"cause":S,"title":S,"detail":S}]}`,
		"/v1/events":   `{"kind":"NodeEvents","epoch":"e","next":1,"items":[{"seq":1,"at":"2026-11-21T14:02:01Z","kind":S,"pod":{"namespace":"a","name":"b"},"eniId":S,"message":S,"cause":S}]}`,
		"/v1/pod": `{"kind":"NodePod","pod":{"namespace":"a","name":"b"},"interfaces":[{"address":"10.0.0.1","eniId":S,"subnetId":S,"hostLink":S,"problem":S,"differences":[S],
			"observed":{"link":{"name":S,"kind":S,"mac":S},"rules":[{"priority":1,"from":"","to":"","table":1}],"routes":[{"to":"10.0.0.1/32","gateway":"","link":S}],"tables":[],"neighbours":[{"address":"10.0.0.1","link":S,"mac":S,"state":S}]}}]}`,
		"/v1/logs": `{"kind":"NodeLogs","path":S,"lines":[S,"{\"level\":\"warn\",\"ts\":\"2026-11-21T14:02:01Z\",\"msg\":\"\\u001b[2J\",\"\\u202e\":\"\\u0007\"}"]}`,
	}[r.URL.Path], "S", s)
	if body == "" {
		evil(w, r)
		return
	}
	// The error is ignored: the test checks what it received.
	_, _ = w.Write([]byte(body))
}

// twoNodeRecording records two nodes over a minute, one of which is lost.
func twoNodeRecording(t *testing.T, dir string, targets map[string]string) string {
	t.Helper()
	var list []fleet.Target
	for _, name := range []string{"large", "starved"} {
		list = append(list, fleet.Target{Name: name, Address: targets[name]})
	}
	nodes, err := fleet.New(fleet.Options{Targets: list, Now: fleettest.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	path := filepath.Join(dir, "night.cnirec")
	var b bytes.Buffer
	w, err := record.NewWriter(&b, record.Header{Tool: "v1.2.3", Title: "prod-eu", StartedAt: fleettest.Now()})
	if err != nil {
		t.Fatal(err)
	}
	items := nodes.Sweep(t.Context(), fleet.Query{ENIs: true}).Items
	for step := range 3 {
		at := fleettest.Now().Add(time.Duration(step) * 30 * time.Second)
		for _, n := range items {
			n.SampledAt = &at
			latency := 0.004
			n.LatencySeconds = &latency
			summary := *n.Summary
			adds := *summary.ADDs
			adds.Total += 6 * step
			adds.Failed = new(*adds.Failed + step)
			summary.ADDs = &adds
			n.Summary = &summary
			if step == 2 && n.Metadata.Name == "starved" {
				n.State, n.Summary, n.ENIs, n.Error = document.StateUnreachable, nil, nil, &document.NodeError{Reason: introspect.ReasonTimeout, Message: "no complete answer in time"}
			}
			if err := w.WriteSample(n, at); err != nil {
				t.Fatal(err)
			}
			if err := w.WriteDocuments(documentsOf(n.Metadata.Name, at), at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// documentsOf are the documents that a node of the recording returned at a time.
func documentsOf(node string, at time.Time) watch.Detail {
	pod := introspect.PodRef{Namespace: "shop", Name: "late-1"}
	return watch.Detail{
		Node: node, Plan: &introspect.NodePlan{Blocked: []introspect.BlockedCard{{Cause: "pool-dry", Message: "no free address of 18"}}},
		Events:     &introspect.NodeEvents{Epoch: "e", Items: []introspect.Event{{Seq: uint64(at.Unix()), At: at, Kind: introspect.EventADDFailed, Pod: &pod, Cause: "pool-dry", Message: "no free address of 18"}}},
		Failures:   &introspect.NodeFailures{Items: []introspect.Failure{{At: at, Pod: pod, Cause: "pool-dry", Detail: "no free address of 18", WaitedMS: 10000, Transient: true}}},
		Logs:       &introspect.NodeLogs{Lines: []string{`{"level":"warn","ts":"` + at.Format("2006-01-02T15:04:05.000Z") + `","msg":"ADD failed","namespace":"shop","pod":"late-1"}`}},
		KubeEvents: []watch.KubeEvent{{Namespace: "shop", UID: node, At: at, Count: 2, Type: "Warning", Reason: "FailedCreatePodSandBox", Kind: "Pod", Object: "shop/late-1", Node: node, Source: "kubelet", Message: "no address"}},
	}
}

// TestGolden_Nouns: the commands for nodes, pods, addresses, events, logs, rates and
// recordings.
func TestGolden_Nouns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.targets["rich"] = rich(t, dir, fleettest.Secondary())
	w.targets["hostile"] = fleettest.ServeHandler(t, dir, "hostile", hostile)
	recording := twoNodeRecording(t, dir, w.targets)
	checkpoint := filepath.Join(dir, "ipam.json")
	damaged := filepath.Join(dir, "damaged.json")
	for path, body := range map[string]string{
		checkpoint: `{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"aws-cni","containerID":"c1","ifName":"eth0","ipv4":"10.0.3.42","allocationTimestamp":1795269600000000000,"metadata":{"k8sPodNamespace":"shop","k8sPodName":"cart-7d9f-1","interfacesCount":1}},
			{"networkName":"aws-cni","containerID":"c2","ifName":"eth0","ipv4":"10.0.3.41","allocationTimestamp":0,"metadata":{"k8sPodNamespace":"\u001b[2J","k8sPodName":"x"}}]}`,
		damaged: `{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"aws-cni","containerID":"c1","ifName":"eth0","ipv4":"10.0.3.42"},{"netwo`,
	} {
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tty := func(size string) map[string]string {
		return map[string]string{"CNICTL_FORCE_TTY": size, "NO_COLOR": "1"}
	}
	colour := map[string]string{"CNICTL_FORCE_TTY": "100x30", "TERM": "xterm"}
	const all = "@rich,large,starved,prefixes,original,down,garbage"
	tests := map[string]call{
		"node-plan":               {args: "node plan rich @rich"},
		"node-plan-if":            {args: "node plan rich --warm-ip-target 5 --max-pods 40 @rich"},
		"node-plan-if-tty-80":     {args: "node plan rich --warm-ip-target 5 --max-pods 40 @rich", env: tty("80")},
		"node-plan-if-json":       {args: "node plan rich --warm-ip-target 5 @rich -o json"},
		"node-plan-original":      {args: "node plan original @original"},
		"node-plan-down":          {args: "node plan down @down"},
		"node-plan-unknown":       {args: "node plan nope @rich"},
		"node-plan-hostile":       {args: "node plan hostile @hostile"},
		"node-plan-usage":         {args: "node plan rich --warm-ip-target=-1 @rich"},
		"node-pods":               {args: "node pods large @large"},
		"node-pods-wide":          {args: "node pods large @large -o wide"},
		"node-pods-json":          {args: "node pods original @original -o json"},
		"node-pods-down":          {args: "node pods down @down"},
		"node-raw":                {args: "node raw original --path /v1/ipamd-env-settings @original"},
		"node-raw-unknown":        {args: "node raw original --path /v1/nope @original"},
		"node-raw-text":           {args: "node raw original --path /v1/eni-configs @original"},
		"node-raw-tty":            {args: "node raw hostile --path /v1/enis @hostile", env: tty("80")},
		"node-raw-refused":        {args: "node raw rich --path /v1/pod?name=nope @rich"},
		"node-raw-usage":          {args: "node raw rich --path v1/enis @rich"},
		"node-metrics":            {args: "node metrics rich @rich"},
		"node-checkpoint":         {args: "node checkpoint large @large"},
		"node-checkpoint-json":    {args: "node checkpoint original @original -o json"},
		"local-checkpoint-file":   {args: "local checkpoint --file=" + checkpoint},
		"local-checkpoint-broken": {args: "local checkpoint --file=" + damaged},
		"local-checkpoint-none":   {args: "local checkpoint --file=/nonexistent/ipam.json"},
		"local-plan":              {args: "local plan", local: "rich"},
		"local-get":               {args: "local get /v1/ipamd-env-settings", local: "original"},
		"local-get-down":          {args: "local get /v1/enis", local: "down"},
		"enis":                    {args: "enis " + all},
		"enis-named":              {args: "enis large prefixes " + all},
		"enis-filtered":           {args: "enis --filter free=0 --sort-by -total " + all},
		"enis-csv":                {args: "enis -o csv @large,prefixes"},
		"enis-json":               {args: "enis -o json @prefixes,down"},
		"enis-name":               {args: "enis -o name @large,prefixes"},
		"enis-tty-80":             {args: "enis @large,prefixes", env: tty("80")},
		"enis-hostile":            {args: "enis @hostile"},
		"ips-find":                {args: "ips --ip 10.0.3.42 " + all},
		"ips-find-free":           {args: "ips --ip 10.0.7.35 @prefixes"},
		"ips-find-cooling":        {args: "ips --ip 10.0.7.27 @prefixes -o wide"},
		"ips-find-json":           {args: "ips --ip 10.0.3.42 @large -o json"},
		"ips-pod":                 {args: "ips --pod shop/cart-7d9f-1 " + all},
		"ips-not-found":           {args: "ips --ip 192.0.2.1 @large,prefixes"},
		"ips-not-found-partial":   {args: "ips --ip 192.0.2.1 @large,down"},
		"ips-not-found-some-form": {args: "ips --ip 192.0.2.1 @large,down -o json"},
		"ips-not-found-allowed":   {args: "ips --ip 192.0.2.1 --allow-partial @large,down"},
		"ips-not-found-nowhere":   {args: "ips --ip 192.0.2.1 @down,garbage"},
		"ips-not-found-recorded":  {args: "ips --ip 192.0.2.1 --replay {recording}"},
		"ips-pod-not-found":       {args: "ips --pod shop/nope @large"},
		"ips-state":               {args: "ips --filter state=cooling " + all},
		"ips-original":            {args: "ips @original"},
		"ips-tty-60":              {args: "ips --sort-by address @large", env: tty("60")},
		"ips-colour":              {args: "ips --filter state=cooling @large", env: colour},
		"ips-hostile":             {args: "ips @hostile"},
		"ips-usage":               {args: "ips --ip nonsense @large"},
		"ips-pod-usage":           {args: "ips --pod nonsense @large"},
		"pod":                     {args: "pod shop/cart-7d9f-1 @rich,down"},
		"pod-namespace":           {args: "pod -n shop cart-7d9f-1 @rich -o json"},
		"pod-tty-80":              {args: "pod shop/cart-7d9f-1 @rich", env: tty("80")},
		"pod-failed":              {args: "pod shop/cart-7d9f-9 @large,rich"},
		"pod-original":            {args: "pod default/web-0 @original"},
		"pod-not-found":           {args: "pod shop/nope @rich,large"},
		"pod-not-found-partial":   {args: "pod shop/nope @rich,down"},
		"pod-hostile":             {args: "pod a/b @hostile"},
		"pod-usage":               {args: "pod a/b/c @rich"},
		"pod-other-namespace":     {args: "pod cart-7d9f-1 @rich"},
		"logs":                    {args: "logs @rich"},
		"logs-several":            {args: "logs rich hostile @rich,hostile,large"},
		"logs-level":              {args: "logs --level warn @rich"},
		"logs-pod":                {args: "logs --pod shop/cart-7d9f-9 @rich"},
		"logs-none":               {args: "logs --level fatal --pod shop/cart-7d9f-9 --since 3h @rich,large"},
		"logs-none-json":          {args: "logs --level fatal -o json @rich"},
		"logs-none-unread":        {args: "logs --level fatal @rich,down"},
		"logs-json":               {args: "logs --level error -o json @rich"},
		"logs-original":           {args: "logs @original"},
		"logs-colour":             {args: "logs @rich", env: colour},
		"logs-usage":              {args: "logs --level loud @rich"},
		"logs-tail-usage":         {args: "logs --tail 0 @rich"},
		"events":                  {args: "events @rich,original"},
		"events-warnings":         {args: "events --warnings @rich -o wide"},
		"events-json":             {args: "events --since 70s @rich -o json"},
		"events-none":             {args: "events --since 1s @rich"},
		"events-none-warnings":    {args: "events --warnings --filter what=nope @rich,large --no-headers"},
		"events-none-json":        {args: "events --filter what=nope @rich -o json"},
		"events-partial":          {args: "events @rich,down"},
		"events-hostile":          {args: "events @hostile"},
		"events-tty-80":           {args: "events @rich", env: tty("80")},
		"top":                     {args: "top @large,starved,original,down"},
		"top-json":                {args: "top @large -o json"},
		"replay":                  {args: "replay {recording}"},
		"replay-at":               {args: "replay {recording} --at +30s -o wide"},
		"replay-info":             {args: "replay {recording} --info"},
		"replay-info-json":        {args: "replay {recording} --info -o json"},
		"replay-not-there":        {args: "replay /nonexistent/x.cnirec"},
		"replay-garbage":          {args: "replay " + checkpoint},
		"replay-time":             {args: "replay {recording} --at yesterday"},
		"replay-status":           {args: "status --replay {recording}"},
		"replay-nodes":            {args: "nodes --replay {recording} --at 14:02:41 -o csv"},
		"replay-node":             {args: "node large --replay {recording}"},
		"replay-enis":             {args: "enis --replay {recording}"},
		"replay-ips":              {args: "ips --ip 10.0.3.42 --replay {recording}"},
		"replay-ips-whole":        {args: "ips --ip 192.0.2.1 --replay {recording} --at +30s"},
		"replay-top":              {args: "top --replay {recording} --at +30s"},
		"replay-top-none":         {args: "top nosuch --replay {recording}"},
		"replay-watch":            {args: "nodes -w --replay {recording}"},
		"replay-plan":             {args: "node plan large --replay {recording}"},
		"replay-plan-if":          {args: "node plan large --warm-ip-target 3 --replay {recording}"},
		"replay-logs":             {args: "logs --replay {recording} --at +30s"},
		"replay-events":           {args: "events --replay {recording} --at +30s"},
		"replay-pod-waiting":      {args: "pod shop/late-1 --replay {recording} --at +30s"},
		"replay-pod":              {args: "pod shop/cart-7d9f-1 --replay {recording}"},
		"replay-pod-none":         {args: "pod shop/nosuch --replay {recording} --at +30s"},
		"record-exists":           {args: "record {recording} @large"},
		"record-usage":            {args: "record --duration=-1s x @large"},
		"tui-no-terminal":         {args: "tui @large"},
		"completion-of-paths":     {args: "__complete node raw x --path"},
		"completion-of-enis":      {args: "__complete enis --targets=a=unix:/a,b=unix:/b"},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.args = strings.ReplaceAll(c.args, "{recording}", recording)
			stdout, stderr, code := w.runNoun(t, c)
			got := fmt.Sprintf("exit %d\n--- stdout\n%s--- stderr\n%s", code, stdout, stderr)
			got = strings.ReplaceAll(got, dir, "DIR")
			checkNoControls(t, got, c.env["TERM"] == "xterm")
			if strings.Contains(c.args, "-o json") && code == 0 && !json.Valid([]byte(stdout)) {
				t.Error("not JSON")
			}
			golden.Check(t, "output.txt", []byte(placeless(got)))
		})
	}
}

// runNoun is run for commands that may wait for one tick, which has already arrived.
func (w world) runNoun(t *testing.T, c call) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	f := &cli.Factory{
		Streams: &cli.Streams{Out: &out, Err: &errOut, Size: func() (int, int) { return 80, 24 }},
		Env:     c.lookup,
		Now:     fleettest.Now, Clock: fleettest.Now, Name: "cnictl", Version: "v1.2.3",
		Tick: func(time.Duration) (<-chan time.Time, func()) {
			ticks := make(chan time.Time, 1)
			ticks <- fleettest.Now()
			return ticks, func() {}
		},
		LocalTarget: func(context.Context) (fleet.Target, bool) {
			return fleet.Target{Name: "this-host", Address: w.targets[c.local]}, c.local != ""
		},
	}
	args := strings.Fields(c.args)
	if strings.HasPrefix(c.args, "__complete") {
		args = append(args, "") // the word to complete
	}
	for i, a := range args {
		if names, ok := strings.CutPrefix(a, "@"); ok {
			args[i] = "--targets=" + w.list(strings.Split(names, ",")...)
		}
	}
	code = Main(t.Context(), f, args)
	return out.String(), errOut.String(), code
}
