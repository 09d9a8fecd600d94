package root

import (
	"path/filepath"
	"strings"
	"testing"

	"cnictl/daemon/fleet/fleettest"
)

// TestForms_Refused: an output form that a command lacks is refused in kubectl's words,
// before anything is read, and does not fall back to a table.
func TestForms_Refused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	recording := twoNodeRecording(t, dir, w.targets)
	const node = " large @large"
	for _, x := range []struct {
		args  string
		forms string
	}{
		{"status @large", "csv name custom-columns=node"}, {"version @large", "csv name"}, {"pod a/b @large", "csv"}, {"logs @large", "csv name"}, {"events @large", "name"},
		{"node show" + node, "csv custom-columns=node"}, {"node plan" + node, "csv"}, {"replay " + recording + " --info", "csv name"},
		{"record " + filepath.Join(dir, "new") + " --duration 2s @large", "csv name"},
	} {
		for form := range strings.FieldsSeq(x.forms) {
			stdout, stderr, code := w.runNoun(t, call{args: x.args + " -o " + form})
			want := `unable to match a printer suitable for the output format "` + form + `", allowed formats are: `
			_, allowed, _ := strings.Cut(stderr, "allowed formats are: ")
			allowed, _, _ = strings.Cut(allowed, "\n")
			if code != 2 || stdout != "" || !strings.Contains(stderr, want) || !strings.Contains(allowed, "json") || strings.Contains(","+allowed+",", ","+form+",") {
				t.Errorf("%s -o %s: exit %d\n%s%s", x.args, form, code, stdout, stderr)
			}
		}
	}
}

// TestForms_NamesOfPods: -o name prints pods with their kind, as kubectl does.
func TestForms_NamesOfPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.targets["rich"] = rich(t, t.TempDir(), fleettest.Secondary())
	for args, want := range map[string]string{
		"pod shop/cart-7d9f-1 @rich": "pod.cnictl/shop/cart-7d9f-1\n",
		"node pods rich @rich":       "pod.cnictl/shop/cart-7d9f-1\n",
	} {
		if stdout, stderr, code := w.runNoun(t, call{args: args + " -o name"}); !strings.Contains(stdout, want) || code != 0 && code != 4 {
			t.Errorf("%s: exit %d, %q, want %q\n%s", args, code, stdout, want, stderr)
		}
	}
}
