package archtest

import (
	"os"
	"path/filepath"
	"testing"
)

const root = "../../.."

func TestTree(t *testing.T) {
	t.Parallel()
	tree, err := Load(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Packages) < 10 {
		t.Fatalf("read only %d packages", len(tree.Packages))
	}
	if len(tree.Docs) < 5 || !tree.Names["docs/testing.md"] || tree.Names["bin"] {
		t.Fatalf("read %d texts of %d names", len(tree.Docs), len(tree.Names))
	}
	for name, check := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, v := range check(tree) {
				t.Error(v)
			}
		})
	}
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	for _, b := range budgets {
		t.Run(b.pkg, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(filepath.Join(root, b.pkg)); os.IsNotExist(err) && b.pkg != "cmd/aws-cni" {
				return // this binary does not exist yet; TestBudgetsName finds misspelt names
			}
			out := ""
			if b.maxBytes > 0 {
				out = filepath.Join(t.TempDir(), "binary")
			}
			bin, err := LoadBinary(t.Context(), root, b.pkg, out)
			if err != nil {
				t.Fatal(err)
			}
			if len(bin.Deps) == 0 {
				t.Fatal("read no dependencies")
			}
			for _, v := range checkBudget(b, bin) {
				t.Error(v)
			}
		})
	}
}

// TestBudgetsName: each budget is for a binary in the table of layers.
func TestBudgetsName(t *testing.T) {
	t.Parallel()
	for _, b := range budgets {
		if p, ok := place(b.pkg); !ok || p.layer != binary {
			t.Errorf("%s is not a binary in the table of layers", b.pkg)
		}
	}
}
