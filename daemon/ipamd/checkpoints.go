package ipamd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"cnictl/daemon/api/checkpoint"
	store "cnictl/daemon/internal/checkpoint"
	"cnictl/daemon/keeper"
)

// checkpoints are the files of the allocations, one per network card, as in upstream.
type checkpoints struct {
	path   string // of card 0
	stores map[int]*store.Store
	// written holds the files that were written; see lost.
	mu      sync.Mutex // guards written
	written map[string]bool
	// unlisted is why the additional files could not be listed; nil if they were.
	unlisted error
}

// openCheckpoints opens the file of card 0, and those of other cards that an earlier daemon
// left: their pods may still run although the cards are no longer used.
func openCheckpoints(path string) *checkpoints {
	c := &checkpoints{path: path, stores: map[int]*store.Store{0: store.Open(path)}}
	names, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the first load creates it
		c.unlisted = fmt.Errorf("look for the checkpoints of additional network cards, whose pods would lose their addresses (the next start retries): %w", err)
	}
	for _, n := range names {
		if card, ok := checkpoint.CardOfName(filepath.Base(path), n.Name()); ok {
			c.stores[card] = store.Open(checkpoint.CardPath(path, card))
		}
	}
	return c
}

// exists reports whether a daemon ran here before.
func (c *checkpoints) exists() bool {
	for _, s := range c.stores {
		if s.Exists() {
			return true
		}
	}
	return false
}

// loaded is the content of the files.
type loaded struct {
	entries  []checkpoint.Entry
	problems []loadProblem
}

// loadProblem is a file that was rejected.
type loadProblem struct {
	keptAside string
	err       error
}

func (c *checkpoints) load() (loaded, error) {
	var out loaded
	if c.unlisted != nil {
		return out, c.unlisted
	}
	cards := make([]int, 0, len(c.stores))
	for card := range c.stores {
		cards = append(cards, card)
	}
	slices.Sort(cards)
	for _, card := range cards {
		s := c.stores[card]
		if s.Exists() {
			c.wrote(s.Path())
		}
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

// write writes the files of an image. After an error, any of them may be outdated.
func (c *checkpoints) write(i keeper.Image) error {
	for _, f := range i.Files {
		s, ok := c.stores[f.Card]
		if !ok {
			s = store.Open(checkpoint.CardPath(c.path, f.Card))
			c.stores[f.Card] = s
		}
		if err := s.Write(f.Data); err != nil {
			return err
		}
		c.wrote(s.Path())
	}
	return nil
}

func (c *checkpoints) wrote(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.written == nil {
		c.written = map[string]bool{}
	}
	c.written[path] = true
}

// lost reports, once until the next write, whether a file is gone that this daemon or an
// earlier one wrote. Any goroutine may call it.
func (c *checkpoints) lost() (lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path := range c.written {
		if absent(path) {
			delete(c.written, path)
			lost = true
		}
	}
	return lost
}
