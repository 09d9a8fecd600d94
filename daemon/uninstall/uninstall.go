package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/internal/hostnet"
)

// Options says what to uninstall. Only Force and DryRun are optional.
type Options struct {
	Paths      Paths
	VethPrefix string // of pods' links, besides the usual ones
	DryRun     bool   // print what would be removed, and remove nothing
	Force      bool   // also with a running daemon, and including the network of living pods
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
		// What was found is still removed; what could not be read may be left.
		fmt.Fprintf(o.Err, "%s%s\n", textFailed, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if reason := o.refuse(ctx, left); reason != "" {
		if o.DryRun {
			o.list(left)
		}
		fmt.Fprintln(o.Err, "aws-k8s-agent: nothing uninstalled:", reason)
		return Failed
	}
	work := o.remove
	if o.DryRun {
		work = func(_ context.Context, left *hostnet.Leftovers) bool { return o.list(left) }
	}
	ok := work(ctx, left)
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // none without /proc
	if path, unseen := o.Paths.unseen(string(mounts)); unseen {
		ok = false
		fmt.Fprintf(o.Err, "%sleases of egress addresses, if any: this container has no %s; mount the host's %s there, as deploy/uninstall.yaml does\n",
			textFailed, path, o.Paths.State)
	}
	fmt.Fprint(o.Out, textLeft)
	for _, eni := range left.Kept {
		fmt.Fprintln(o.Out, "  "+eni)
	}
	return code(ok && err == nil)
}

func code(ok bool) int {
	if ok {
		return Clean
	}
	return Failed
}

// refuse returns why nothing may be removed, or "".
func (o Options) refuse(ctx context.Context, left *hostnet.Leftovers) string {
	if o.Force {
		return ""
	}
	if socket, ok := o.Paths.running(ctx); ok {
		return fmt.Sprintf("a daemon runs on this node (%s answers) and would recreate everything; delete the DaemonSet aws-node first, or use --force", socket)
	}
	if n := len(left.Pods); n > 0 {
		return fmt.Sprintf("%d pods on this node use its network (links %s); drain the node first, or use --force, which cuts off their network",
			n, strings.Join(left.Pods, ", "))
	}
	return ""
}

// list prints what would be removed, and what cannot be.
func (o Options) list(left *hostnet.Leftovers) (ok bool) {
	files := func(paths []string) []hostnet.Change { return removeAll(paths, writable) }
	all := files(o.Paths.runtimeFiles())
	for _, object := range left.Objects() {
		all = append(all, hostnet.Change{Object: object})
	}
	all = append(all, files(o.Paths.records())...)
	return o.print(append(all, files(o.Paths.state())...), textWouldRemove)
}

func (o Options) remove(ctx context.Context, left *hostnet.Leftovers) (ok bool) {
	changes := removeAll(o.Paths.runtimeFiles(), os.Remove)
	changes = append(changes, left.Remove(ctx)...)
	changes = append(changes, removeAll(o.Paths.records(), os.RemoveAll)...)
	// A setting names the address book's path, so it must not remove a directory.
	changes = append(changes, removeAll(o.Paths.state(), os.Remove)...)
	return o.print(changes, textRemoved)
}

// print prints what was done, one line per object.
func (o Options) print(changes []hostnet.Change, done string) (ok bool) {
	ok = true
	for _, c := range changes {
		if c.Err == nil {
			fmt.Fprintln(o.Out, done+c.Object)
			continue
		}
		ok = false
		hint := ""
		if errors.Is(c.Err, unix.EROFS) {
			hint = "; mount it writable, as deploy/uninstall.yaml does"
		}
		fmt.Fprintf(o.Err, "%s%s: %s%s\n", textFailed, c.Object, strings.ReplaceAll(c.Err.Error(), "\n", "; "), hint)
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
