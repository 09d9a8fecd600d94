package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/lazy"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
	"cnictl/doctor/migrate"
	"cnictl/doctor/report"
)

// daemons are the values of --from.
var daemons = []string{"upstream", "ours"}

// reference matches the names of images that kubelet accepts. It is large, and only --images
// needs it.
var reference = lazy.Regexp(`^([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:\w[\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)

// NewMigrate builds migrate with its subcommands.
func NewMigrate(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "migrate",
		Short:   "Prepare a migration from upstream's aws-node to ours, or back",
		Long:    "Prepare a migration from upstream's aws-node to ours, or back. Nothing is changed.",
		Example: "  {{.Command}} migrate check\n  {{.Command}} migrate values --to chart configuration.json",
		Args:    cli.SubcommandArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(migrateCheck(f), migrateValues(f))
	return cmd
}

func migrateCheck(f *cli.Factory) *cobra.Command {
	opts := &Options{move: true, Once: true, FailOn: catalogue.Error.String()}
	var to string
	cmd := &cobra.Command{
		Use:   "check [NODE…]",
		Short: "Check what would block a migration from upstream's aws-node to ours, or back",
		Long: `Check what would block a migration from upstream's aws-node to ours, or back: who owns the
objects, settings and images, permissions, the state of nodes and pods. Nothing is changed.

A check blocks the migration, warns, or is worth knowing (info). The exit status is 0 only if no
check blocks: 3 if one does, 7 if none does but a check is undecided or, with --require-all,
unread. Checks of the kernel and the files of nodes need --via exec with our daemon, or run on a
node with --via local; those of subnets and interfaces need --aws. Without --images the new images
are not checked. doctor explain CODE describes a check. --suppress accepts a finding.`,
		Example: "  {{.Command}} migrate check\n  {{.Command}} migrate check --from upstream --aws -o json\n" +
			"  {{.Command}} migrate check --from ours --to v1.22.4 --via exec\n" +
			"  {{.Command}} migrate check --images registry.example/aws-vpc-cni:v1,registry.example/aws-vpc-cni-init:v1," +
			"registry.example/aws-network-policy-agent:v1.4.2\n  {{.Command}} migrate check --bundle cnictl-bundle.tar.gz\n" +
			"  {{.Command}} migrate check --suppress migrate/probe-addr=cluster",
		Args:              cli.Args(0, -1, ""),
		ValidArgsFunction: completion.Nodes(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.checkMove(f, to); err != nil {
				return err
			}
			ev, err := opts.gather(cmd.Context(), f, args, "")
			if err != nil {
				return err
			}
			return opts.checkMigration(f, ev)
		},
	}
	output.Forms(cmd, []string{output.CSV, output.Name})
	fs := cmd.Flags()
	fs.StringVar(&opts.from, "from", "", "the running daemon: "+strings.Join(daemons, " or ")+"; default: detected")
	fs.StringVar(&to, "to", "", "upstream release to move to, such as v1.23.1: of the daemon when going back, or of the add-on")
	fs.StringSliceVar(&opts.images, "images", nil, "images of the new pods, as in their spec; no registry is contacted")
	fs.BoolVar(&opts.AWS, "aws", false,
		"also read EC2, EKS and IAM, with the AWS credentials of this shell; only read-only actions are called")
	fs.BoolVar(&opts.requireAll, "require-all", false, "exit with status 7 if a check is unread, as if it were undecided")
	fs.BoolVar(&opts.Fix, "fix", false, "show how to fix what is found, step by step with side effects; nothing is changed")
	fs.StringVar(&opts.Save, "save-evidence", "", "write what was read to this file (- is standard output), for --evidence")
	fs.StringArrayVar(&opts.Suppress, "suppress", nil,
		"accept a finding: CODE=SCOPE[@UNTIL]; SCOPE is a node, pod, interface, subnet or cluster")
	opts.registerFiles(cmd)
	opts.registerLines(cmd)
	_ = cmd.MarkFlagFilename("save-evidence", "yaml", "yml", "json") // fails only for unknown flags
	_ = cmd.RegisterFlagCompletionFunc("suppress", complete)
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(daemons, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// checkMove checks the flags before anything is read.
func (o *Options) checkMove(f *cli.Factory, to string) error {
	if o.from != "" && o.from != daemons[0] && o.from != daemons[1] {
		return cli.Usage("--from=%s: must be one of %s", o.from, strings.Join(daemons, ", "))
	}
	if to != "" {
		var ok bool
		if o.to, ok = evidence.ParseVersion(to); !ok {
			return cli.Usage("--to=%s: want a release, such as v1.23.1", to)
		}
	}
	for _, image := range o.images {
		if !reference().MatchString(image) {
			return cli.Usage("--images=%s: want the name of an image, such as registry.example/aws-vpc-cni:v1", image)
		}
	}
	once := o.Once
	o.Once = o.Evidence == "" && o.Bundle == "" // --once does not apply to a file
	err := o.check(f)
	o.Once = once
	return err
}

// checkMigration diagnoses the evidence and prints the result of each check.
func (o *Options) checkMigration(f *cli.Factory, ev *evidence.Evidence) error {
	from, release := migrate.Daemon(ev)
	if o.from != "" && from != "" && o.from != from {
		return &cli.Error{
			Code: cli.ExitUsage, What: fmt.Sprintf("--from=%s, but the daemon that runs is %s", o.from,
				map[string]string{"upstream": "upstream's", "ours": "ours"}[from]),
			Do: f.Name + " migrate check --from " + from,
		}
	}
	r := o.diagnose(f, ev)
	if o.Save != "" {
		if err := save(f, o.Save, ev, &r); err != nil || o.Save == "-" {
			return err
		}
	}
	m := report.Migration(&r, from, release)
	if output.Structured(f) {
		if err := output.PrintDocument(f, m, false); err != nil {
			return err
		}
	} else {
		lines := o.migrationPage(f, &m, &r)
		if o.Fix {
			r.Verdict = m.Verdict
			lines = planPage(f, &r)
		}
		if err := output.PrintLines(f, lines); err != nil {
			return err
		}
	}
	switch {
	case m.Blocks > 0:
		return cli.Exit(cli.ExitFindings)
	case m.Undecided > 0, o.requireAll && slices.ContainsFunc(m.Checks,
		func(row document.MigrationRow) bool { return row.Result == report.Unchecked }):
		return cli.Exit(cli.ExitNoEvidence)
	}
	return nil
}

// migrationPage formats the check for people: first what fires, then what does not.
func (o *Options) migrationPage(f *cli.Factory, m *document.MigrationCheck, r *document.DoctorReport) []string {
	p := &output.Page{Opts: output.TableOptions(f)}
	class := paint.OK
	if m.Blocks > 0 {
		class = paint.Bad
	} else if m.Warnings > 0 || m.Undecided > 0 {
		class = paint.Warn
	}
	p.Line(table.Cell{Text: m.Verdict, Class: class})
	if m.From != "" {
		p.Text(strings.TrimSpace("from " + m.From + " " + m.Release))
	}
	for i := range r.Findings { // the worst first
		o.finding(p, f, &r.Findings[i], report.CheckResult(&r.Findings[i]), r.SampledAt)
	}
	p.Lines = append(p.Lines, "")
	by := map[string][]string{}
	for _, row := range m.Checks {
		by[row.Result] = append(by[row.Result], strings.TrimPrefix(row.Code, catalogue.GroupMigrate+"/"))
	}
	for _, result := range []string{report.Pass, report.Accepted, report.Undecided, report.Unchecked} {
		if codes := by[result]; len(codes) > 0 {
			p.Field(result, strings.Join(codes, "  "))
		}
	}
	unread(p, f, r)
	return trimmed(p.Lines)
}
