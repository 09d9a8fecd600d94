// Package version is cnictl version.
package version

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
)

// document is what -o json prints.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Version    string `json:"version"`
	GoVersion  string `json:"goVersion"`
	Platform   string `json:"platform"`
}

// New builds the command.
func New(f *cli.Factory, run func(context.Context, *cli.Factory) error) *cobra.Command {
	if run == nil {
		run = Run
	}
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cli.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), f) },
	}
}

// Run prints the version.
func Run(_ context.Context, f *cli.Factory) error {
	doc := document{introspect.APIVersion, introspect.KindVersion, f.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if f.Structured() {
		return f.PrintDocument(doc, false)
	}
	return f.PrintLines([]string{"cnictl " + doc.Version + " (" + doc.GoVersion + ", " + doc.Platform + ")"})
}
