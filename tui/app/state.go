package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Limits of the state file. It belongs to the user and may hold anything.
const (
	maxState    = 64 << 10
	maxClusters = 32
	maxScreens  = 64
	maxText     = 1024
)

// saved are the settings kept between runs. Filters are not saved: a row hidden by an old
// filter looks missing.
type saved struct {
	Version  int            `json:"version"`
	Theme    string         `json:"theme,omitempty"`
	Wide     bool           `json:"wide,omitempty"`
	Clusters []savedCluster `json:"clusters,omitempty"` // the last used first
}

// savedCluster holds the settings of one cluster.
type savedCluster struct {
	Name string            `json:"name"`
	Sort map[string]string `json:"sort"` // by screen
}

// stateVersion is 2. Version 1 had one order and filter for all clusters; its theme and
// wide setting are still read.
const stateVersion = 2

// order returns the saved sort order of a screen of a cluster, "" if none.
func (s *saved) order(cluster, screen string) string {
	for _, c := range s.Clusters {
		if c.Name == cluster {
			return c.Sort[screen]
		}
	}
	return ""
}

// sorted returns s with the order of a screen. It does not modify the earlier settings,
// since a writer may still be reading them.
func (s saved) sorted(cluster, screen, order string) saved {
	now := savedCluster{Name: cluster, Sort: map[string]string{}}
	all := make([]savedCluster, 1, len(s.Clusters)+1)
	for _, c := range s.Clusters {
		if c.Name == cluster {
			maps.Copy(now.Sort, c.Sort)
		} else if len(all) < maxClusters {
			all = append(all, c)
		}
	}
	now.Sort[screen] = order
	all[0] = now
	s.Clusters = all
	return s
}

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
	if len(data) > maxState || json.Unmarshal(data, &s) != nil || s.Version < 1 || s.Version > stateVersion || len(s.Clusters) > maxClusters {
		return none
	}
	s.Version = stateVersion
	s.Clusters = slices.DeleteFunc(s.Clusters, func(c savedCluster) bool {
		long := func(screen, order string) bool { return len(screen) > maxText || len(order) > maxText }
		maps.DeleteFunc(c.Sort, long)
		return len(c.Name) > maxText || len(c.Sort) > maxScreens
	})
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
