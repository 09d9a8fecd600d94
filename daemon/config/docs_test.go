package config

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite generated documentation")

func TestDocumentation(t *testing.T) {
	const page = "../../docs/configuration.md"
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Splice(string(have))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(have)); diff != "" {
		t.Errorf("docs/configuration.md is stale, run make generate (-want +have):\n%s", diff)
	}
}

func TestSpliceNeedsMarkers(t *testing.T) {
	for _, page := range []string{"", markdownStart + "\n", "text\n" + markdownEnd} {
		if _, err := Splice(page); err == nil {
			t.Errorf("page %q: no error", page)
		}
	}
}
