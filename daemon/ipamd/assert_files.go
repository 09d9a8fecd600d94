package ipamd

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/keeper"
)

// Objects that are not state of the kernel's network.
const (
	objectCheckpoint = "checkpoint"
	objectSocket     = "socket"
)

// assertedFiles are the daemon's files below /var/run/aws-node, which it recreates if they are
// removed: without the checkpoint a restart loses the allocations, without the sockets no pod
// starts.
type assertedFiles struct {
	log     *slog.Logger
	dirs    []string
	missing func() (checkpoint, socket bool)
	// Functions that recreate what is missing.
	write  func()
	listen func()
}

func (d *daemon) newAssertedFiles(a *asserter) *assertedFiles {
	lean := d.deps.LeanSocket
	if lean == "" {
		lean = cniwire.Socket
	}
	sockets := []string{d.grpcSocket(), lean}
	f := &assertedFiles{log: d.log, listen: func() { signal(d.renew) }}
	for _, path := range append(slices.Clone(sockets), d.node.checkpointPath) {
		if dir := filepath.Dir(path); !slices.Contains(f.dirs, dir) {
			f.dirs = append(f.dirs, dir)
		}
	}
	f.missing = func() (checkpoint, socket bool) {
		return d.files.lost(), slices.ContainsFunc(sockets, absent)
	}
	f.write = func() {
		d.owner.deliver(keeper.CheckpointGone{})
		a.fileBack(objectCheckpoint, d.node.checkpointPath)
	}
	return f
}

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// run checks the files until ctx ends: immediately when something was removed from their
// directories, otherwise once per period.
func (f *assertedFiles) run(ctx context.Context) {
	removed := make(chan struct{}, 1)
	var follower sync.WaitGroup
	follower.Go(func() { f.follow(ctx, removed) })
	defer follower.Wait()
	every := time.NewTicker(assertPeriod)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-removed:
		case <-every.C:
		}
		checkpoint, socket := f.missing()
		if checkpoint {
			f.write()
		}
		if socket {
			f.listen()
		}
	}
}

// follow signals removals in the files' directories until ctx ends.
func (f *assertedFiles) follow(ctx context.Context, removed chan<- struct{}) {
	said := ""
	for {
		err := f.followOnce(ctx, removed)
		if ctx.Err() != nil {
			return
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			f.log.Debug("no notifications of removed files", slog.Any(logline.KeyError, err))
		}
		signal(removed) // one of the directories has been replaced
		if !pause(ctx, assertSpacing) {
			return
		}
	}
}

// followOnce follows the directories as they are now. It returns when one of them is
// replaced.
func (f *assertedFiles) followOnce(ctx context.Context, removed chan<- struct{}) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	watch := os.NewFile(uintptr(fd), "inotify")
	defer watch.Close()
	was := make([]fs.FileInfo, len(f.dirs))
	for i, dir := range f.dirs {
		if was[i], err = os.Stat(dir); err != nil {
			return err
		}
		if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_ONLYDIR); err != nil {
			return err
		}
	}
	signal(removed) // in case something was removed before the watch
	// A read in progress ends when its deadline moves into the past.
	defer context.AfterFunc(ctx, func() { _ = watch.SetReadDeadline(time.Unix(1, 0)) })()
	// Look for removals regardless of the events' content: a check costs three system calls.
	buf := make([]byte, 4<<10)
	for {
		if _, err := watch.Read(buf); err != nil {
			return err
		}
		signal(removed)
		for i, dir := range f.dirs {
			if now, err := os.Stat(dir); err != nil || !os.SameFile(now, was[i]) {
				return nil
			}
		}
	}
}

// fileBack reports a file that was removed and exists again.
func (a *asserter) fileBack(object, path string) {
	a.metrics.HostStateRepaired(object, 1)
	text := path + " was removed"
	a.log.Warn("file was removed by another program and is recreated", slog.String(logline.KeyPath, path), slog.String(logline.KeyDetail, knownCauses(object)))
	a.feed.Append(introspect.Event{At: time.Now(), Kind: introspect.EventHostStateRepaired, Reason: object, Message: text})
	a.emit([]string{object}, text)
}
