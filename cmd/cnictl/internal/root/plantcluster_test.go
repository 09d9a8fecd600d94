package root_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"cnictl/cmd/cnictl/internal/root"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/testenv/kube/fleetsim"
)

// identifying are the texts of Kubernetes objects without which nothing is found or read.
var identifying = regexp.MustCompile(`(^|\.)(kind|apiVersion|resourceVersion|selfLink|nodeName)$|metadata\.(name|namespace|uid)$|` +
	`[tT]ime(stamp)?$|(At|containerPort|hostIP)$|resources|capacity|allocatable`)

// selecting are the texts by which nodes are reached, and events chosen.
var selecting = regexp.MustCompile(`involvedObject\.|^(items\[\]\.)?reason$|(^|\.)(host|component|name|phase|podIP|ip)$|` +
	`conditions\[\]\.(type|status)$|addresses\[\]`)

// inWatch precedes what is planted in the events of a watch.
const inWatch = "WATCHED"

// clusterRuns are command lines that print what Kubernetes knows; POD is a pod with a branch ENI.
var clusterRuns = []string{
	"status", "nodes -o wide", "nodes -o csv", "trunks -o wide", "trunks -o json", "events -o wide", "pod POD", "pod POD -o json",
	"version", "subnets -o wide", "logs -o wide", "doctor --exit-zero --once", "doctor pod POD --exit-zero --once", "migrate check",
}

// watchRuns run until they have printed what a watch brought.
var watchRuns = []string{"nodes --watch -o wide", "trunks --watch -o json", "events --watch -o wide"}

// silentInCluster are those that print no text that an object of the API chooses.
var silentInCluster = map[string]string{
	"doctor pod POD --exit-zero --once": "it finds nothing; the other doctor quotes such texts",
}

// colours are the sequences of a coloured output. None of fleettest.Hostile is left without them:
// it also has other control characters.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// TestPlanted_Cluster: whatever an object of the API says, in a list or a watch, no command prints
// it raw, with colours or without.
func TestPlanted_Cluster(t *testing.T) {
	t.Parallel()
	traits := map[string][]fleetsim.Trait{
		fleetsim.NodeName(0): {fleetsim.Flapping}, fleetsim.NodeName(1): {fleetsim.FullSubnet},
		fleetsim.NodeName(2): {fleetsim.Upstream}, fleetsim.NodeName(4): {fleetsim.NotReady},
	}
	still := fleetsim.New(t, fleetsim.Options{Nodes: 5, Seed: 23, Churn: -1, Named: traits})
	moving := fleetsim.New(t, fleetsim.Options{Nodes: 5, Seed: 23, Churn: time.Second, Named: traits})
	pod := branchPod(t, still)
	var shown fleettest.Shown
	t.Run("rounds", func(t *testing.T) { // ends after all of them
		for name, round := range map[string]clusterRound{
			"all": {still, clusterRuns, identifying.MatchString, nil}, "found": {still, clusterRuns, selectingToo, nil},
			"coloured": {still, clusterRuns, selectingToo, []string{"--color=always"}},
			"watched":  {moving, watchRuns, selectingToo, nil}, "watched, coloured": {moving, watchRuns, selectingToo, []string{"--color=always"}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				round.run(t, pod, &shown)
			})
		}
	})
	shown.Check(t, slices.Concat(clusterRuns, watchRuns), silentInCluster)
}

// clusterRound is one way to plant texts.
type clusterRound struct {
	sim    *fleetsim.Sim
	lines  []string               // to run
	spared func(path string) bool // texts that stay as they are
	flags  []string
}

func selectingToo(path string) bool {
	return identifying.MatchString(path) || selecting.MatchString(path)
}

// ran runs a command line on a cluster, and passes each line that it prints to see.
func ran(ctx context.Context, t *testing.T, front *front, see func(string), line string, flags ...string) (stdout, stderr string) {
	t.Helper()
	out, errOut := &lineWriter{line: see}, &lineWriter{}
	args := slices.Concat(strings.Fields(line), []string{"--kubeconfig=" + front.kubeconfig, "--node-timeout=1m"}, flags)
	root.Main(ctx, factory(t, out, errOut), args)
	return out.String(), errOut.String()
}

// branchPod returns the name of a pod with a branch ENI.
func branchPod(t *testing.T, sim *fleetsim.Sim) string {
	t.Helper()
	ctx := t.Context()
	stdout, stderr := ran(ctx, t, before(t, sim), nil, "trunks -o json")
	var list document.TrunkList
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	for _, trunk := range list.Items {
		for _, p := range trunk.Pods {
			if !p.Waiting {
				return p.Namespace + "/" + p.Name
			}
		}
	}
	t.Fatalf("no pod with a branch ENI\n%s%s", stdout, stderr)
	return ""
}

// run runs the commands while all texts but the spared ones are hostile.
func (c clusterRound) run(t *testing.T, pod string, shown *fleettest.Shown) {
	t.Helper()
	front := before(t, c.sim)
	var changed atomic.Int64
	front.change = func(r *http.Request, body []byte) []byte {
		text := fleettest.Hostile
		if strings.HasSuffix(r.URL.Path, "/log") {
			return append(body, "a line "+text...)
		}
		if !json.Valid(body) {
			return body
		}
		if r.URL.Query().Get("watch") != "" {
			text = inWatch + text
		}
		return fleettest.JSON(fleettest.Plant(fleettest.Tree(t, json.RawMessage(body)), text, func(path string) bool {
			if path == "type" || c.spared(strings.TrimPrefix(path, "object.")) { // a watch's kind of event
				return false
			}
			changed.Add(1)
			return true
		}))
	}
	for _, args := range c.lines {
		ctx, cancel := context.WithCancel(t.Context())
		watches := strings.Contains(args, "--watch")
		stdout, stderr := ran(ctx, t, front, func(line string) {
			if watches && strings.Contains(line, inWatch) {
				cancel()
			}
		}, strings.ReplaceAll(args, "POD", pod), c.flags...)
		if !watches || strings.Contains(stdout, inWatch) {
			shown.Add(args, stdout)
		}
		cancel()
		for _, r := range colours.ReplaceAllString(stdout, "") + colours.ReplaceAllString(stderr, "") {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s prints %q:\n%.2000q", args, r, stdout+stderr)
				break
			}
		}
	}
	if changed.Load() < 100 {
		t.Errorf("only %d texts were hostile", changed.Load())
	}
}
