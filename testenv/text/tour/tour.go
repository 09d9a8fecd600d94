package tour

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cnictl/daemon/fleet/record"
)

// File is the recording, below the module's root.
const File = "docs/tour.cnirec"

// Title is the name of the fleet.
const Title = "prod-eu"

// Write writes the recording.
func Write(out io.Writer) error {
	first, opens := End().Add(-Every*Steps), opensAt()
	w, err := record.NewWriter(out, record.Header{Tool: "v1.0.0", Title: Title, StartedAt: first, OpensAt: &opens})
	if err != nil {
		return fmt.Errorf("begin the recording: %w", err)
	}
	if err := w.Continue(history(), first); err != nil {
		return fmt.Errorf("write the days before: %w", err)
	}
	for step := range Steps + 1 {
		for _, m := range machines() {
			if err := w.WriteSample(m.sample(step), first.Add(Every*time.Duration(step))); err != nil {
				return fmt.Errorf("write %s: %w", m.name, err)
			}
			for _, d := range m.documents(step) {
				if err := w.WriteDocuments(d, first.Add(Every*time.Duration(step))); err != nil {
					return fmt.Errorf("write documents of %s: %w", m.name, err)
				}
			}
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("end the recording: %w", err)
	}
	return nil
}

// Path returns the path of a file that is given below the module's root.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, filepath.FromSlash(name))
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}

// Open opens the recording, paused at its end.
func Open(t testing.TB) *record.Player {
	t.Helper()
	file, err := os.ReadFile(Path(t, File))
	if err != nil {
		t.Fatal(err)
	}
	p, err := record.Open(bytes.NewReader(file), record.Options{Now: End})
	if err != nil {
		t.Fatal(err)
	}
	p.Play(false)
	p.Seek(End())
	p.Survey(context.Background())
	return p
}
