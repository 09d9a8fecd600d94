package introspectserver

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv/text/golden"
)

const page = "../../../docs/introspection.md"

// TestDocs_Examples compares the page's examples with a handler's answers;
// daemon/fleet/fleettest covers summary and config.
func TestDocs_Examples(t *testing.T) {
	t.Parallel()
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(old)
	h := newHandler(fullOptions(), "", nil)
	for name, target := range map[string]string{
		"plan": "/v1/plan?warmIp=6", "failures": "/v1/failures", "events": "/v1/events", "pod": "/v1/pod?namespace=shop&name=cart-7d9f-1",
		"logs": "/v1/logs?level=warn&lines=1", "schemas": "/v1/schemas", "subnet-history": "/v1/subnet-history", "fault": "/v1/plan?warmIp=many",
	} {
		var b bytes.Buffer
		if err := json.Indent(&b, ask(t, h, target).Body.Bytes(), "", "  "); err != nil {
			t.Fatal(err)
		}
		begin, end := "<!-- example:"+name+" -->\n", "<!-- end -->"
		before, rest, ok := strings.Cut(text, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("no markers of example %s in %s", name, page)
		}
		text = before + begin + "```json\n" + b.String() + "\n```\n" + end + after
	}
	golden.File(t, page, []byte(text))
}

// TestDocs_Kinds: the page explains every kind of event, with its title.
func TestDocs_Kinds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range introspect.EventKinds() {
		if row := "| `" + string(kind) + "` | " + kind.Title() + " |\n"; !strings.Contains(string(text), row) {
			t.Errorf("%s lacks the row %s", page, row)
		}
	}
}
