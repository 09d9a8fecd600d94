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

// maxState limits the state file. It belongs to the user and may hold anything.
const maxState = 64 << 10

// saved are the settings kept between runs. Orders and filters are not saved: see [Remembered].
type saved struct {
	Version int    `json:"version"`
	Theme   string `json:"theme,omitempty"`
	Wide    bool   `json:"wide,omitempty"`
}

// stateVersion is 2. Earlier releases also saved orders, which are ignored.
const stateVersion = 2

// load reads the state file. A missing, oversized or invalid one is ignored.
func load(path string) saved {
	none := saved{Version: stateVersion}
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
	none := saved{Version: stateVersion}
	s := none
	if len(data) > maxState || json.Unmarshal(data, &s) != nil || s.Version < 1 || s.Version > stateVersion {
		return none
	}
	s.Version = stateVersion
	return s
}

// keeper writes the state file. Writers may overtake each other; the newest wins.
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

// writeAtomic replaces a file, so that a reader sees either the old or the new one.
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
