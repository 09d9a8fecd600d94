package ipamd

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cnictl/daemon/api/checkpoint"
	store "cnictl/daemon/internal/checkpoint"
	"cnictl/daemon/keeper"
)

// checkpoints are the files of the allocations, one per network card
// (spec/ipamd.md §2.1).
type checkpoints struct {
	path   string // of card 0
	stores map[int]*store.Store
}

// openCheckpoints opens the file of card 0, and those of other cards that an earlier
// daemon left: their pods may live on though the cards are not used any more.
func openCheckpoints(path string) *checkpoints {
	c := &checkpoints{path: path, stores: map[int]*store.Store{0: store.Open(path)}}
	before, after, _ := strings.Cut(cardPath(path, 0), "0")
	names, _ := filepath.Glob(globQuote(before) + "*" + globQuote(after)) // only fails for a bad pattern
	for _, name := range names {
		number := strings.TrimSuffix(strings.TrimPrefix(name, before), after)
		if card, err := strconv.Atoi(number); err == nil && card > 0 && card < maxCards && strconv.Itoa(card) == number {
			c.stores[card] = store.Open(name)
		}
	}
	return c
}

// maxCards bounds the network cards of an instance; none has so many.
const maxCards = 128

// cardPath is the file of a further card: "-nic-<n>" comes before ".json".
func cardPath(path string, card int) string {
	nic := "-nic-" + strconv.Itoa(card)
	if base, ok := strings.CutSuffix(path, ".json"); ok {
		return base + nic + ".json"
	}
	return path + nic
}

func globQuote(s string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(s)
}

// exists reports that a daemon ran here before.
func (c *checkpoints) exists() bool { return c.stores[0].Exists() }

// loaded is what the files held.
type loaded struct {
	entries  []checkpoint.Entry
	problems []loadProblem
}

// loadProblem is a file that was not believed.
type loadProblem struct {
	keptAside string
	err       error
}

func (c *checkpoints) load() (loaded, error) {
	var out loaded
	cards := make([]int, 0, len(c.stores))
	for card := range c.stores {
		cards = append(cards, card)
	}
	slices.Sort(cards)
	for _, card := range cards {
		s := c.stores[card]
		got, err := s.Load()
		if err != nil {
			return out, fmt.Errorf("load %s: %w", s.Path(), err)
		}
		if got.Problem != nil {
			out.problems = append(out.problems, loadProblem{got.KeptAside, got.Problem})
		}
		for _, e := range got.Entries {
			e.Card = card
			out.entries = append(out.entries, e)
		}
	}
	return out, nil
}

// write writes the files of an image. After an error any of them may be old.
func (c *checkpoints) write(i keeper.Image) error {
	for _, f := range i.Files {
		s, ok := c.stores[f.Card]
		if !ok {
			s = store.Open(cardPath(c.path, f.Card))
			c.stores[f.Card] = s
		}
		if err := s.Write(f.Data); err != nil {
			return err
		}
	}
	return nil
}
