package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
)

// target is the file that a recording is written to. A recording that replaces another is
// first written to a temporary file, which is renamed at the first sample: an empty recording
// must not replace an existing one.
type target struct {
	*os.File
	name    string // as given by the user
	place   string // path of the replaced file, with links resolved; "" if none
	pending string // the temporary file, until it is renamed; "" if none
	made    bool   // the file did not exist before
	begun   bool   // a node was sampled
}

// create makes the file, readable by its owner only. It replaces a file only with --force.
// Anything but an ordinary file, such as a pipe, is written to directly.
func create(opts *Options) (*target, error) {
	o := &target{name: opts.File}
	var err error
	o.File, err = os.OpenFile(opts.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	o.made = err == nil
	if errors.Is(err, fs.ErrExist) {
		if !opts.Force {
			return nil, &cli.Error{Code: cli.ExitUsage, What: opts.File + " already exists", Do: "choose another name, or use --force to replace it"}
		}
		err = o.openPending()
	}
	if err != nil {
		return nil, &cli.Error{Code: cli.ExitFailure, What: "cannot write the recording", Why: err.Error()}
	}
	return o, nil
}

// openPending opens the temporary file for a recording that replaces another.
func (o *target) openPending() error {
	place, err := filepath.EvalSymlinks(o.name)
	if err != nil {
		return err
	}
	info, err := os.Stat(place)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return &fs.PathError{Op: "open", Path: o.name, Err: errors.New("is a directory")}
	}
	if !info.Mode().IsRegular() {
		o.File, err = os.OpenFile(place, os.O_WRONLY, 0)
		return err
	}
	if o.File, err = os.CreateTemp(filepath.Dir(place), filepath.Base(place)+".*.new"); err != nil {
		return err
	}
	o.place, o.pending = place, o.Name()
	return nil
}

// begin moves the file into place, now that it has a sample.
func (o *target) begin() error {
	if o.begun {
		return nil
	}
	if o.pending != "" {
		if err := os.Rename(o.pending, o.place); err != nil {
			return err
		}
	}
	o.pending, o.begun = "", true
	return nil
}

// nothing ends a recording without a sample, and removes the file that it created. err is what
// went wrong, if anything.
func (o *target) nothing(err error) error {
	e := &cli.Error{Code: cli.ExitFailure, What: "nothing was recorded", Why: "recording ended before any node was sampled",
		Do: "record for longer, or check that there are nodes"}
	switch {
	case o.pending != "":
		e.What += ": " + o.name + " is unchanged"
		err = errors.Join(err, os.Remove(o.pending))
	case o.made:
		e.What += ": " + o.name + " was removed"
		err = errors.Join(err, os.Remove(o.name))
	}
	if err != nil {
		e.Why, e.Do = err.Error(), ""
	}
	return e
}

// anyRead reports whether any node of a view has answered or failed. Kubernetes' data about
// nodes arrive earlier.
func anyRead(v *store.View) bool {
	return slices.ContainsFunc(v.Nodes, func(n *store.Node) bool {
		return n.SampledAt != nil || n.Error != nil && !slices.Contains(unasked, n.Error.Reason)
	})
}

// unasked are the error reasons of nodes that have not been asked.
var unasked = []introspect.Reason{introspect.ReasonCancelled, introspect.ReasonNoPod, introspect.ReasonPodNotRunning}
