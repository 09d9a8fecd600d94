package capacity

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/capacity/limits"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/lazy"
	"cnictl/doctor/collect/ec2"
	"cnictl/doctor/evidence"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

type reported = document.CapacityFacts

// refreshOptions are the arguments and flags of capacity refresh.
type refreshOptions struct {
	aws, reset bool
	region     string
	list       *output.List[reported]
}

func refresh(f *cli.Factory) *cobra.Command {
	o := &refreshOptions{list: &output.List[reported]{
		Columns: reportedColumns(), Key: func(r reported) string { return r.InstanceType }, Item: func(r reported) any { return r },
	}}
	cmd := &cobra.Command{
		Use:   "refresh",
		Short: "Read the instance types of a region from EC2, for the other capacity commands",
		Long: `Read the instance types that a region offers from EC2 (DescribeInstanceTypes, some 15 requests),
with the AWS credentials of this shell, and show which ones differ from the built-in table or are
new. They are cached; from then on "capacity type", "compare", "subnet", "whatif" and "recommend"
use them instead of the built-in figures. EC2 does not report trunking and branch ENIs: for
new types these stay unknown.

The cache holds one region, the last one that was read, and is ignored once cnictl comes with a
newer table. --reset removes it.`,
		Example: "  {{.Command}} capacity refresh --aws --region eu-west-1\n  {{.Command}} capacity refresh --aws -o json\n" +
			"  {{.Command}} capacity refresh --reset",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.reset && (o.aws || o.region != ""):
				return cli.Usage("--reset removes the cache and reads nothing: leave out --aws and --region")
			case f.Globals.Replay != "":
				return cli.Usage("refresh reads EC2, not a recording: leave out --replay")
			case o.region != "" && !regionName().MatchString(o.region):
				return cli.Usage("--region %q is not an AWS region such as eu-west-1", o.region)
			case o.reset:
				return removeCache(f)
			case !o.aws:
				return &cli.Error{Code: cli.ExitUsage, What: "refresh reads EC2 with the AWS credentials of this shell", Do: "allow it with --aws"}
			}
			return o.run(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.aws, "aws", false, "read EC2 with the AWS credentials of this shell; only DescribeInstanceTypes is called")
	fs.StringVar(&o.region, "region", "", "AWS `region`; default: that of the AWS settings")
	fs.BoolVar(&o.reset, "reset", false, "remove the cached types, so that only the built-in table is used")
	_ = cmd.RegisterFlagCompletionFunc("region", cobra.NoFileCompletions) // fails only for unknown flags
	o.list.Register(f, cmd, false)
	return cmd
}

var regionName = lazy.Regexp(`^[a-z0-9-]{1,40}$`)

