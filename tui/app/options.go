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
	State     string              // file with sort orders by cluster, and the theme; "" = none
	Cluster   string              // identifies the cluster; "" = the source's title
	Namespace string              // default for pods named without one; "" = any
	Only      string              // namespace of the pods that their screen shows at first; "" = all
	Export    string              // directory for exports; "" = the working directory
	Contexts  []string            // of the kubeconfig, for :ctx; nil without a kubeconfig
	Context   string              // the current context
	Connect   Connect             // switches to another context; nil if Contexts is
	Examine   Examine             // the doctor; nil if none
	Interval  time.Duration       // between samples of what is shown; 0 = the source's

	ASCII bool // even if the locale is UTF-8
	Plain bool // text on request, no screen
	Mouse bool

	In      io.Reader
	Out     io.Writer
	Environ []string // TERM, NO_COLOR, LC_ALL, …
	Now     func() time.Time
}
