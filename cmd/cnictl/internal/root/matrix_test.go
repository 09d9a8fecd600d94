package root

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/fleet/fleettest"
)

// act is text that could control a terminal: C0, ESC, C1, bidi, an invisible character.
const act = `\u001b[2J\u202e\r\nfake \u0007\u009b31m\u2066\u200b\u0000`

// hostileFleet is a node that puts terminal escapes into every string.
func hostileFleet() http.HandlerFunc {
	bodies := map[string]string{
		"/v1/summary": `{"kind":"NodeSummary","version":S,"node":S,"instanceId":S,"instanceType":S,"ipFamily":"ipv4",
			"cards":[{"mode":S,"total":9,"assigned":1,"free":8,"enis":1}],"maxPods":{"value":29,"verdict":S,"terms":[{"name":S,"value":1}]},
			"enis":[{"id":S,"subnetId":S,"total":9,"free":8}],
			"subnets":[{"id":S,"cidr":S,"available":9,"asOf":"2026-11-21T14:02:01Z"},{"id":"subnet-1","cidr":"10.0.0.0/24","available":9,"asOf":"2026-11-21T14:02:01Z"}],
			"trunk":{"enabled":true,"supported":true,"eniId":S,"branchUsed":3,"branchLimit":9},
			"ec2Calls":[{"operation":S,"calls":1,"errors":1}],"operations":[{"kind":S,"eniId":S,"reason":S}],
			"backoffs":[{"scope":S,"id":S,"until":"2030-01-01T00:00:00Z","cause":S}],
			"lastErrors":[{"at":"2026-11-21T14:02:10Z","operation":S,"cause":S,"message":S,"count":1}]}`,
		"/v1/config": `{"kind":"NodeConfig","items":[{"name":S,"declared":S,"effective":S,"source":S,"problem":S}]}`,
	}
	return func(w http.ResponseWriter, r *http.Request) {
		body, ok := bodies[r.URL.Path]
		if !ok {
			hostile(w, r)
			return
		}
		w.Header().Set("Date", fleettest.Now().Format(http.TimeFormat))
		// The error is ignored: the test checks what it received.
		_, _ = w.Write([]byte(strings.ReplaceAll(body, ":S", `:"`+act+`"`)))
	}
}

// matrix lists the commands that print text from nodes.
var matrix = []string{
	"status", "nodes", "node show evil", "node enis evil", "node ips evil", "node pods evil", "node config evil", "node plan evil", "node metrics evil",
	"node checkpoint evil", "node raw evil --path /v1/summary", "pod a/b", "pods", "enis", "ips", "logs", "events", "top", "subnets", "subnets subnet-1", "trunks", "version --nodes evil",
}

// TestMatrix_Hostile runs every command in every form on nodes that answer with terminal
// escapes, with garbage, and not at all: nothing raw is printed, JSON output is valid, and the
// exit code is a documented one.
func TestMatrix_Hostile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.targets["evil"] = fleettest.ServeHandler(t, dir, "evil2", hostileFleet())
	template := filepath.Join(dir, "template")
	if err := os.WriteFile(template, []byte("{{.}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "path")
	if err := os.WriteFile(path, []byte("{@}"), 0o600); err != nil {
		t.Fatal(err)
	}
	forms := []string{
		"table", "wide", "csv", "name", "json", "yaml", "jsonpath={@}", "jsonpath={..message}", "jsonpath-as-json={@}", "jsonpath-file=" + path,
		"go-template={{.}}", "go-template-file=" + template, "custom-columns=ALL:.metadata,ID:.id,NODE:.node",
	}
	for _, command := range matrix {
		for _, form := range forms {
			t.Run(command+"/"+form, func(t *testing.T) {
				t.Parallel()
				stdout, stderr, code := w.runNoun(t, call{args: command + " -o " + form + " @evil,garbage,down"})
				checkNoControls(t, strings.ReplaceAll(stdout, "\t", " ")+stderr, false)
				if !slices.Contains([]int{0, 2, 4, 5, 6}, code) {
					t.Errorf("exit %d\n%s", code, stderr)
				}
				if form == "json" && stdout != "" && !json.Valid([]byte(stdout)) {
					t.Errorf("not JSON:\n%.300s", stdout)
				}
			})
		}
	}
}