func (o *refreshOptions) run(ctx context.Context, f *cli.Factory) error {
	reader, err := ec2.New(ctx, ec2.Options{UserAgent: f.UserAgent()})
	if err != nil {
		return &cli.Error{Code: cli.ExitUsage, What: "cannot read EC2", Why: err.Error(), Do: "aws sts get-caller-identity"}
	}
	region := reader.ResolveRegion(o.region)
	if region == "" {
		return cli.Usage("no AWS region is set: give --region")
	}
	file := cacheFile(f)
	if file == "" {
		return &cli.Error{Code: cli.ExitUsage, What: "no cache directory is known", Do: "set HOME or XDG_CACHE_HOME, or give --cache-dir"}
	}
	if f.Streams.ErrTTY {
		f.Note("reading the instance types of " + region + " from EC2")
	}
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	progress := newProgress(ctx, f)
	read, refused, failed := reader.InstanceTypes(ctx, region, func(n int) {
		progress.say(func() string { return fmt.Sprintf("read %d instance types", n) })
	})
	progress.Erase()
	if failed == nil && len(read) <= len(refused) {
		failed = fmt.Errorf("EC2 returned %s that can be used, and %d that cannot", human.Plural(len(read), "type", "types"), len(refused))
	}
	if failed != nil && len(read) == 0 {
		return notRead(ctx, region, 0, failed)
	}
	for n, err := range refused {
		const most = 10
		if n == most {
			f.Warn("skipped %d more types", len(refused)-most)
			break
		}
		f.Warn("skipped a type: %s", err.Error())
	}
	doc := document.CapacityRefresh{
		APIVersion: introspect.APIVersion, Kind: document.KindCapacityRefresh, Region: region, Types: len(read), Items: []reported{},
		Partial: failed != nil, Errors: []document.NodeError{}, SampledAt: f.Now().UTC(),
	}
	for _, i := range limits.Changed(read) {
		doc.Items = append(doc.Items, factsOf(i))
	}
	if failed == nil {
		if err := writeCache(file, doc); err != nil {
			return &cli.Error{Code: cli.ExitFailure, What: "cannot write the cache", Why: err.Error(), Do: "give another directory with --cache-dir"}
		}
	}
	err = o.list.Print(f, doc.Items, func(chosen []reported) any { out := doc; out.Items = chosen; return out })
	switch {
	case err != nil:
		return err
	case failed != nil:
		return notRead(ctx, region, len(read), failed)
	case !output.Structured(f) && f.Globals.Output != output.CSV:
		f.Note(fmt.Sprintf("Read %s in %s; %d new or different from the built-in table. Cached in %s.", human.Plural(len(read), "type", "types"),
			region, len(doc.Items), file))
	}
	return nil
}

// notRead is the error if reading failed, or was interrupted, after this many types.
func notRead(ctx context.Context, region string, read int, why error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &cli.Error{Code: cli.ExitInterrupted,
			What: fmt.Sprintf("interrupted after %s; the cache is unchanged", human.Plural(read, "type", "types"))}
	}
	e := &cli.Error{Code: cli.ExitUnreachable, What: "cannot read the instance types of " + region + "; the cache is unchanged",
		Why: why.Error(), Do: "check --region, and that EC2's endpoint can be reached"}
	switch {
	case why.Error() == evidence.MissingForbidden:
		e.Do = "allow ec2:DescribeInstanceTypes (deploy/iam/cnictl-doctor.json)"
	case strings.HasPrefix(e.Why, ec2.NoCredentials):
		e.Do = "aws sts get-caller-identity"
	}
	return e
}

func writeCache(file string, doc document.CapacityRefresh) error {
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return cli.ReplaceFile(file, append(text, '\n'))
}

func removeCache(f *cli.Factory) error {
	file := cacheFile(f)
	if err := os.Remove(file); file == "" || errors.Is(err, fs.ErrNotExist) {
		f.Note("nothing is cached")
	} else if err != nil {
		return &cli.Error{Code: cli.ExitFailure, What: "cannot remove the cache", Why: err.Error()}
	} else {
		f.Note("removed " + file)
	}
	return nil
}

func reportedColumns() []query.Column[reported] {
	number := query.Count[reported]
	return []query.Column[reported]{
		{Name: "type", Header: "TYPE", Title: "instance type", Text: func(r reported) string { return r.InstanceType }},
		number("enis", "ENIS", "interfaces of the default network card", 0, func(r reported) *int { return &r.ENIs }),
		number("ips", "IPS", "IPv4 addresses per interface, including its primary one", 0, func(r reported) *int { return &r.IPv4PerENI }),
		number("vcpus", "VCPUS", "vCPUs", 1, func(r reported) *int { return r.VCPUs }),
		{Name: "changes", Header: "CHANGES", Title: "how EC2 differs from the built-in table", Text: differences},
	}
}

// differences describes how a type differs from the built-in table.
func differences(r reported) string {
	if r.New {
		return "new"
	}
	var out []string
	for _, c := range r.Changes {
		out = append(out, fmt.Sprintf("%s %s → %s", c.Name, cmp.Or(c.From, show.Unknown), cmp.Or(c.To, show.Unknown)))
	}
	return strings.Join(out, ", ")
}
