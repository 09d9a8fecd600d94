package components

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"cnictl/tui/query"
)

// TestPicker: a table that holds some of many rows starts with the same ones as a table that holds
// them all, and counts all.
func TestPicker(t *testing.T) {
	t.Parallel()
	type row = struct {
		name string
		size int
	}
	options := TableOptions[row]{ID: func(r row) string { return r.name }, Fault: func(r row) bool { return r.size%2 == 1 }, Columns: []query.Column[row]{
		{Name: "name", Header: "NAME", Text: func(r row) string { return r.name }},
		{Name: "size", Header: "SIZE", Text: func(r row) string { return fmt.Sprint(r.size) }, Number: func(r row) (float64, bool) { return float64(r.size), r.size > 3 }},
	}}
	now := time.Unix(0, 0)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		all := make([]row, r.IntN(3000))
		for i := range all {
			all[i] = row{fmt.Sprintf("row-%d", i), r.IntN(40)}
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		full, part := NewTable(options), NewTable(options)
		for _, x := range []*Table[row]{full, part} {
			_ = x.SetOrder([]string{"name", "-name", "size,name", "-size"}[seed%4])
			_ = x.SetFilter([]string{"", "1", "size>10"}[seed%3])
			x.SetFaults(seed%5 == 0)
		}
		full.SetRows(slices.Clone(all), now)
		most := 1 + r.IntN(200)
		p := part.Picker(most)
		for i := 0; i < len(all); i += 7 {
			p.Add(all[i:min(i+7, len(all))]...)
		}
		p.Cut()
		part.SetPicked(p, now)
		want := full.Rows()[:min(most, len(full.Rows()))]
		if !slices.Equal(part.Rows(), want) {
			t.Errorf("seed %d: the first %d of %d are not those of the full table", seed, most, len(all))
		}
		shown, of := part.Found()
		if wantShown, wantOf := full.Found(); shown != wantShown || of != wantOf {
			t.Errorf("seed %d: %d of %d, want %d of %d", seed, shown, of, wantShown, wantOf)
		}
		if !part.Picked(p) {
			t.Errorf("seed %d: the choice is not by what is wanted", seed)
		}
		if _ = part.SetFilter("row-1"); part.Picked(p) {
			t.Errorf("seed %d: another filter, and the choice is still valid", seed)
		}
	}
}
