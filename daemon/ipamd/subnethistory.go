package ipamd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/config"
	"cnictl/daemon/install"
	"cnictl/daemon/resync"
	"cnictl/daemon/subnethistory"
)

// subnetHistory keeps EC2's counts of the subnets' free addresses, in memory and in a file. Only run
// waits for the disk. nil keeps nothing.
type subnetHistory struct {
	path    string
	log     *slog.Logger
	grown   chan struct{} // holds a token while there are readings that are not in the file
	failing bool          // the file could not be written; only run uses it
	mu      sync.Mutex    // guards all below
	history *subnethistory.History
}

// newSubnetHistory returns nil in the modes that read no counts which mean anything.
func newSubnetHistory(c config.Config, log *slog.Logger) *subnetHistory {
	if c.IPv6 || c.IMDSOnly {
		return nil
	}
	return &subnetHistory{
		path: subnethistory.Path(c.CheckpointPath), log: log, grown: make(chan struct{}, 1), history: &subnethistory.History{},
	}
}

// note keeps the counts of subnets, if they are the first for a while.
func (h *subnetHistory) note(at time.Time, subnets []resync.Subnet) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	grown := false
	for _, s := range subnets {
		grown = h.history.Note(at, s.ID, s.AvailableIPs) || grown
	}
	if grown {
		select {
		case h.grown <- struct{}{}:
		default:
		}
	}
}

// since is the time of the first count of a subnet; nil if there is none.
func (h *subnetHistory) since(subnet string) *time.Time {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if at, ok := h.history.Since(subnet); ok {
		return &at
	}
	return nil
}

// served is the document of /v1/subnet-history; nil if this node keeps none.
func (h *subnetHistory) served() func() introspect.NodeSubnetHistory {
	if h == nil {
		return nil
	}
	return func() introspect.NodeSubnetHistory {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.history.Document()
	}
}

// run continues the history in the file, and writes it there whenever it grew, until ctx ends.
func (h *subnetHistory) run(ctx context.Context) {
	h.load()
	for {
		select {
		case <-h.grown:
			h.save()
		case <-ctx.Done():
			return
		}
	}
}

// load puts the history in the file before what was noted since the start. A file that is not usable is
// set aside.
func (h *subnetHistory) load() {
	earlier, err := readSubnetHistory(h.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		aside := h.path + ".damaged"
		h.log.Warn("free counts of subnets from before the start not usable: the file is set aside and they are collected anew",
			slog.String(logline.KeyPath, aside), slog.Any(logline.KeyError, errors.Join(err, os.Rename(h.path, aside))))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.history = h.history.After(earlier)
}

// save writes the file.
func (h *subnetHistory) save() {
	text, err := json.Marshal(h.served()())
	if err == nil {
		err = install.State(h.path, text)
	}
	if err != nil && !h.failing {
		h.log.Warn("free counts of subnets not written: forecasts will lack them after a restart of the daemon", slog.Any(logline.KeyError, err))
	}
	h.failing = err != nil
}

// readSubnetHistory returns an empty history along with any error.
func readSubnetHistory(path string) (*subnethistory.History, error) {
	none := &subnethistory.History{}
	info, err := os.Lstat(path)
	if err != nil {
		return none, err
	}
	if !info.Mode().IsRegular() { // opening a pipe could block
		return none, fmt.Errorf("read %s: it is of mode %s, not a regular file", path, info.Mode())
	}
	f, err := os.Open(path)
	if err != nil {
		return none, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, subnethistory.MostBytes+1))
	if err == nil && len(text) > subnethistory.MostBytes {
		err = fmt.Errorf("larger than %d bytes", subnethistory.MostBytes)
	}
	if err != nil {
		return none, fmt.Errorf("read %s: %w", path, err)
	}
	found, err := subnethistory.Decode(text)
	if err != nil {
		return none, fmt.Errorf("read %s: %w", path, err)
	}
	return found, nil
}
