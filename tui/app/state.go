package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// Bounds of the state file: it is the user's, and may hold anything.
const (
	maxState   = 64 << 10
	maxScreens = 64
	maxText    = 1024
)

// saved is what a run leaves to the next.
type saved struct {
	Version int                  `json:"version"`
	Theme   string               `json:"theme,omitempty"`
	Wide    bool                 `json:"wide,omitempty"`
	Screens map[string]savedList `json:"screens,omitempty"`
}

type savedList struct {
	Sort   string `json:"sort,omitempty"`
	Filter string `json:"filter,omitempty"`
}

const stateVersion = 1

// load reads the state file. What is missing, too long or not understood is as if it
// was not there.
func load(path string) saved {
	none := saved{Version: stateVersion, Screens: map[string]savedList{}}
	if path == "" {
		return none
	}
	f, err := os.Open(path)
	if err != nil {
		return none
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return none
	}
	data, err := io.ReadAll(io.LimitReader(f, maxState+1))
	if err != nil {
		return none
	}
	return parseState(data)
}

func parseState(data []byte) saved {
	none := saved{Version: stateVersion, Screens: map[string]savedList{}}
	s := none
	if len(data) > maxState || json.Unmarshal(data, &s) != nil || s.Version != stateVersion || len(s.Screens) > maxScreens {
		return none
	}
	if s.Screens == nil {
		s.Screens = map[string]savedList{}
	}
	for name, l := range s.Screens {
		if len(l.Sort) > maxText || len(l.Filter) > maxText || len(name) > maxText {
			delete(s.Screens, name)
		}
	}
	return s
}

// keeper writes the state file. Writers may overtake each other: the newest wins.
type keeper struct {
	path string

	mu     sync.Mutex // guards newest and the file
	newest uint64
}

func (k *keeper) save(n uint64, s saved) error {
	if k.path == "" {
		return nil
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if n <= k.newest {
		return nil
	}
	k.newest = n
	return writeAtomic(k.path, append(data, '\n'))
}

// writeAtomic puts a file in the place of another, so that a reader sees one of both.
func writeAtomic(path string, data []byte) (err error) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tui-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
