package tour

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCommands_Lines(t *testing.T) {
	t.Parallel()
	page := "cnictl prose\n```\n$ cnictl doctor --replay x\n1 cause found\ncnictl status   # all of it\nmake build && export PATH=x\nNODE  FREE\n```\n" +
		"- in a list\n  ```\n  kubectl get nodes\n  ```\nmake prose\n"
	want := []string{"cnictl doctor --replay x", "cnictl status", "make build", "export PATH=x", "kubectl get nodes"}
	if got := Commands(page); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
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
// cmd/cnictl/internal/root runs those of cnictl; make targets must exist; all others must be
// in the source of a test.
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
	for _, page := range CommandPages {
		text, err := os.ReadFile(Path(t, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range Commands(string(text)) {
			program, args, _ := strings.Cut(command, " ")
			switch program {
			case "cnictl", "helm", "kubectl", "sed", "export":
			case "make":
				target, _, _ := strings.Cut(args, " ")
				if !strings.Contains(string(makefile), "\n.PHONY: "+target+"\n") {
					t.Errorf("%s: make has no target %s", page, target)
				}
			default:
				if !strings.Contains(sources.String(), command) {
					t.Errorf("%s: no test runs %q", page, command)
				}
			}
		}
	}
}
