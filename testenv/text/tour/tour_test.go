package tour

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
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
