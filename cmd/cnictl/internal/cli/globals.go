package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/kube"
	"cnictl/tui/draw"
)

// Globals are the flags that every command has.
type Globals struct {
	Targets      []string
	Output       string
	NoHeaders    bool
	Color        string
	Interval     time.Duration
	Timeout      time.Duration
	NodeTimeout  time.Duration
	Concurrency  int
	AllowPartial bool

	Kube               KubeFlags
	Nodes              []string
	Selector           string
	DaemonSetNamespace string
	DaemonSetSelector  string
	Via                string
	Theme              string
	Paged              bool
	Verbosity          int
	LogFile            string
	Replay, At         string
}

// Values of --via that do not use the API server.
const (
	ViaAuto  = "auto"
	ViaLocal = "local"
)

// ViaWays are the values of --via.
func ViaWays() []string {
	return []string{ViaAuto, document.ViaPortForward, document.ViaExec, document.ViaProxy, ViaLocal}
}

// MinInterval is the shortest --interval, the same as in k9s.
const MinInterval = 2 * time.Second

func (g *Globals) register(fs *pflag.FlagSet, cacheDir string) {
	g.Kube.register(fs, cacheDir)
	fs.BoolVarP(&g.Kube.AllNamespaces, "all-namespaces", "A", false, "pods of all namespaces, whatever -n or its default says")
	fs.StringSliceVar(&g.Targets, "targets", nil, "nodes to read: `NAME=ADDRESS,...` with unix:/path, host:port or http://host:port")
	fs.StringVarP(&g.Output, "output", "o", "table", "output `format`: table, wide, json, yaml, name, csv and others (see help output)")
	fs.BoolVar(&g.NoHeaders, "no-headers", false, "omit table headers")
	fs.StringVar(&g.Color, "color", "auto", "colour: auto, always or never (NO_COLOR, CLICOLOR and CLICOLOR_FORCE are honoured)")
	fs.DurationVar(&g.Interval, "interval", 5*time.Second, "how often --watch reads the nodes, at least 2s")
	fs.DurationVar(&g.Timeout, "timeout", 0, "time limit for the whole command, except with --watch; 0: only --node-timeout applies")
	fs.DurationVar(&g.NodeTimeout, "node-timeout", fleet.DefaultNodeTimeout, "time limit for reading one node")
	fs.IntVar(&g.Concurrency, "concurrency", fleet.DefaultConcurrency, "number of nodes to read in parallel, 1 to 256")
	fs.StringSliceVar(&g.Nodes, "nodes", nil, "only nodes with these `names`")
	fs.StringVarP(&g.Selector, "selector", "l", "", "only nodes with these `labels`: key=value,key!=value,key in (a,b)")
	fs.StringVar(&g.DaemonSetNamespace, "daemonset-namespace", kube.DefaultNamespace, "namespace of the aws-node DaemonSet")
	fs.StringVar(&g.DaemonSetSelector, "daemonset-selector", kube.DefaultSelector, "label selector of its pods")
	fs.StringVar(&g.Via, "via", ViaAuto, "`how` to reach nodes: "+strings.Join(ViaWays(), ", "))
	fs.StringVar(&g.Theme, "theme", "auto", "colour theme of the screens: auto, dark, light, high-contrast, deuteranopia-safe, mono")
	fs.BoolVar(&g.Paged, "paged", false, "page output through $PAGER on a terminal")
	fs.IntVarP(&g.Verbosity, "v", "v", 0, "log `level` of the Kubernetes client, on standard error, 1 to 10")
	fs.StringVar(&g.LogFile, "log-file", "", "write the Kubernetes client's log to this `file` instead")
	fs.StringVar(&g.Replay, "replay", "", "read a recording, a `file` made by the record command, instead of nodes")
	fs.StringVar(&g.At, "at", "", "`time` in the recording: 2026-11-21T14:02:11Z, 14:02 (UTC), +5m (after its start) or -5m (before its end)")
	fs.BoolVar(&g.AllowPartial, "allow-partial", false, "exit 0 even if some nodes could not be read")
}

// Check rejects values of the global flags that no command accepts.
func (f *Factory) Check(*cobra.Command) error {
	err := f.Globals.check(f.Name)
	if f.Globals.Kube.AllNamespaces {
		f.Globals.Kube.Namespace = ""
	}
	var e *Error
	if errors.As(err, &e) && e.Do == "" {
		e.Do = f.Name + " options"
	}
	return err
}

// check implements Check; name is what the tool was called as.
func (g *Globals) check(name string) error {
	if err := g.checkSelectors(name); err != nil {
		return err
	}
	if err := draw.CheckTheme(g.Theme); err != nil {
		return Usage("--theme=%s: %v", g.Theme, err)
	}
	switch {
	case !slices.Contains([]string{"auto", "always", "never"}, g.Color):
		return Usage("--color=%s: must be auto, always or never", g.Color)
	case !slices.Contains(ViaWays(), g.Via):
		return Usage("--via=%s: must be one of %s", g.Via, strings.Join(ViaWays(), ", "))
	case g.Verbosity < 0 || g.Verbosity > 10:
		return Usage("-v=%d: must be 0 to 10", g.Verbosity)
	case g.Interval < MinInterval:
		return &Error{Code: ExitUsage, What: fmt.Sprintf("--interval=%s: must be at least %s", g.Interval, MinInterval),
			Do: "--interval " + MinInterval.String()}
	case g.Timeout < 0:
		return Usage("--timeout=%s: must not be negative", g.Timeout)
	case g.NodeTimeout <= 0:
		return Usage("--node-timeout=%s: must be greater than 0", g.NodeTimeout)
	case g.Concurrency < 1 || g.Concurrency > fleet.MaxConcurrency:
		return Usage("--concurrency=%d: must be 1 to %d", g.Concurrency, fleet.MaxConcurrency)
	}
	return nil
}

// checkSelectors rejects label selectors that the API server would reject.
func (g *Globals) checkSelectors(name string) error {
	for _, s := range []struct{ flag, value, example string }{
		{"selector", g.Selector, " nodes -l kubernetes.io/arch=arm64"},
		{"daemonset-selector", g.DaemonSetSelector, " nodes --daemonset-selector " + kube.DefaultSelector},
	} {
		if _, err := labels.Parse(s.value); err != nil {
			return &Error{Code: ExitUsage, What: "invalid --" + s.flag, Why: err.Error(), Do: name + s.example}
		}
	}
	return nil
}

// Time limits of a command without --timeout.
const (
	leastTimeout = time.Minute
	listTimeout  = 30 * time.Second // to list the nodes and process the responses
)

// timeoutFor returns --timeout, or else the longest that this many nodes may take, since each
// node has its own limit.
func (g *Globals) timeoutFor(nodes int) time.Duration {
	if g.Timeout > 0 {
		return g.Timeout
	}
	rounds := (nodes + g.Concurrency - 1) / g.Concurrency
	return max(leastTimeout, listTimeout+time.Duration(rounds)*g.NodeTimeout)
}

// kubeCacheDir returns kubectl's default for --cache-dir.
func (f *Factory) kubeCacheDir() string {
	if dir, _ := f.Env("KUBECACHEDIR"); dir != "" {
		return dir
	}
	home, _ := f.Env("HOME")
	return filepath.Join(home, ".kube", "cache")
}
