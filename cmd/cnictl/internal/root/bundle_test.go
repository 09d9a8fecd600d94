package root

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cnictl/daemon/fleet/fleettest"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/bundle"
)

// TestBundle writes an archive of nodes that only its owner may read, and reads it back.
func TestBundle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.targets["rich"] = rich(t, t.TempDir(), fleettest.Secondary())
	name := filepath.Join(t.TempDir(), "support.tar.gz")
	stdout, stderr, code := w.runNoun(t, call{args: "bundle rich down --once @rich,down,large -f " + name})
	if code != 0 || !strings.HasPrefix(stdout, name+": 2 nodes, ") || !strings.Contains(stdout, "\nnot read, not available from here") || !strings.HasSuffix(stdout, "\nexamine it: cnictl doctor --bundle "+name+"\n") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ev, notes, err := bundle.Read(file, name)
	if err != nil || len(notes) > 0 || len(ev.Nodes) != 2 || ev.Mode != evidence.ModeBundle {
		t.Fatalf("read %+v, %q, %v", ev, notes, err)
	}
	for _, n := range ev.Nodes {
		if read := n.First.ENIs.OK(); read != (n.Name == "rich") || n.Second != nil {
			t.Errorf("%s: interfaces read %v, a second reading %v", n.Name, read, n.Second != nil)
		}
	}

	if stdout, stderr, code = w.runNoun(t, call{args: "bundle rich --once @rich -f " + name}); code != 2 || !strings.Contains(stderr, name+" already exists") {
		t.Errorf("a file was replaced: exit %d\n%s%s", code, stdout, stderr)
	}
	for args, want := range map[string]string{
		"--max-size 0 -f -":                           "want a size such as",
		"--max-size 20XB -f -":                        "want a size such as",
		"-o csv -f -":                                 "unable to match a printer",
		"--once -f " + filepath.Dir(name):             "already exists",
		"--once -f " + name + "/x":                    "cannot write the bundle",
		"--once --max-size 100 -f " + name + ".small": "choose fewer nodes",
	} {
		if stdout, stderr, code = w.runNoun(t, call{args: "bundle rich @rich " + args}); code == 0 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, want %q\n%s%s", args, code, want, stdout, stderr)
		}
	}
	if _, err := os.Stat(name + ".small"); err == nil {
		t.Error("a file is left of what failed")
	}

	stdout, stderr, code = w.runNoun(t, call{args: "bundle rich --once --anonymize -o json @rich -f " + name + ".2"})
	if code != 0 || !strings.Contains(stdout, `"anonymized": true`) || strings.Contains(stdout, "rich\"") {
		t.Errorf("anonymized: exit %d\n%s%s", code, stdout, stderr)
	}
	stdout, stderr, code = w.runNoun(t, call{args: "bundle rich --once @rich -f -"})
	if _, _, err := bundle.Read(strings.NewReader(stdout), ""); code != 0 || err != nil {
		t.Errorf("standard output: exit %d, %v\n%s", code, err, stderr)
	}
}
