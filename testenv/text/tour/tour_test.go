package tour

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"testing"

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
