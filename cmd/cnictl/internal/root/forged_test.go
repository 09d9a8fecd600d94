package root

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// forged are the sequences that cnictl itself colours with: text with them must not be coloured.
const forged = "\x1b[31mFORGED\x1b[1mFORGED\x1b[2mFORGED\x1b[1;31mFORGED\x1b[mFORGED"

// listRuns are the commands that list rows, and the pages of one object.
var listRuns = []string{
	"status", "nodes", "top", "pods", "enis", "ips", "subnets", "trunks", "events", "logs",
	"node show large", "node enis large", "node ips large", "node pods large", "node plan large",
	"pod shop/cart-7d9f-1", "pod shop/branch", "doctor --exit-zero --once",
}

// TestForged: a text in the colours of the command line, from a recording, is shown as it is, in
// every form that goes to a terminal.
func TestForged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := filledRecording(t, w)
	_, others := addressesOf(lines)
	file := filepath.Join(t.TempDir(), "forged.cnirec")
	planted(t, file, lines, forged, unnamed(others))
	painted := regexp.MustCompile(`\x1b\[[0-9;]*mFORGED`)
	shown := 0
	for _, run := range listRuns {
		for _, form := range []string{"", " -o wide", " -o csv", " -o json", " -o yaml"} {
			args := run + form + " --replay " + file + " --at +30s"
			stdout, stderr, _ := w.runNoun(t, call{args: args, env: map[string]string{"CNICTL_FORCE_TTY": "200x50", "TERM": "xterm"}})
			all := stdout + stderr
			if found := painted.FindString(all); found != "" {
				t.Errorf("%s prints %q", args, found)
			}
			checkNoControls(t, all, true)
			if strings.Contains(all, "FORGED") {
				shown++
			}
		}
	}
	if shown < len(listRuns) {
		t.Errorf("only %d outputs show the text", shown)
	}
}
