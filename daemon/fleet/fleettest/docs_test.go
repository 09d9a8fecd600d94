package fleettest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/testenv/text/golden"
)

const page = "../../../docs/introspection.md"

// TestDocs_Examples compares the page's examples with a node's answers.
func TestDocs_Examples(t *testing.T) {
	t.Parallel()
	c, err := client.New(client.Options{Address: Serve(t, t.TempDir(), "n", Secondary()), Now: Now})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(old)
	for name, path := range map[string]string{"summary": introspect.PathSummary, "config": introspect.PathConfig} {
		text = replaceExample(t, text, name, example(t, c, path))
	}
	golden.File(t, page, []byte(text))
}

// TestDocs_Terms: docs/capacity.md explains every term of max-pods, and no other.
func TestDocs_Terms(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/capacity.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "\n| term | |\n|---|---|\n")
	rows, _, _ = strings.Cut(rows, "\n\n")
	explained, terms := map[string]bool{}, map[string]bool{}
	for row := range strings.Lines(rows) {
		names, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for name := range strings.SplitSeq(names, ",") {
			explained[strings.Trim(name, " `")] = true
		}
	}
	number := regexp.MustCompile(`^card \d+$`)
	for _, in := range MaxPodsInputs() {
		for _, term := range maxpods.Compute(in).Terms() {
			terms[number.ReplaceAllString(term.Name, "card N")] = true
		}
	}
	if diff := cmp.Diff(terms, explained); diff != "" {
		t.Errorf("terms in %s (-used +explained):\n%s", page, diff)
	}
}

// summaryLimit bounds a healthy node's summary in bytes: a sweep of 5,000 nodes reads 5,000
// of them.
const summaryLimit = 2048

func TestSummary_IsSmall(t *testing.T) {
	t.Parallel()
	c, err := client.New(client.Options{Address: Serve(t, t.TempDir(), "n", Secondary()), Now: Now})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, err := c.Get(t.Context(), introspect.PathSummary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(a.Body))
	if len(a.Body) > summaryLimit {
		t.Errorf("the summary of a healthy node has %d bytes, more than %d", len(a.Body), summaryLimit)
	}
}

func example(t *testing.T, c *client.Client, path string) string {
	t.Helper()
	a, err := get(t.Context(), c, path)
	if err != nil {
		t.Fatal(err)
	}
	return "```json\n" + a + "\n```\n"
}

func get(ctx context.Context, c *client.Client, path string) (string, error) {
	a, err := c.Get(ctx, path)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = json.Indent(&b, a.Body, "", "  ")
	return b.String(), err
}

// replaceExample puts an example between its markers.
func replaceExample(t *testing.T, text, name, with string) string {
	t.Helper()
	begin, end := "<!-- example:"+name+" -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("no markers of example %s in %s", name, page)
	}
	return before + begin + with + end + after
}
