package root

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
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
	"cnictl/daemon/fleet/record"
	"cnictl/daemon/fleet/watch"
)

// filledRecording returns the lines of a recording of a node in which every member of every
// document has a value.
func filledRecording(t testing.TB, w world) []any {
	t.Helper()
	nodes, err := fleet.New(fleet.Options{Targets: []fleet.Target{{Name: "large", Address: w.targets["large"]}}, Now: fleettest.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	sample := nodes.Sweep(t.Context(), fleet.Query{ENIs: true}).Items[0]
	failure := sample.Error
	fleettest.Fill(&sample)
	sample.Error = failure
	lost := sample
	lost.Metadata.Name, lost.State = "lost", document.StateUnreachable
	lost.Error = &document.NodeError{Node: "lost", Reason: introspect.ReasonTimeout, Message: "no answer"}
	lost.Summary, lost.ENIs = nil, nil
	d := documentsOf("large", fleettest.Now())
	d.Logs.Lines = append(d.Logs.Lines, "plain text")
	d.Pods = []watch.Pod{
		{PodRef: d.Failures.Items[0].Pod, Phase: "Pending", Reason: "ContainerCreating"},
		{PodRef: introspect.PodRef{Namespace: "shop", Name: "branch"}, Phase: "Running", Wants: true, IPs: []string{"10.0.0.8"},
			PodENI: `[{"eniId":"eni-1","ifAddress":"02:00:00:00:00:01","privateIp":"10.0.0.8","vlanId":1,
				"subnetCidr":"10.0.0.0/24","subnetV6Cidr":"","associationID":"trunk-1"}]`},
	}
	d.Pod = &introspect.NodePod{Pod: introspect.PodRef{Namespace: "shop", Name: "cart-7d9f-1"}}
	for _, doc := range []any{d.Plan, d.Events, d.Failures, d.Logs, d.Pod, &d.KubeEvents, &d.Pods} {
		fleettest.Fill(doc)
	}
	var out bytes.Buffer
	rec, err := record.NewWriter(&out, record.Header{Tool: "v1.2.3", Title: "prod-eu", StartedAt: fleettest.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for step := range 2 {
		at := fleettest.Now().Add(time.Duration(step) * 30 * time.Second)
		for _, n := range []document.NodeIPAM{sample, lost} {
			n.SampledAt = &at
			if err := rec.WriteSample(n, at); err != nil {
				t.Fatal(err)
			}
		}
		if err := rec.WriteDocuments(d, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	var lines []any
	for line := range strings.Lines(string(text)) {
		lines = append(lines, fleettest.Tree(t, json.RawMessage(line)))
	}
	return lines
}

// planted writes a recording with text in its chosen texts.
func planted(t testing.TB, file string, lines []any, text string, chosen func(string) bool) {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	for _, line := range lines {
		// The error is ignored: the buffer takes everything.
		_, _ = zip.Write(append(fleettest.JSON(fleettest.Plant(line, text, chosen)), '\n'))
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// recordedRuns are command lines that print what a recording has.
var recordedRuns = []string{
	"status", "nodes -o wide", "node show large", "node enis large -o wide", "node ips large -o wide",
	"node pods large -o wide", "node plan large", "node checkpoint large",
	"pod shop/cart-7d9f-1", "pod shop/late-1", "pod shop/branch", "enis -o wide", "ips -o csv", "subnets -o wide",
	"trunks -o wide", "events -o wide", "logs", "top -o wide",
	"version", "doctor --exit-zero --once", "doctor --exit-zero --once -o markdown", "pod shop/cart-7d9f-1 -o json",
	"pod shop/cart-7d9f-1 -o yaml", "nodes -o json", "nodes -o yaml",
}

// TestPlanted_Recording: whichever texts of a recording are hostile, no command prints them
// raw. Addresses are tried one by one, as a reader refuses the whole entry.
func TestPlanted_Recording(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	lines := filledRecording(t, w)
	addresses, others := addressesOf(lines)
	rounds := map[string]func(string) bool{}
	for _, path := range addresses {
		rounds[path] = func(p string) bool { return p == path }
	}
	for i := range uint64(6) {
		rounds[fmt.Sprint(i)] = someOf(others, i)
	}
	rounds["unnamed"] = unnamed(others)
	var shown fleettest.Shown
	t.Run("rounds", func(t *testing.T) { // ends after all of them
		for name, chosen := range rounds {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(dir, strings.NewReplacer("[]", "", ".", "-").Replace(name)+".cnirec")
				planted(t, file, lines, fleettest.Hostile, chosen)
				for _, args := range recordedRuns {
					shown.Add(args, w.printsNothingRaw(t, args+" --replay "+file+" --at +30s"))
				}
			})
		}
	})
	shown.Check(t, recordedRuns, nil)
}

// finding are the texts without which a node, a pod or an entry is not found or not read.
var finding = regexp.MustCompile(`(^|\.)(node|source|state|via|object|AddressFamily|IP|Mask)$|[nN]ame(space)?$|error\.reason$|[tT]ime$`)

// unnamed chooses the paths by which nothing is found.
func unnamed(paths []string) func(string) bool {
	return func(path string) bool { return slices.Contains(paths, path) && !finding.MatchString(path) }
}

// printsNothingRaw runs a command, checks that it prints no control characters, and returns its
// standard output.
func (w world) printsNothingRaw(t *testing.T, args string) string {
	t.Helper()
	stdout, stderr, _ := w.runNoun(t, call{args: args})
	checkNoControls(t, stdout+stderr, false)
	if t.Failed() {
		t.Fatalf("%s:\n%.3000q", args, stdout+stderr)
	}
	return stdout
}

// addressesOf separates the texts that are addresses, or that a reader needs to recognise a
// document, from all others.
func addressesOf(lines []any) (addresses, others []string) {
	needed := regexp.MustCompile(`(^|\.)(kind|apiVersion|format|at|ts)$|(At|asOf|[sS]ince|until)$|cidrs?(\[\])?$|` +
		`(rules|routes|tables)\[\]\.(from|to)$`)
	found := map[string]bool{}
	for _, line := range lines {
		for _, path := range fleettest.Texts(line) {
			if address := strings.HasSuffix(path, "ddress") || strings.HasSuffix(path, "gateway"); address || !needed.MatchString(path) {
				found[path] = address
			}
		}
	}
	for path, address := range found {
		if address {
			addresses = append(addresses, path)
		} else {
			others = append(others, path)
		}
	}
	slices.Sort(others)
	return addresses, others
}

// someOf chooses half of the paths, all of them with seed 0.
func someOf(paths []string, seed uint64) func(string) bool {
	random := rand.New(rand.NewPCG(seed, 1))
	chosen := map[string]bool{}
	for _, path := range paths {
		chosen[path] = random.IntN(2) == 0 || seed == 0
	}
	return func(path string) bool { return chosen[path] }
}

// nodeRuns are command lines that print what a node answers.
var nodeRuns = []string{
	"status", "nodes -o wide", "node show NODE", "node enis NODE -o wide", "node ips NODE -o wide",
	"node pods NODE -o wide", "node plan NODE", "node plan NODE --warm-ip-target 3",
	"node config NODE", "pod shop/cart-7d9f-1", "pod shop/cart-7d9f-1 -o json", "pod shop/cart-7d9f-1 -o yaml",
	"enis -o wide", "ips -o wide", "ips -o csv", "subnets -o wide", "trunks -o wide",
	"events -o wide --daemon", "logs", "top -o wide", "version --nodes NODE", "doctor NODE --exit-zero --once",
}

// TestPlanted_Node is TestPlanted_Recording for the answers of a node.
func TestPlanted_Node(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	docs := filledAnswers(t, rich(t, dir, fleettest.Secondary()))
	var trees []any
	for _, tree := range docs {
		trees = append(trees, tree)
	}
	addresses, others := addressesOf(trees)
	rounds := map[string]func(string) bool{"addresses": func(path string) bool { return slices.Contains(addresses, path) }}
	for i := range uint64(4) {
		rounds[fmt.Sprint("others-", i)] = someOf(others, i)
	}
	rounds["unnamed"] = unnamed(others)
	for name, chosen := range rounds {
		answers := map[string][]byte{}
		for path, tree := range docs {
			answers[path] = fleettest.JSON(fleettest.Plant(tree, fleettest.Hostile, chosen))
		}
		w.targets[name] = fleettest.ServeHandler(t, dir, name, func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Date", fleettest.Now().Format(http.TimeFormat))
			body, ok := answers[r.URL.Path]
			if !ok {
				rw.WriteHeader(http.StatusNotFound)
			}
			_, _ = rw.Write(body) // the test checks what it received
		})
	}
	var shown fleettest.Shown
	t.Run("rounds", func(t *testing.T) { // ends after all of them
		for name := range rounds {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for _, args := range nodeRuns {
					shown.Add(args, w.printsNothingRaw(t, strings.ReplaceAll(args, "NODE", name)+" @"+name))
				}
				for path := range docs { // off a terminal, raw prints what it got
					stdout, stderr, _ := w.runNoun(t, call{args: "node raw " + name + " --path " + path + " @" + name, env: size("200")})
					checkNoControls(t, stdout+stderr, false)
				}
			})
		}
	})
	shown.Check(t, nodeRuns, nil)
}

// filledAnswers returns a node's documents by path, with a value in every member.
func filledAnswers(t *testing.T, address string) map[string]any {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(address, "unix:"))
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	out := map[string]any{}
	for path, doc := range map[string]any{
		introspect.PathSummary: new(introspect.Summary), introspect.PathConfig: new(introspect.NodeConfig),
		introspect.PathPlan: new(introspect.NodePlan), introspect.PathFailures: new(introspect.NodeFailures),
		introspect.PathEvents: new(introspect.NodeEvents), introspect.PathLogs: new(introspect.NodeLogs),
		introspect.PathPod + "?namespace=shop&name=cart-7d9f-1": new(introspect.NodePod), introspect.PathENIs: new(any),
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://node"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(json.NewDecoder(answer.Body).Decode(doc), answer.Body.Close())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if path != introspect.PathENIs {
			fleettest.Fill(doc)
		}
		path, _, _ = strings.Cut(path, "?")
		out[path] = fleettest.Tree(t, doc)
	}
	return out
}

// FuzzPlanted plants any text at random places of a recording, and runs one command on it.
func FuzzPlanted(f *testing.F) {
	f.Add(fleettest.Hostile, uint64(0), uint(8))
	f.Add("\x1b[31m", uint64(1), uint(0))
	f.Add("\u0080\u009f\u2028\u202e", uint64(2), uint(15))
	f.Add("\xff\xc2", uint64(3), uint(18))
	w := world{targets: map[string]string{"large": fleettest.Serve(f, f.TempDir(), "large", fleettest.Secondary())}}
	lines := filledRecording(f, w)
	addresses, others := addressesOf(lines)
	f.Fuzz(func(t *testing.T, text string, seed uint64, command uint) {
		chosen := someOf(others, seed)
		if seed%4 == 1 {
			chosen = someOf(addresses, seed)
		}
		file := filepath.Join(t.TempDir(), "x.cnirec")
		planted(t, file, lines, text, chosen)
		w.printsNothingRaw(t, recordedRuns[command%uint(len(recordedRuns))]+" --replay "+file+" --at +30s")
	})
}
