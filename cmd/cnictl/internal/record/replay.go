package record

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/list"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/tui"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/tui/show"
)

// ReplayOptions are the arguments and flags of replay.
type ReplayOptions struct {
	File    string
	Info    bool    // print a summary
	Print   bool    // print the nodes at one time, even on a terminal
	Speed   float64 // playback speed of the screens
	Screens tui.Options
}

// NewReplay builds the command.
func NewReplay(f *cli.Factory) *cobra.Command {
	opts := &ReplayOptions{}
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Play a recording in the TUI, or list its nodes at a point in time",
		Long: `Play a recording. On a terminal the screens open and play it from --at, else from the
incident marked in the recording, else from its start; p pauses. Off a terminal, or with
--print or -o, the nodes are listed as they were at --at, by default at the end.

--at accepts times as they are displayed (2026-11-21T14:02:11Z, 14:02:11Z, 14:02; UTC unless
a zone is given), an offset from the start (+5m) or from the end (-5m).

These commands read a recording with --replay FILE:
` + strings.NewReplacer(", pod,", ",\npod,", ", version,", ",\nversion,").Replace(access.Replayed()) + `.`,
		Example: "  " + f.Name + " replay night.cnirec\n  " + f.Name + " replay night.cnirec --at 03:12 -o wide\n  " + f.Name +
			" status --replay night.cnirec --at -10m",
		Args: cli.Args(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.File = args[0]
			if opts.Speed <= 0 {
				return cli.Usage("--speed=%v: must be greater than 0", opts.Speed)
			}
			opts.Print = opts.Print || cmd.Flags().Changed("output") || !f.Streams.Interactive && !opts.Screens.Plain
			if opts.Print || opts.Info {
				if err := f.RefuseNamespace(cmd); err != nil {
					return err
				}
			}
			return replay(cmd.Context(), f, opts)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&opts.Info, "info", false, "describe the recording: time range, nodes, samples")
	fs.BoolVar(&opts.Print, "print", false, "list the nodes at a point in time, even on a terminal")
	fs.Float64Var(&opts.Speed, "speed", 1, "playback speed, as a `factor`")
	tui.Flags(cmd, &opts.Screens)
	return cmd
}

// replay shows the recording.
func replay(ctx context.Context, f *cli.Factory, opts *ReplayOptions) error {
	if opts.Info {
		return info(f, opts)
	}
	if opts.Print {
		if err := access.ReadRecording(f, opts.File); err != nil {
			return err
		}
		return list.Nodes(ctx, f)
	}
	return tui.Play(ctx, f, &opts.Screens, opts.File, opts.Speed)
}

// info summarises the file.
func info(f *cli.Factory, opts *ReplayOptions) error {
	if err := output.Refuse(f, output.CSV, output.Name); err != nil {
		return err
	}
	player, err := access.Player(f, opts.File)
	if err != nil {
		return err
	}
	doc := player.Info()
	doc.File = opts.File
	if output.Structured(f) {
		return output.PrintDocument(f, doc, false)
	}
	at := func(t *time.Time) string {
		if t == nil {
			return show.Unknown
		}
		return t.UTC().Format(time.RFC3339)
	}
	lines := []string{
		"fleet    " + show.OrUnknown(doc.Title),
		"from     " + at(doc.From),
		"to       " + at(doc.To) + lasting(doc),
		fmt.Sprintf("nodes    %d", doc.Nodes),
		fmt.Sprintf("samples  %d", doc.Samples),
	}
	if doc.Interrupted {
		lines = append(lines, "the file is cut off; it can be replayed up to that point")
	}
	return output.PrintText(f, lines...)
}

func lasting(doc document.Recording) string {
	if doc.From == nil || doc.To == nil {
		return ""
	}
	return " (" + human.Age(doc.To.Sub(*doc.From)) + ")"
}
