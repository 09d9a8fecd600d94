package doctor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
	"cnictl/doctor/migrate"
	"cnictl/doctor/report"
	"cnictl/tui/query"
)

// Options are the arguments and flags of an examination.
type Options struct {
	Evidence string // evidence file to read instead of nodes
	Bundle   string // archive to read instead of nodes
	Once     bool   // take a single reading
	AWS      bool   // query EC2 too
	Watch    bool   // repeat the examination
	Save     string // file to write the evidence to
	FailOn   string
	Strict   bool

	EvidenceLines int // lines of evidence per finding, without -o wide
	ExitZero      bool
	Fix           bool // print the plan instead of the findings
	Only          []string
	Skip          []string
	Suppress      []string

	move       bool // cnictl migrate check
	from       string
	to         evidence.Version
	images     []string // of the new pods
	requireAll bool     // unread checks count as undecided
	threshold  catalogue.Severity
	suppressed []report.Suppression
	warned     bool // about suppressions without effect
}

// formJUnit and the others are the doctor's additional output forms.
const (
	formJUnit    = "junit"
	formMarkdown = "markdown"
	formSARIF    = "sarif"
)

// registerLines adds the flag for the length of a finding.
func (o *Options) registerLines(cmd *cobra.Command) {
	cmd.Flags().IntVar(&o.EvidenceLines, "evidence-lines", 5, "show at most this many lines of evidence per finding; -o wide shows all")
}

// register adds the flags for an examination.
func (o *Options) register(cmd *cobra.Command) {
	output.Forms(cmd, []string{output.CSV, output.Name}, formJUnit, formMarkdown, formSARIF)
	fs := cmd.Flags()
	fs.StringVar(&o.Save, "save-evidence", "", "write what was read to this file (- is standard output), for --evidence")
	fs.StringVar(&o.FailOn, "fail-on", catalogue.Error.String(),
		"exit with status 3 for findings of at least this severity: "+strings.Join(report.Severities(), ", "))
	o.registerLines(cmd)
	fs.BoolVar(&o.Strict, "strict", false, "exit with status 7 also for checks without a result, because a source could not be read")
	fs.BoolVar(&o.ExitZero, "exit-zero", false, "exit with status 0 whatever is found")
	fs.BoolVar(&o.Fix, "fix", false, "show how to fix what is found, step by step with side effects; nothing is changed")
	fs.StringSliceVar(&o.Only, "only", nil, "check only these causes: codes, groups or patterns in which * matches any text")
	fs.StringSliceVar(&o.Skip, "skip", nil, "do not check these causes")
	fs.StringArrayVar(&o.Suppress, "suppress", nil, "accept a finding: CODE=SCOPE[@UNTIL]; SCOPE is a node, pod, interface, subnet or cluster")
	for _, name := range []string{"only", "skip", "suppress"} {
		_ = cmd.RegisterFlagCompletionFunc(name, complete) // fails only for unknown flags
	}
	_ = cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(report.Severities(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("save-evidence", "yaml", "yml", "json")
}

// check checks the flags before anything is read.
func (o *Options) check(f *cli.Factory) error {
	var ok bool
	if o.threshold, ok = report.Severity(o.FailOn); !ok {
		return cli.Usage("--fail-on=%s: must be one of %s", o.FailOn, strings.Join(report.Severities(), ", "))
	}
	for _, list := range [][]string{o.Only, o.Skip} {
		for _, pattern := range list {
			if _, err := matching(f, []string{pattern}); err != nil {
				return err
			}
		}
	}
	if !slices.ContainsFunc(catalogue.Codes(), o.wants) {
		return &cli.Error{Code: cli.ExitUsage, What: "--only and --skip leave no cause to check",
			Do: f.Name + " migrate check examines the group " + catalogue.GroupMigrate}
	}
	if files := o.Evidence != "" || o.Bundle != ""; files && (o.Evidence != "" && o.Bundle != "" || o.Watch || o.Once || o.AWS) {
		return cli.Usage("--evidence and --bundle name a file that is examined as it is: give one of them, without --watch, --once and --aws")
	}
	o.suppressed = nil
	for _, text := range o.Suppress {
		s, err := report.ParseSuppression(text)
		if err != nil {
			return cli.Usage("--suppress: %v", err)
		}
		o.suppressed = append(o.suppressed, s)
	}
	if o.Watch && (o.Save != "" || f.Recording != nil) {
		return cli.Usage("--watch reads live nodes, again and again: leave out --save-evidence and --replay")
	}
	return nil
}

// wants reports whether to check for a cause.
func (o *Options) wants(code string) bool {
	in := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			if !strings.ContainsAny(p, "/*") {
				p += "/*"
			}
			return query.Glob(code, strings.ToLower(p))
		})
	}
	moves := strings.HasPrefix(code, catalogue.GroupMigrate+"/")
	return moves == o.move && (len(o.Only) == 0 || in(o.Only)) && !in(o.Skip)
}

