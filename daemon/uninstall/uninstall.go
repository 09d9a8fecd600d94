package uninstall

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"cnictl/daemon/internal/hostnet"
)

// Options says what to uninstall. Only Force and DryRun are optional.
type Options struct {
	Paths      Paths
	VethPrefix string // of pods' links, beside the usual ones
	DryRun     bool   // say what would be removed, and remove nothing
	Force      bool   // also under a running daemon, and with it the network of living pods
	Out, Err   io.Writer
	Log        *slog.Logger // details
}

// Exit codes.
const (
	Clean  = 0
	Failed = 1 // refused, or something could not be removed
)

// Run uninstalls and returns the exit code.
func Run(ctx context.Context, o Options) int {
	left, err := hostnet.FindLeftovers(ctx, o.Log, o.VethPrefix)
	if err != nil {
		// What was found is still removed; what was not read may be left.
		fmt.Fprintf(o.Err, "%s%s\n", textFailed, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if reason := o.refuse(ctx, left); reason != "" {
		if o.DryRun {
			o.list(left)
		}
		fmt.Fprintln(o.Err, "aws-k8s-agent: nothing is uninstalled:", reason)
		return Failed
	}
	if o.DryRun {
		o.list(left)
		fmt.Fprint(o.Out, textLeft)
		return code(err == nil)
	}
	ok := o.remove(ctx, left)
	fmt.Fprint(o.Out, textLeft)
	return code(ok && err == nil)
}

func code(ok bool) int {
	if ok {
		return Clean
	}
	return Failed
}

// refuse says why nothing may be done.
func (o Options) refuse(ctx context.Context, left *hostnet.Leftovers) string {
	if o.Force {
		return ""
	}
	if socket, ok := o.Paths.running(ctx); ok {
		return fmt.Sprintf("a daemon runs on this node (%s answers) and would make everything again; delete the DaemonSet aws-node first, or use --force", socket)
	}
	if n := len(left.Pods); n > 0 {
		return fmt.Sprintf("%d pods of this node have their network from it (links %s); drain the node first, or use --force, which takes their network away",
			n, strings.Join(left.Pods, ", "))
	}
	return ""
}

func (o Options) list(left *hostnet.Leftovers) {
	var all []string
	for _, path := range o.Paths.entrance() {
		all = append(all, fileObject(path))
	}
	all = append(all, left.Objects()...)
	for _, path := range append(o.Paths.records(), o.Paths.state()...) {
		all = append(all, fileObject(path))
	}
	for _, object := range all {
		fmt.Fprintln(o.Out, textWouldRemove+object)
	}
	if len(all) == 0 {
		fmt.Fprintln(o.Out, textNothing)
	}
}

func (o Options) remove(ctx context.Context, left *hostnet.Leftovers) (ok bool) {
	changes := removeAll(o.Paths.entrance(), os.Remove)
	changes = append(changes, left.Remove(ctx)...)
	changes = append(changes, removeAll(o.Paths.records(), os.RemoveAll)...)
	// Where the address book is comes from a setting: no directory goes by it.
	changes = append(changes, removeAll(o.Paths.state(), os.Remove)...)
	ok = true
	for _, c := range changes {
		if c.Err == nil {
			fmt.Fprintln(o.Out, textRemoved+c.Object)
			continue
		}
		ok = false
		fmt.Fprintf(o.Err, "%s%s: %s\n", textFailed, c.Object, strings.ReplaceAll(c.Err.Error(), "\n", "; "))
	}
	if len(changes) == 0 {
		fmt.Fprintln(o.Out, textNothing)
	}
	return ok
}

func fileObject(path string) string { return "file " + path }

func removeAll(paths []string, remove func(string) error) (changes []hostnet.Change) {
	for _, path := range paths {
		changes = append(changes, hostnet.Change{Object: fileObject(path), Err: remove(path)})
	}
	return changes
}
