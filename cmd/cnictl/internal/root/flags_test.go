package root

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/local"
	"cnictl/cmd/cnictl/internal/node"
	"cnictl/cmd/cnictl/internal/nodes"
	"cnictl/cmd/cnictl/internal/status"
	"cnictl/cmd/cnictl/internal/version"
)

// TestFlags is the first half of every command's test: arguments become options.
func TestFlags(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"status":            "status watch=false output=table",
		"status -w":         "status watch=true output=table",
		"status -wo json":   "status watch=true output=json",
		"nodes":             "nodes [] watch=false",
		"nodes b a --watch": "nodes [b a] watch=true",
		"node n":            "show n",
		"node show n":       "show n",
		"node enis n":       "enis n",
		"node ips n":        "ips n",
		"node config n":     "config n",
		"local":             "status watch=false output=table",
		"local -w":          "status watch=true output=table",
		"local status -w":   "status watch=true output=table",
		"local show":        "show ",
		"local enis":        "enis ",
		"local ips":         "ips ",
		"local config":      "config ",
		"version":           "version client=false",
		"version --client":  "version client=true",
		"nodes -w now -x":   "usage",
		"node":              "usage",
		"node enis":         "usage",
		"node enis a b":     "usage",
		"local show n":      "usage",
		"local nope":        "usage",
		"status n":          "usage",
		"version 1":         "usage",
	}
	for args, want := range tests {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var got string
			f := &cli.Factory{
				Streams: &cli.Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)},
				Env:     func(string) (string, bool) { return "", false }, Now: time.Now,
			}
			verb := func(name string) node.Run {
				return func(_ context.Context, _ *cli.Factory, o *node.Options) error { got = name + " " + o.Name; return nil }
			}
			runs := node.Runs{Show: verb("show"), ENIs: verb("enis"), IPs: verb("ips"), Config: verb("config")}
			showStatus := func(_ context.Context, f *cli.Factory, o *status.Options) error {
				got = "status watch=" + word(o.Watch) + " output=" + f.Globals.Output
				return nil
			}
			cmd := &cobra.Command{Use: "cnictl", SilenceErrors: true, SilenceUsage: true}
			f.Prepare(cmd)
			cmd.AddCommand(
				status.New(f, showStatus), node.New(f, runs), local.New(f, showStatus, runs),
				nodes.New(f, func(_ context.Context, _ *cli.Factory, o *nodes.Options) error {
					got = "nodes [" + strings.Join(o.Names, " ") + "] watch=" + word(o.List.Watch)
					return nil
				}),
				version.New(f, func(_ context.Context, _ *cli.Factory, o *version.Options) error {
					got = "version client=" + word(o.Client)
					return nil
				}),
			)
			cmd.SetArgs(strings.Fields(args))
			if err := cmd.Execute(); err != nil {
				got = "usage"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func word(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

func TestInvokedAs(t *testing.T) {
	t.Parallel()
	for argv0, want := range map[string]string{
		"cnictl": "cnictl", "/usr/bin/cnictl": "cnictl", "./anything": "cnictl", "kubectl-cni": "kubectl cni", "/x/kubectl-aws_cni": "kubectl aws-cni",
		"kubectl-cni-status": "kubectl cni status", "kubectl-": "cnictl", "kubectl-cni.exe": "kubectl cni", "": "cnictl",
	} {
		if got := InvokedAs(argv0); got != want {
			t.Errorf("%q: %q, want %q", argv0, got, want)
		}
	}
}

func TestHelp_SaysTheNameItWasCalledBy(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	f := &cli.Factory{
		Streams: &cli.Streams{Out: &out, Err: &errOut}, Env: func(string) (string, bool) { return "", false }, Now: time.Now, Name: "kubectl cni",
	}
	if code := Main(t.Context(), f, []string{"node", "--help"}); code != 0 || !bytes.Contains(out.Bytes(), []byte("kubectl cni node show")) && !bytes.Contains(out.Bytes(), []byte("kubectl cni node [command]")) {
		t.Errorf("%d\n%s", code, out.String())
	}
	if bytes.Contains(out.Bytes(), []byte("cnictl node")) {
		t.Errorf("another name:\n%s", out.String())
	}
	if code := Main(t.Context(), f, []string{"anything"}); code != 2 || errOut.String() != "kubectl cni: unknown command \"anything\"\n  try: kubectl cni --help\n" {
		t.Errorf("%d %q", code, errOut.String())
	}
}