// load reads the evidence file.
func (o *Options) load(f *cli.Factory) (*evidence.Evidence, error) {
	name, in := o.Evidence, f.Streams.In
	if name == "-" {
		name = "standard input"
	} else {
		opened, err := open(name)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		in = opened
	}
	data, err := io.ReadAll(io.LimitReader(in, file.MaxBytes+1))
	if err != nil {
		return nil, &cli.Error{Code: cli.ExitUsage, What: name + " cannot be read", Why: reason(err)}
	}
	ev, err := file.Load(data)
	if err != nil {
		return nil, &cli.Error{Code: cli.ExitUsage, What: name + " is not an evidence file", Why: err.Error(), Do: f.Name + " help evidence"}
	}
	return ev, nil
}

// open opens a regular file. Anything else could block the doctor forever.
func open(name string) (*os.File, error) {
	fail := func(why string) (*os.File, error) {
		return nil, &cli.Error{Code: cli.ExitUsage, What: name + " cannot be read", Why: why}
	}
	info, err := os.Stat(name)
	if err != nil {
		return fail(reason(err))
	}
	if !info.Mode().IsRegular() {
		return fail("it is not a regular file")
	}
	in, err := os.Open(name)
	if err != nil {
		return fail(reason(err))
	}
	return in, nil
}

func reason(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// save writes the evidence to a file, or with - to standard output. If there are too many
// nodes for a file, it leaves out those without findings.
func save(f *cli.Factory, name string, ev *evidence.Evidence, r *document.DoctorReport) error {
	data, err := file.Save(ev)
	if errors.Is(err, file.ErrTooLarge) {
		some := *ev
		some.Nodes = slices.Clone(ev.Nodes)
		some.Nodes = slices.DeleteFunc(some.Nodes, func(n evidence.Node) bool {
			return !slices.ContainsFunc(slices.Concat(r.Findings, r.Explained),
				func(found document.Finding) bool { return slices.Contains(found.Nodes, n.Name) })
		})
		if len(some.Nodes) > 0 {
			f.Warn("the evidence of %d nodes is too large for a file: %s has the %d nodes with findings", len(ev.Nodes), name, len(some.Nodes))
			data, err = file.Save(&some)
		}
	}
	if err != nil {
		return fmt.Errorf("save the evidence: %w", err)
	}
	if name == "-" {
		_, err = f.Streams.Out.Write(data)
	} else {
		err = cli.ReplaceFile(name, data)
	}
	if err != nil {
		return fmt.Errorf("save the evidence: %w", err)
	}
	return nil
}

// Examine diagnoses the evidence and prints what it finds.
func Examine(f *cli.Factory, o *Options, ev *evidence.Evidence) error {
	r := o.diagnose(f, ev)
	if o.Save == "-" {
		return save(f, o.Save, ev, &r)
	}
	if err := o.print(f, &r); err != nil {
		return err
	}
	if o.Save != "" {
		if err := save(f, o.Save, ev, &r); err != nil {
			return err
		}
	}
	if o.ExitZero {
		return nil
	}
	switch report.ResultOf(&r, o.threshold, o.Strict) {
	case report.Found:
		return cli.Exit(cli.ExitFindings)
	case report.NoEvidence:
		return cli.Exit(cli.ExitNoEvidence)
	case report.Partial:
		if !f.Globals.AllowPartial {
			return cli.Exit(cli.ExitPartial)
		}
	}
	return nil
}

// page returns the report for people, or with --fix the plan.
func (o *Options) page(f *cli.Factory, r *document.DoctorReport) []string {
	if o.Fix {
		return planPage(f, r)
	}
	return o.reportPage(f, r)
}

// diagnose examines the evidence for the wanted causes.
func (o *Options) diagnose(f *cli.Factory, ev *evidence.Evidence) document.DoctorReport {
	var r document.DoctorReport
	if o.move {
		r = migrate.Move{To: o.to, Images: o.images}.Diagnose(ev, o.wants)
	} else {
		r = causes.Diagnose(ev, causes.Options{Wants: o.wants})
	}
	idle := report.Suppress(&r, o.suppressed, f.Now())
	if o.warned {
		idle = nil // --watch: warn only once
	}
	for _, s := range idle {
		if s.Expired(f.Now()) {
			f.Warn("--suppress %s=%s expired on %s", s.Code, s.Scope, s.Until.UTC().Format(time.RFC3339))
		} else {
			f.Warn("--suppress %s=%s matches no finding", s.Code, s.Scope)
		}
	}
	o.warned = true
	report.FillIn(&r)
	return r
}

func (o *Options) print(f *cli.Factory, r *document.DoctorReport) error {
	var b []byte
	var err error
	switch f.Globals.Output {
	case formMarkdown:
		b = report.Markdown(r)
	case formJUnit:
		b, err = report.JUnit(r, o.threshold)
	case formSARIF:
		b, err = report.SARIF(r, f.Version)
	default:
		if output.Structured(f) {
			return output.PrintDocument(f, r, false)
		}
		return output.PrintLines(f, o.page(f, r))
	}
	if err != nil {
		return err
	}
	if _, err := f.Streams.Out.Write(b); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
