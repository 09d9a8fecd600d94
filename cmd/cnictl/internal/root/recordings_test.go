package root

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// recordedCalls has a run of every command on a recording; "" if it reads no nodes.
var recordedCalls = map[string]string{
	"status": "status", "nodes": "nodes", "node": "node large", "node show": "node show large", "node enis": "node enis large", "node ips": "node ips large",
	"node pods": "node pods large", "node checkpoint": "node checkpoint large", "pod": "pod shop/cart-7d9f-1", "pods": "pods", "enis": "enis", "ips": "ips", "subnets": "subnets", "subnets map": "subnets map subnet-0123456789abcdef0",
	"trunks": "trunks", "top": "top", "version": "version", "doctor": "doctor --exit-zero", "doctor pod": "doctor pod shop/cart-7d9f-1 --exit-zero", "doctor list": "", "doctor explain": "",

	"node config": "node config large", "node plan": "node plan large", "node metrics": "node metrics large", "node raw": "node raw large",
	"events": "events", "logs": "logs", "record": "record FILE", "bundle": "bundle -f FILE", "replay": "replay FILE", "tui": "tui", "": "--no-headers",
	"local": "local", "local status": "local status", "local show": "local show", "local enis": "local enis", "local ips": "local ips", "local pods": "local pods", "local config": "local config",
	"local plan": "local plan", "local metrics": "local metrics", "local checkpoint": "local checkpoint", "local raw": "local raw", "local get": "local get /v1/enis",
	"local dial": "local dial", "local doctor": "local doctor", "migrate": "", "migrate values": "", "migrate check": "", // undecided: a recording has nothing about the installation
}

// readsNoNodes lists the commands for which --replay is a setting like any other.
var readsNoNodes = []string{"config", "completion", "help", "options", "explain", "capacity"}

// TestReplay_EveryCommand: a command either reads a recording, or says before any request that
// it does not and which command does. Help and docs list those that do.
func TestReplay_EveryCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recording := twoNodeRecording(t, t.TempDir(), w.targets)
	everyCommand(tree("cnictl"), func(cmd *cobra.Command) {
		name := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), "cnictl"))
		first, _, _ := strings.Cut(name, " ")
		if !cmd.Runnable() || cmd.IsAdditionalHelpTopicCommand() || name != "" && strings.Contains(strings.Join(readsNoNodes, " "), first) {
			return
		}
		args, known := recordedCalls[name]
		if !known {
			t.Errorf("%q has no run on a recording here", name)
			return
		}
		if args == "" {
			return
		}
		stdout, stderr, code := w.runNoun(t, call{args: strings.ReplaceAll(args, "FILE", t.TempDir()+"/none") + " --replay " + recording + " --at +30s"})
		if name == "" || name == "tui" { // TestTerminal_Recording has them on a terminal
			_, try, _ := strings.Cut(stderr, "  try: cnictl ")
			if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "cnictl: tui needs a terminal") {
				t.Errorf("%q off a terminal: exit %d\n%s%s", name, code, stdout, stderr)
			}
			if out, errOut, code := w.runNoun(t, call{args: strings.TrimSpace(try) + " --at +30s"}); code != 0 || out == "" {
				t.Errorf("%q: %s does not help: exit %d\n%s", name, try, code, errOut)
			}
			return
		}
		switch {
		case code == 0 && stdout != "" && (stderr == "" || name == "pods"): // which says that the recording has no pods of Kubernetes
			noun := strings.TrimSuffix(strings.TrimSuffix(name, " pod"), " map") // of logs, and of subnets
			if verb, of := strings.CutPrefix(name, "node "); !listedReplayed(t, w, noun) && !(of && listedReplayed(t, w, verb)) {
				t.Errorf("%s reads a recording, and the help of replay does not list it", name)
			}
		case code == 2 && stdout == "" && strings.Contains(stderr, " does not read a recording\n  why: ") && strings.Contains(stderr, " "+recording+"\n"):
			try := stderr[strings.Index(stderr, "  try: cnictl ")+len("  try: cnictl "):]
			if out, errOut, code := w.runNoun(t, call{args: strings.TrimSpace(try) + " --at +30s"}); code != 0 || out == "" {
				t.Errorf("%s: %s does not help: exit %d\n%s", args, try, code, errOut)
			}
		default:
			t.Errorf("%s: exit %d\n%s%s", args, code, stdout, stderr)
		}
	})
}

// listedReplayed reports whether the help of replay names a command.
func listedReplayed(t *testing.T, w world, name string) bool {
	t.Helper()
	help, _, _ := w.runNoun(t, call{args: "replay --help"})
	_, list, ok := strings.Cut(help, "read a recording with --replay FILE:")
	list, _, _ = strings.Cut(list, ".\n")
	if !ok {
		t.Fatalf("help of replay lists no commands:\n%s", help)
	}
	for _, word := range strings.FieldsFunc(list, func(r rune) bool { return r < 'a' || r > 'z' }) {
		if word == name {
			return true
		}
	}
	return false
}
