// Package about implements the commands about cnictl itself: version and config.
package about

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// NewConfig builds the command.
func NewConfig(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config [view]", Short: "Show this tool's settings and where each comes from",
		Long: `Show this tool's settings and where each comes from. For the settings of a node's
daemon see ` + f.Name + ` node config.`,
		Example: "  {{.Command}} config view",
		Args:    cli.SubcommandArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(view(f))
	return cmd
}

func view(f *cli.Factory) *cobra.Command {
	list := &output.List[document.Setting]{
		Columns: columns(), Key: func(s document.Setting) string { return s.Name }, Item: func(s document.Setting) any { return s },
		Free: "value",
	}
	cmd := &cobra.Command{
		Use:   "view",
		Short: "Print each setting with its value and its source",
		Long: `Print each setting with its value and its source. Flags take precedence over environment
variables (CNICTL_ and the flag's name), then the settings file, then the default.
Credentials are never printed and never read from the file.`,
		Example: "  {{.Command}} config view\n  {{.Command}} config view --filter 'source!=default'\n" +
			"  CNICTL_INTERVAL=10s {{.Command}} config view -o json",
		Args: cli.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list.Print(f, settings(f, cmd.InheritedFlags()), func(items []document.Setting) any {
				return document.Settings{
					APIVersion: introspect.APIVersion, Kind: document.KindSettings, File: f.ConfigFile(), Items: items,
					Errors: []document.NodeError{}, SampledAt: f.Now().UTC(),
				}
			})
		},
	}
	list.Register(f, cmd, false)
	return cmd
}

func columns() []query.Column[document.Setting] {
	text := func(name, title string, wide bool, of func(document.Setting) string) query.Column[document.Setting] {
		return query.Column[document.Setting]{Name: name, Header: strings.ToUpper(name), Title: title, Wide: wide, Text: of}
	}
	return []query.Column[document.Setting]{
		text("name", "name of the flag", false, func(s document.Setting) string { return s.Name }),
		text("value", "effective value", false, func(s document.Setting) string { return show.OrUnknown(s.Value) }),
		text("source", "flag, environment, file or default", false, func(s document.Setting) string { return s.Source }),
		text("environment", "environment variable that sets it", true, func(s document.Setting) string { return s.Environment }),
		text("default", "default value", true, func(s document.Setting) string { return show.OrUnknown(s.Default) }),
	}
}

// settings returns the global flags and the keys of the screens.
func settings(f *cli.Factory, flags *pflag.FlagSet) []document.Setting {
	items := []document.Setting{}
	flags.VisitAll(func(flag *pflag.Flag) {
		s := document.Setting{
			Name: flag.Name, Value: valueOf(flag.Value), Source: f.SourceOf(flag.Name), Environment: cli.EnvName(flag.Name),
			Default: valueText(flag.DefValue),
		}
		if cli.Secret(flag.Name) && s.Value != "" {
			s.Value = "(set)"
		}
		items = append(items, s)
	})
	for action, keys := range f.Keys() {
		items = append(items, document.Setting{Name: "keys." + action, Value: strings.Join(keys, " "), Source: cli.FromFile})
	}
	slices.SortFunc(items, func(a, b document.Setting) int { return strings.Compare(a.Name, b.Name) })
	return items
}

func valueOf(v pflag.Value) string {
	if list, ok := v.(pflag.SliceValue); ok {
		return strings.Join(list.GetSlice(), ",")
	}
	return v.String()
}

// valueText removes the brackets from the default value of a list.
func valueText(s string) string {
	if s == "[]" {
		return ""
	}
	return s
}
