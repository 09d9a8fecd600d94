package tour

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"io"
	"os"
	"strings"
	"testing"

	"cnictl/daemon/fleet/store"
	"cnictl/testenv/text/golden"
)

// maxSize keeps the file small enough for the tree.
const maxSize = 160 << 10

func unpacked(t *testing.T, file []byte) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFile: the committed recording is the one that this package writes.
func TestFile(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := Write(&b); err != nil {
		t.Fatal(err)
	}
	if golden.Update() {
		if err := os.WriteFile(Path(t, File), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(Path(t, File))
	if err != nil {
		t.Fatal(err)
	}
	if unpacked(t, file) != unpacked(t, b.Bytes()) {
		t.Errorf("%s is stale: go test ./testenv/text/tour -update", File)
	}
	if len(file) > maxSize {
		t.Errorf("it has %d bytes, more than %d", len(file), maxSize)
	}
	t.Logf("%d bytes", len(file))
}

// TestStory: the recording ends with what the pages describe.
func TestStory(t *testing.T) {
	t.Parallel()
	view := Open(t).View()
	words := map[string]string{
		Starved: "5 waiting", OverWarm: store.WordOverWarm, Trunk: "ok", Upstream: "ok", Dead: "stale 4m: timeout",
	}
	for name, want := range words {
		n := view.Node(name)
		if n == nil || n.Word != want {
			t.Errorf("%s: %+v, want %q", name, n, want)
		}
	}
	if len(view.Nodes) != 30 || len(view.Subnets) != 3 {
		t.Errorf("%d nodes, %d subnets", len(view.Nodes), len(view.Subnets))
	}
	seen := map[string]string{}
	for _, n := range view.Nodes {
		for _, c := range n.Summary.Cards {
			if c.Assigned+*c.Cooling+c.Free != c.Total || c.Free < 0 {
				t.Errorf("%s: %+v does not add up", n.Metadata.Name, c)
			}
		}
		sum := 0
		for _, e := range n.NodeIPAM.ENIs {
			sum += e.Total
			for _, c := range e.CIDRs {
				for _, a := range c.Addresses {
					pod := a.PodNamespace + "/" + a.PodName
					if holder, twice := seen[a.Address.String()]; twice || pod != "/" && seen[pod] != "" {
						t.Errorf("%s: %s, %s is also on %s%s", n.Metadata.Name, a.Address, pod, holder, seen[pod])
					}
					seen[a.Address.String()], seen[pod] = n.Metadata.Name, n.Metadata.Name
				}
			}
		}
		if n.NodeIPAM.ENIs != nil && sum != n.Held {
			t.Errorf("%s: ENIs of %d addresses, %d held", n.Metadata.Name, sum, n.Held)
		}
	}
}

func TestReplaced(t *testing.T) {
	t.Parallel()
	const page = "a\n<!-- made:x -->\nold\n<!-- /made -->\nb\n<!-- made:y -->\n<!-- /made -->\n"
	got, ok := replaced(page, "x", "new\n")
	if want := "a\n<!-- made:x -->\nnew\n<!-- /made -->\nb\n<!-- made:y -->\n<!-- /made -->\n"; !ok || got != want {
		t.Errorf("%v\n%s", ok, got)
	}
	for name, page := range map[string]string{
		"not there":  "a\n",
		"not closed": "<!-- made:x -->\n",
		"twice":      page + page,
		"another":    "<!-- made:x -->\n<!-- made:y -->\n<!-- /made -->\n",
	} {
		if _, ok := replaced(page, "x", ""); ok {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestSVG: the picture has the colours, emphasis and positions of the screen.
func TestSVG(t *testing.T) {
	t.Parallel()
	const frame = "a<b\x1b[1;38;2;255;0;16m red\x1b[m\n" +
		"\x1b[7m▁▁\x1b[0m░ \x1b[48;2;0;0;255mx\x1b[m"
	got := SVG(frame)
	for _, want := range []string{
		`viewBox="0 0 80 60"`,
		`<text x="12" y="25" textLength="24">a&lt;b</text>`,
		`<text x="44" y="25" textLength="24" fill="#ff0010" font-weight="bold">red</text>`,
		`<rect x="12" y="30" width="16" height="18" fill="` + ink + `"/>` + "\n" + `<rect x="12" y="46" width="16" height="2" fill="` + paper + `"/>`,
		`<rect x="28" y="30" width="8" height="18" fill="` + ink + `" fill-opacity="0.25"/>`,
		`<rect x="44" y="30" width="8" height="18" fill="#0000ff"/>` + "\n" + `<text x="44" y="43" textLength="8">x</text>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the picture lacks %s\n%s", want, got)
		}
	}
	if err := xml.Unmarshal([]byte(got), new(struct{})); err != nil {
		t.Error(err)
	}
}
