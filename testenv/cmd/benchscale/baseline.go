package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"cnictl/testenv/cmd/internal/figure"
	"cnictl/testenv/cmd/internal/frame"
)

// baseline holds the figures of an earlier run, from a file in the repository. Compare
// ratios between rows, calls and memory: times depend on the machine.
type baseline struct {
	Machine string             `json:"machine"`
	Load    string             `json:"load"` // the machine's, at the end of the run
	Median  map[string]float64 `json:"median"`
}

// maxBaselineSize bounds the file size, in case the wrong file is named.
const maxBaselineSize = 1 << 20

// readBaseline reads the baseline file; a missing file counts as empty.
func readBaseline(o options) (baseline, error) {
	if o.baseline == "" || o.write {
		return baseline{}, nil
	}
	info, err := os.Stat(o.baseline)
	if errors.Is(err, fs.ErrNotExist) {
		return baseline{}, nil
	}
	if err != nil {
		return baseline{}, fmt.Errorf("read baseline: %w", err)
	}
	if info.Size() > maxBaselineSize {
		return baseline{}, fmt.Errorf("read baseline %s: %d bytes, the limit is %d", o.baseline, info.Size(), maxBaselineSize)
	}
	data, err := os.ReadFile(o.baseline)
	if err != nil {
		return baseline{}, fmt.Errorf("read baseline: %w", err)
	}
	var b baseline
	if err := json.Unmarshal(data, &b); err != nil {
		return baseline{}, fmt.Errorf("read baseline %s (make bench-scale ARGS=--write makes a new one): %w", o.baseline, err)
	}
	return b, nil
}

func (b baseline) of(name string) figure.Number {
	v, ok := b.Median[name]
	return figure.Number{Value: v, Known: ok}
}

func (t *table) baseline(machine string) baseline {
	b := baseline{Machine: machine, Load: frame.Load(), Median: map[string]float64{}}
	for _, r := range t.rows {
		if m := r.median(); m.Known {
			b.Median[r.name] = m.Value
		}
	}
	return b
}

func (b baseline) write(path string) error {
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return fmt.Errorf("encode baseline: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write baseline: %w", err)
	}
	return nil
}
