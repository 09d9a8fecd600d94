package config

import (
	"os"
	"testing"

	"cnictl/testenv/text/golden"
)

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
	golden.File(t, page, []byte(want))
}

func TestSpliceNeedsMarkers(t *testing.T) {
	for _, page := range []string{"", markdownStart + "\n", "text\n" + markdownEnd} {
		if _, err := Splice(page); err == nil {
			t.Errorf("page %q: no error", page)
		}
	}
}
