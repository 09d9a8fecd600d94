package doctor

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/kubeconfig"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
	"cnictl/tui/query"
)

// New builds the command with its subcommands.
func New(f *cli.Factory) *cobra.Command {
	opts := &Options{}
	cmd := &cobra.Command{
		Use:   "doctor [NODE…]",
		Short: "Find out why pods get no address or no network, and how to fix it",
		Long: `Find out why pods get no address or no network: what is not as it should be, which known
cause explains it, how sure that is, and how to fix it. Nothing is changed.

All nodes are read once, and those that look faulty twice and in full, --interval (15 seconds)
apart. NODEs are always read in full. With --via exec, kernel state is read in the aws-node
containers of our daemon too.

A finding is confirmed when everything was seen that its cause requires, probable when the
decisive fact was seen, and suspected when only symptom and settings fit. What could not be
read is listed. What no cause explains is a finding of its own, obs/KIND. The exit status is 3
for findings from --fail-on up, and 7 if nothing could be read or, with --strict, not all.`,
		Example: "  {{.Command}} doctor\n  {{.Command}} doctor ip-10-0-3-17 --fix\n  {{.Command}} doctor pod shop/cart-7d9f-1\n" +
			"  {{.Command}} doctor --bundle eks_i-0abc_2026-11-21_1402-UTC_0.7.9.tar.gz\n" +
			"  {{.Command}} doctor --fail-on warning -o junit > doctor.xml",
		Args:              cli.Args(0, -1, ""),
		ValidArgsFunction: completion.Nodes(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), f, opts, args, "")
		},
	}
	opts.registerLive(cmd)
	opts.registerFiles(cmd)
	cmd.AddCommand(pod(f), list(f), explain(f))
	return cmd
}

// pod builds the command doctor pod.
func pod(f *cli.Factory) *cobra.Command {
	opts := &Options{}
	cmd := &cobra.Command{
		Use:   "pod [NAMESPACE/]NAME",
		Short: "Find out why one pod gets no address or no network",
		Long: `Find out why one pod gets no address or no network. Its node is examined in full, with
everything that the daemon and Kubernetes report about the pod.`,
		Example:           "  {{.Command}} doctor pod shop/cart-7d9f-1",
		Args:              cli.Args(1, 1, "NAMESPACE/NAME"),
		ValidArgsFunction: completion.Pods(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := f.Pod(args[0], kubeconfig.Namespace(f))
			if err != nil {
				return err
			}
			return run(cmd.Context(), f, opts, nil, evidence.Pod(ref.Namespace+"/"+ref.Name))
		},
	}
	opts.registerLive(cmd)
	return cmd
}

func run(ctx context.Context, f *cli.Factory, opts *Options, names []string, pod evidence.Pod) error {
	if err := opts.check(f); err != nil {
		return err
	}
	if opts.Watch {
		return opts.follow(ctx, f, func(ctx context.Context) (*evidence.Evidence, error) {
			return Collect(ctx, f, Nodes{Names: names, Pod: pod, Once: true, AWS: opts.AWS}, nil)
		})
	}
	ev, err := opts.gather(ctx, f, names, pod)
	if err != nil {
		return err
	}
	return Examine(f, opts, ev)
}

// complete completes the codes of causes.
func complete(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	var out []string
	if cmd.Name() != "explain" || len(args) == 0 {
		every, moving := cmd.Name() == "explain" || cmd.Name() == "list", cmd.Name() == "check"
		for e := range catalogue.All() {
			if strings.HasPrefix(e.Code, word) && (every || moving == (e.Group() == catalogue.GroupMigrate)) {
				out = append(out, e.Code+"\t"+e.Title)
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// notFound is the error for a code or pattern that matches no cause.
func notFound(f *cli.Factory, what, code string) error {
	e := &cli.Error{Code: cli.ExitNotFound, What: what, Do: f.Name + " doctor list"}
	if strings.ContainsAny(strings.TrimSpace(code), " \n") {
		e.Why, e.Do = "a code is group/name; texts have a command of their own", f.Name+" explain 'TEXT'"
		return e
	}
	if near := near(code); len(near) > 0 {
		e.Why = "did you mean " + strings.Join(near, " or ") + "?"
		if len(near) == 1 {
			e.Do = f.Name + " doctor explain " + near[0]
		}
	}
	return e
}

// near returns the codes that were probably meant; the part before the slash may be missing.
func near(code string) []string {
	if near := query.Near(code, catalogue.Codes()); len(near) > 0 {
		return near
	}
	_, typed, both := strings.Cut(code, "/")
	if !both {
		typed = code
	}
	codes := map[string]string{}
	var names []string
	for _, c := range catalogue.Codes() {
		_, name, _ := strings.Cut(c, "/")
		codes[name] = c
		names = append(names, name)
	}
	found := query.Near(typed, names)
	for i, name := range found {
		found[i] = codes[name]
	}
	return found
}
