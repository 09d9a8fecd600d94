package root

import (
	"strings"
	"testing"
)

// TestMistakes_SayWhatToTry: a mistake on the command line exits with 2 and prints a line that
// helps with that mistake.
func TestMistakes_SayWhatToTry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recording := twoNodeRecording(t, t.TempDir(), w.targets)
	for args, want := range map[string][2]string{
		"nodes --columns node,nope @large": {`no column "nope"`, "cnictl nodes --columns"},
		"top --sort-by nope @large":        {"invalid --sort-by", "cnictl top --columns"},
		"nodes -o nope @large":             {"unable to match a printer", "cnictl help output"},
		"nodes -o jsonpath @large":         {"no template given", "cnictl help output"},
		"status -w --interval 1s @large":   {"--interval=1s: must be at least 2s", "--interval 2s"},
		"nodes --theme pink @large":        {"deuteranopia-safe", "cnictl options"},
		"logs --tail 0 @large":             {"--tail=0: must be 1 to 1000", "cnictl logs --help"},
		"logs --pod a/b/c @large":          {"--pod=a/b/c: must be NAME or NAMESPACE/NAME", "cnictl logs --help"},
		"tui":                              {`tui needs a terminal; use "cnictl status -o json" instead`, "cnictl tui --plain"},
		"--plain":                          {"unknown flag: --plain", "cnictl tui --plain"},
		"--ascii":                          {"unknown flag: --ascii", "cnictl tui --ascii"},
		"--mice":                           {"unknown flag: --mice", "cnictl --help"},
		"stauts":                           {"did you mean status?", "cnictl status"},
		"nods":                             {"did you mean node or nodes or pods?", "cnictl --help"},
		"node enix n @large":               {"unknown command \"enix\" for cnictl node; did you mean enis?", "cnictl node enis"},
		"help node shw":                    {"did you mean show?", "cnictl node show"},
		"nodes -l !,! @large":              {"invalid --selector", "cnictl nodes -l kubernetes.io/arch=arm64"},
		"nodes --at +5m @large":            {"--at selects a time in a recording", "cnictl nodes --replay FILE --at +5m"},
		"nodes --replay " + recording + " --at yesterday":            {"--at=yesterday is not a time", "cnictl replay " + recording + " --info"},
		"nodes --replay " + recording + " --at 2020-01-01T00:00:00Z": {"covers 2026-11-21T14:02:11Z to 2026-11-21T14:03:11Z", "cnictl replay " + recording + " --info"},
		"replay " + recording + " --at +2m":                          {"covers 2026-11-21T14:02:11Z to 2026-11-21T14:03:11Z", "cnictl replay " + recording + " --info"},
		"status --replay " + recording + " --at -2m":                 {"--at=-2m is outside the recording", "cnictl replay " + recording + " --info"},
	} {
		stdout, stderr, code := w.runNoun(t, call{args: args})
		if code != 2 || stdout != "" || !strings.Contains(stderr, want[0]) || !strings.Contains(stderr, "\n  try: "+want[1]) {
			t.Errorf("%s: exit %d, want 2 with %q and %q\n%s%s", args, code, want[0], want[1], stdout, stderr)
		}
	}
	// The minute in which the recording began and both its ends are within it.
	for _, at := range []string{"14:02", "+0s", "+1m", "-0s", "2026-11-21T14:03:11Z"} {
		if _, stderr, code := w.runNoun(t, call{args: "nodes -o name --allow-partial --replay " + recording + " --at " + at}); code != 0 {
			t.Errorf("--at %s: exit %d\n%s", at, code, stderr)
		}
	}
}

// TestMistakes_NotServed: what a node does not serve is missing, and the error lists what
// it does serve.
func TestMistakes_NotServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for args, want := range map[string]string{
		"node plan original @original": "cnictl node show original shows everything it reports",
	} {
		if _, stderr, code := w.runNoun(t, call{args: args}); code != 5 || !strings.Contains(stderr, "\n  try: "+want) {
			t.Errorf("%s: exit %d\n%s", args, code, stderr)
		}
	}
}
