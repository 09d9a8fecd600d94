package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/lazy"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/bundle"
)

// bundleOptions are the arguments and flags of bundle.
type bundleOptions struct {
	Nodes     []string
	File      string // - is standard output; empty: a generated name in the working directory
	Anonymize bool
	Once      bool
	AWS       bool
	MaxSize   string

	maxBytes int64
}

// NewBundle builds the command.
func NewBundle(f *cli.Factory) *cobra.Command {
	opts := &bundleOptions{}
	cmd := &cobra.Command{
		Use:   "bundle [NODE…]",
		Short: "Collect what the doctor reads into one archive, to share",
		Long: `Collect what the doctor reads into one archive: the NODEs in full, or without NODEs all nodes,
in full where they look faulty. Each is read twice, --interval (15 seconds) apart, or once
with --once. With --via exec the archive also has the kernel state and the files of nodes
that run this daemon. On a node without a cluster, the archive has this node.

Credentials, container IDs and AWS account IDs are always omitted. --anonymize also replaces
names, addresses and IDs, consistently, so that the doctor finds the same causes. The manifest
lists what could not be read and why. If the archive would exceed --max-size, the oldest log
bundleLines are omitted.

The file has mode 0600; an existing file is never replaced.
` + f.Name + ` doctor --bundle FILE examines it, and archives of eks-log-collector and
aws-cni-support.sh.`,
		Example:           "  {{.Command}} bundle\n  {{.Command}} bundle ip-10-0-3-17.ec2.internal --anonymize -f support.tar.gz",
		Args:              cli.Args(0, -1, ""),
		ValidArgsFunction: completion.Nodes(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			opts.Nodes = args
			if opts.maxBytes, err = parseSize(opts.MaxSize); err != nil {
				return cli.Usage("--max-size=%s: %v", opts.MaxSize, err)
			}
			return writeBundle(cmd.Context(), f, opts)
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&opts.File, "output-file", "f", "", "write the archive to this new `file` (- is standard output); default: cnictl-bundle-CLUSTER-TIME.tar.gz")
	fs.BoolVar(&opts.Anonymize, "anonymize", false, "replace names, addresses and IDs, consistently across the archive")
	fs.BoolVar(&opts.Once, "once", false, "read once only")
	fs.BoolVar(&opts.AWS, "aws", false, "also read EC2, EKS and IAM, with the AWS credentials of this shell; only read-only actions are called")
	fs.StringVar(&opts.MaxSize, "max-size", "20MiB", "maximum `size` of the archive: 500KiB, 20MiB")
	_ = cmd.MarkFlagFilename("output-file", "gz", "tgz")
	return cmd
}

// parseSize parses a number of bytes: 500KiB, 20MiB, 20MB, 1GiB.
func parseSize(text string) (int64, error) {
	digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
	unit := map[string]int64{"": 1, "B": 1, "K": 1 << 10, "KB": 1000, "KIB": 1 << 10, "M": 1 << 20, "MB": 1e6, "MIB": 1 << 20, "G": 1 << 30,
		"GB": 1e9, "GIB": 1 << 30}[strings.ToUpper(text[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 1 || unit == 0 {
		return 0, errors.New("want a size such as 500KiB or 20MiB")
	}
	return n * unit, nil
}

// writeBundle collects the data and writes the archive.
func writeBundle(ctx context.Context, f *cli.Factory, opts *bundleOptions) (err error) {
	if err := output.Refuse(f, output.CSV, output.Name); err != nil {
		return err
	}
	way, err := access.Find(ctx, f, opts.Nodes)
	if err != nil {
		return err
	}
	name := cmp.Or(opts.File, fileName(f, opts, way.Title()))
	out, done, err := create(f, name)
	if err != nil {
		return err
	}
	defer func() { err = done(err) }()
	ev, err := Collect(ctx, f, Nodes{Names: opts.Nodes, Once: opts.Once, AWS: opts.AWS, Installation: true}, nil)
	if err != nil {
		return err
	}
	count := &counter{Writer: out}
	m, err := bundle.Write(count, ev, bundle.Options{Version: f.Version, MaxBytes: opts.maxBytes, Anonymize: opts.Anonymize})
	if err != nil {
		return &cli.Error{Code: cli.ExitFailure, What: "cannot write the bundle", Why: err.Error()}
	}
	switch {
	case name == "-":
		return nil
	case output.Structured(f):
		return output.PrintDocument(f, m, false)
	}
	return output.PrintText(f, bundleLines(f, name, count.n, m)...)
}

// bundleLines list what was written and what is missing.
func bundleLines(f *cli.Factory, name string, size int64, m bundle.Manifest) []string {
	out := []string{fmt.Sprintf("%s: %s, %d KiB", name, human.Plural(len(m.Nodes), "node", "nodes"), (size+1023)>>10)}
	nodes := map[string]int{} // by source and reason
	dropped := 0
	for _, n := range m.Nodes {
		for source, reason := range n.Missing {
			nodes[source+": "+reason]++
		}
		for _, bundleLines := range n.Dropped {
			dropped += bundleLines
		}
	}
	if dropped > 0 {
		out = append(out, fmt.Sprintf("omitted to save space: the %s of logs", human.Plural(dropped, "oldest line", "oldest lines")))
	}
	byReason := map[string][]string{}
	for _, missing := range slices.Sorted(maps.Keys(nodes)) {
		source, reason, _ := strings.Cut(missing, ": ")
		if n := nodes[missing]; n < len(m.Nodes) {
			source += fmt.Sprintf(" (on %d)", n)
		}
		byReason[reason] = append(byReason[reason], source)
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		text := reason
		switch reason {
		case evidence.MissingMode:
			text = "not available from here; on nodes that run this daemon, --via exec reads most of it"
		case evidence.MissingNotAsked:
			text = "not requested"
		}
		out = append(out, "not read, "+text+": "+strings.Join(byReason[reason], " "))
	}
	return append(out, "examine it: "+f.Name+" doctor --bundle "+name)
}

// counter counts the bytes written.
type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	return n, err
}

// unplain matches characters to avoid in file names.
var unplain = lazy.Regexp(`[^A-Za-z0-9._-]+`)

// fileName has the cluster and the time; without the cluster for an anonymous archive.
func fileName(f *cli.Factory, opts *bundleOptions, title string) string {
	name := "cnictl-bundle-"
	if !opts.Anonymize {
		title = title[strings.LastIndexByte(title, '/')+1:] // an ARN ends in the name
		if title = strings.Trim(unplain().ReplaceAllString(title, "-"), "-."); title != "" {
			name += title[:min(len(title), 64)] + "-"
		}
	}
	return name + f.Now().UTC().Format("20060102T150405Z") + ".tar.gz"
}

// create makes the file, readable by its owner only. It never replaces a file. Passing an
// error to done removes it.
func create(f *cli.Factory, name string) (io.Writer, func(error) error, error) {
	if name == "-" {
		return f.Streams.Out, func(err error) error { return err }, nil
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		e := &cli.Error{Code: cli.ExitFailure, What: "cannot write the bundle", Why: err.Error()}
		if errors.Is(err, os.ErrExist) {
			e = &cli.Error{Code: cli.ExitUsage, What: name + " already exists", Do: "choose another name: -f FILE"}
		}
		return nil, nil, e
	}
	return file, func(err error) error {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Remove(name))
		}
		return err
	}, nil
}
