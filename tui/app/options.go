package app

import (
	"context"
	"io"
	"time"

	"cnictl/daemon/fleet/watch"
	"cnictl/tui/pages"
)

// Connect prepares the screens of another context. They are shown after [Run] returns
// ErrSwitched.
type Connect func(ctx context.Context, name string) error

// Options of [Run]. Source, In, Out and Now are required.
type Options struct {
	Source    watch.Source
	Screen    pages.Open          // the first screen; zero = the overview
	Theme     string              // one of theme.Names; "" = the saved one, else auto
	Keys      map[string][]string // keys by action, overriding the table's
	State     string              // file with the theme and the wide setting; "" = none
	Cluster   string              // identifies the cluster; "" = the source's title
	Namespace string              // default for pods named without one; "" = any
	Only      string              // namespace of the pods that their screen shows at first; "" = all
	Export    string              // directory for exports; "" = the working directory
	Contexts  []string            // of the kubeconfig, for :ctx; nil without a kubeconfig
	Context   string              // the current context
	Connect   Connect             // switches to another context; nil if Contexts is
	Examine   Examine             // the doctor; nil if none

	Remembered *Remembered   // of earlier clusters; nil = nothing
	Interval   time.Duration // between samples of what is shown; 0 = the source's

	ASCII bool // even if the locale is UTF-8
	Plain bool // text on request, no screen
	Mouse bool

	In      io.Reader
	Out     io.Writer
	Environ []string // TERM, NO_COLOR, LC_ALL, …
	Now     func() time.Time
}

// Remembered holds the order and the filter of each screen by cluster. It lasts as long as the
// program: tomorrow, an old order would hide the nodes that have a fault.
type Remembered struct{ by map[placed]listing }

// placed is a screen of a cluster.
type placed struct {
	cluster string
	open    pages.Open
}

// listing is how a screen lists its rows.
type listing struct{ order, filter string }

func (r *Remembered) put(cluster string, open pages.Open, l listing) {
	if r.by == nil {
		r.by = map[placed]listing{}
	}
	r.by[placed{cluster, open}] = l
}

func (r *Remembered) of(cluster string, open pages.Open) (listing, bool) {
	l, ok := r.by[placed{cluster, open}]
	return l, ok
}
