package app

import (
	"context"
	"io"
	"time"

	"cnictl/daemon/fleet/watch"
	"cnictl/tui/pages"
)

// Connect prepares the screens of another context, which are shown once [Run] has returned
// ErrSwitched.
type Connect func(ctx context.Context, name string) error

// Options of [Run]. Source, In, Out and Now are required.
type Options struct {
	Source    watch.Source
	Screen    pages.Open          // the first one; zero: the overview
	Theme     string              // one of theme.Names; "" = the saved one, else auto
	Keys      map[string][]string // action → keys, overriding the table's
	State     string              // file that keeps orders by cluster, and the theme; "" = none
	Cluster   string              // identifies the cluster; "" = the source's title
	Namespace string              // default for pods named without one; "" = any
	Export    string              // directory that exports go to; "" = the working directory
	Contexts  []string            // of the kubeconfig, for :ctx; nil: no kubeconfig
	Context   string              // the one shown
	Connect   Connect             // switches to another one; nil with Contexts
	Examine   Examine             // the doctor; nil: there is none
	Interval  time.Duration       // between two samples of what is shown; 0: the source's

	ASCII bool // even if the locale is UTF-8
	Plain bool // text on request, no screen
	Mouse bool

	In      io.Reader
	Out     io.Writer
	Environ []string // TERM, NO_COLOR, LC_ALL, …
	Now     func() time.Time
}
