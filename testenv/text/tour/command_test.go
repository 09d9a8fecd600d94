package tour

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCommands_Lines(t *testing.T) {
	t.Parallel()
	page := "cnictl prose\n```\n$ cnictl doctor --replay x\n1 cause found\n$ A=1 sudo make build && export PATH=x\nNODE  FREE\n```\n" +
		"- in a list\n  ```\n  kubectl get nodes   # all of them\n  ip rule; skopeo \\\n    copy\n\n  ```\nmake prose\n" +
		"```text\nno command\n```\n<!-- made:x -->\n```\n$ cnictl made\n```\n<!-- /made -->\n"
	want := []string{"cnictl doctor --replay x", "A=1 sudo make build", "export PATH=x", "kubectl get nodes", "ip rule", "skopeo     copy"}
	if got := Commands(page); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Program(want[1]); got != "make" {
		t.Errorf("%q", got)
	}
	if got, want := Mentions("Run `cnictl node NODE`, not `cnictl`: `kubectl cni`."), []string{"cnictl node NODE"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	page = "```\nmake x\n```\n```yaml\na: 1\nb: 2\n```\n\n```yaml\nc: 3\n```\n"
	if got, want := Files(page, "yaml"), []string{"a: 1\nb: 2\n", "c: 3\n"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCommands: a test runs each command on the pages. TestDocs_Commands of
// cmd/cnictl/internal/root runs those of cnictl, and TestCommands_AWS checks those of aws. Make
// targets must exist. All others must be in the source of a test.
func TestCommands(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(Path(t, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	err = filepath.WalkDir(Path(t, "."), func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "dist"}, e.Name()):
			return fs.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(file)
		sources.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	excepted, used := slices.Concat(slices.Collect(maps.Values(unproved))...), map[string]bool{}
	for _, page := range CommandPages(t) {
		text, err := os.ReadFile(Path(t, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range Commands(string(text)) {
			switch program := Program(command); {
			case program == "cnictl" || program == "aws" || slices.Contains(OnCluster, program):
			case program == "make":
				target, _, _ := strings.Cut(command[strings.Index(command, "make ")+len("make "):], " ")
				if !strings.Contains(string(makefile), "\n.PHONY: "+target+"\n") {
					t.Errorf("%s: make has no target %s", page, target)
				}
			case slices.Contains(excepted, program):
				used[program] = true
			case !strings.Contains(sources.String(), command):
				t.Errorf("%s: no test runs %q", page, command)
			}
		}
	}
	for _, program := range excepted {
		if !used[program] {
			t.Errorf("no page shows a command of %s", program)
		}
	}
}

// unproved lists, by reason, the programs whose commands no test types as they are shown.
var unproved = map[string][]string{
	"the shell's":      {"export", "reboot"},
	"for contributors": {"go", "fakeaws"},
	"TestSkopeo of tools/release/image takes them from the page":     {"skopeo"},
	"TestSupport of testenv/node/e2e runs the file in deploy/images": {"/opt/cni/bin/aws-cni-support.sh"},
	"in an image that is mounted by hand":                            {"/mnt/app/aws-k8s-agent"},
	"need systemd, an RPM distribution, modules or a driver":         {"ausearch", "chronyc", "dnf", "ethtool", "journalctl", "lsmod", "modprobe", "networkctl", "rpm", "semodule", "systemctl"},
	"needs CoreDNS": {"dig"},
	"need a runtime that has pulled images and runs pods": {"crictl", "ctr"},
	"needs a key, a registry and Sigstore's log":          {"cosign"},
	"look at a node, or change it": {
		"/opt/cni/bin/aws-cni", "cat", "conntrack", "cp", "date", "df", "dmesg", "du", "echo", "findmnt", "free", "grep", "head", "ip", "iptables", "iptables-legacy", "iptables-legacy-save", "iptables-nft-save", "iptables-save",
		"ls", "lsof", "mkdir", "mount", "mv", "nft", "printf", "ps", "python3", "rm", "sha256sum", "ss", "sysctl", "top", "ufw", "uname",
	},
}
