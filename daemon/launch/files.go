package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"cnictl/daemon/install"
)

// installPlugins copies the plugins, and the program they start, to the node.
func (l *launcher) installPlugins() error {
	for _, name := range plugins() {
		to := filepath.Join(l.Config.CNIBinDir, name)
		if _, err := install.Program(filepath.Join(l.Dir, name), to); err != nil {
			return fmt.Errorf(textInstallPrograms+": %w", err)
		}
		if _, err := io.WriteString(l.Stdout, textInstalled(to)); err != nil {
			return fmt.Errorf(textInstallPrograms+": %w", err)
		}
	}
	return nil
}

func (l *launcher) conflistPath() string { return filepath.Join(l.Config.CNIConfDir, conflistName) }

// removeStale removes a conflist left by an earlier boot of the node. If the daemon has no
// checkpoint, none has run since: a boot empties the file system of checkpoints. Until the
// daemon serves, the node must not be considered ready.
func (l *launcher) removeStale() error {
	if _, err := os.Lstat(l.Config.CheckpointPath); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := os.Remove(l.conflistPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("remove the conflist of an earlier boot: %w", err)
	}
	l.log.Info("removed the conflist of an earlier boot: no daemon has run since, and pods must wait until it is ready",
		slog.String("file", l.conflistPath()), slog.String("checkpoint", l.Config.CheckpointPath))
	return nil
}

// watch is the last observed state of the files that the entrypoint installed.
type watch struct {
	conflist []byte          // as installed; nil: not yet
	altered  map[string]bool // changes by others that are logged already
}

// checkFiles compares the node with what was installed. It reinstalls a plugin that was
// removed or cannot be executed: without it the runtime can neither add nor delete pods.
// The conflist is the runtime's choice of a network: if another program removes, renames or
// edits it (another CNI may rightly do so), that is logged and left alone.
func (l *launcher) checkFiles() {
	for _, name := range plugins() {
		path := filepath.Join(l.Config.CNIBinDir, name)
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 && info.Size() > 0 {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.once(path, "cannot check an installed plugin", err)
			continue
		}
		if _, err := install.Program(filepath.Join(l.Dir, name), path); err != nil {
			l.once(path, "an installed plugin is gone and cannot be reinstalled: pods can be neither added nor deleted", err)
			continue
		}
		delete(l.seen.altered, path)
		l.log.Warn("reinstalled a plugin that something else removed or changed", slog.String("file", path))
	}
	if l.seen.conflist != nil {
		l.lookAtConflist()
	}
}

func (l *launcher) lookAtConflist() {
	path := l.conflistPath()
	have, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.once(path, "the conflist is gone: something else removed or renamed it, and new pods get no VPC addresses. It is not restored until this container restarts", nil)
	case err != nil:
		l.once(path, "cannot read the conflist", err)
	case string(have) != string(l.seen.conflist):
		l.once(path, "something else changed the conflist. It is not restored until this container restarts", nil)
	case l.seen.altered[path]:
		delete(l.seen.altered, path)
		l.log.Info("the conflist is back as it was installed", slog.String("file", path))
	}
}

// once logs a change of a file, once until the file is as installed again.
func (l *launcher) once(path, what string, err error) {
	if l.seen.altered[path] {
		return
	}
	l.seen.altered[path] = true
	attrs := []any{slog.String("file", path)}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	l.log.Warn(what, attrs...) //nolint:sloglint // the texts are constants of this file
}
