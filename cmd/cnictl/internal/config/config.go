// Package config is cnictl config: what the settings of the tool are, and where each is
// from.
package config

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
)

// document is what -o json prints.
type document struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	File       string    `json:"file"` // where settings are read from; empty: nowhere
	Items      []Setting `json:"items"`
}

// Setting is one setting.
type Setting struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	Source      string `json:"source"`      // flag, environment, file, default
	Environment string `json:"environment"` // the variable that sets it
	Default     string `json:"default"`
}

// New builds the command.
func New(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config [view]", Short: "Show the settings of this tool and where each is from",
		Args: cli.SubcommandArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(view(f))
	return cmd
}

func view(f *cli.Factory) *cobra.Command {
	list := &cli.List[Setting]{
		Columns: columns(), Key: func(s Setting) string { return s.Name }, Item: func(s Setting) any { return s }, Free: "value",
	}
	cmd := &cobra.Command{
		Use:   "view",
		Short: "Print each setting, its value and its source",
		Long: `Print each setting, its value and its source: a flag comes before the environment
(CNICTL_ and the flag's name), that before the file, that before the default.
Values of credentials are never shown, nor read from the file.`,
		Example: "  {{.Command}} config view\n  {{.Command}} config view --filter 'source!=default'\n  CNICTL_INTERVAL=10s {{.Command}} config view -o json",
		Args:    cli.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := list.Check(f); err != nil {
				return err
			}
			return list.Print(f, settings(f, cmd.InheritedFlags()), func(items []Setting) any {
				return document{introspect.APIVersion, "Settings", f.ConfigFile(), items}
			})
		},
	}
	list.Register(f, cmd, false)
	return cmd
}

func columns() []query.Column[Setting] {
	text := func(name, title string, wide bool, of func(Setting) string) query.Column[Setting] {
		return query.Column[Setting]{Name: name, Header: strings.ToUpper(name), Title: title, Wide: wide, Text: of}
	}
	return []query.Column[Setting]{
		text("name", "the flag", false, func(s Setting) string { return s.Name }),
		text("value", "in effect", false, func(s Setting) string { return show.OrUnknown(show.Safe(s.Value)) }),
		text("source", "flag, environment, file or default", false, func(s Setting) string { return s.Source }),
		text("environment", "the variable that sets it", true, func(s Setting) string { return s.Environment }),
		text("default", "without any setting", true, func(s Setting) string { return show.OrUnknown(s.Default) }),
	}
}

// settings are the global flags and the keys of the screens.
func settings(f *cli.Factory, flags *pflag.FlagSet) []Setting {
	items := []Setting{}
	flags.VisitAll(func(flag *pflag.Flag) {
		s := Setting{flag.Name, valueOf(flag.Value), f.SourceOf(flag.Name), cli.EnvName(flag.Name), valueText(flag.DefValue)}
		if cli.Secret(flag.Name) && s.Value != "" {
			s.Value = "(set)"
		}
		items = append(items, s)
	})
	for action, keys := range f.Keys() {
		items = append(items, Setting{Name: "keys." + action, Value: strings.Join(keys, " "), Source: cli.FromFile})
	}
	slices.SortFunc(items, func(a, b Setting) int { return strings.Compare(a.Name, b.Name) })
	return items
}

func valueOf(v pflag.Value) string {
	if list, ok := v.(pflag.SliceValue); ok {
		return strings.Join(list.GetSlice(), ",")
	}
	return v.String()
}

// valueText takes the brackets off the default of a list.
func valueText(s string) string {
	if s == "[]" {
		return ""
	}
	return s
}
