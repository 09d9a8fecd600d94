package root

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cnictl/cmd/cnictl/internal/cli"
)

// TestFlags: which command runs, and with what options. The golden tests cover what it
// does.
func TestFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"status":            "status -w=false -o=table []",
		"status -w":         "status -w=true -o=table []",
		"status -wo json":   "status -w=true -o=json []",
		"nodes":             "nodes -w=false -o=table []",
		"nodes b a --watch": "nodes -w=true -o=table [b a]",
		"node n":            "node -o=table [n]",
		"node show n":       "node show -o=table [n]",
		"node enis n":       "node enis -o=table [n]",
		"local":             "local -w=false -o=table []",
		"local -w":          "local -w=true -o=table []",
		"local status -w":   "local status -w=true -o=table []",
		"local show":        "local show -o=table []",
		"nodes -w now -x":   "usage",
		"node":              "usage",
		"node enis":         "usage",
		"node enis a b":     "usage",
		"local show n":      "usage",
		"local nope":        "usage",
		"status n":          "usage",
		"version 1":         "usage",
	} {
		if got := parsed(strings.Fields(args)); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// TestFlags_WrongValues: for every flag of every command, what is wrong with a value is said in
// words about the value, not in the parser's.
func TestFlags_WrongValues(t *testing.T) {
	t.Parallel()
	root, refused := tree("cnictl"), map[string]bool{}
	everyCommand(root, func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		_ = cmd.ParseFlags(nil) // joins the global flags to its own
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			for _, value := range []string{"two", "1x", "-", "1.5.2", "99999999999999999999", "1e999", "5 m"} {
				err := cmd.ParseFlags([]string{"--" + flag.Name + "=" + value})
				if err == nil {
					continue
				}
				refused[flag.Value.Type()] = true
				text := cli.FlagError(cmd, err).Error()
				for _, internal := range []string{"strconv.", "time: ", "invalid syntax", "unknown unit"} {
					if strings.Contains(text, internal) || !strings.Contains(text, flag.Name) {
						t.Errorf("%s: %s", cmd.CommandPath(), text)
					}
				}
			}
		})
	})
	for _, kind := range []string{"bool", "duration", "float64", "int"} {
		if !refused[kind] {
			t.Errorf("no flag of type %s was tried", kind)
		}
	}
}

// parsed describes a command line as the commands parse it.
func parsed(line []string) string {
	cmd, args, err := tree("cnictl").Find(line)
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil {
		return "usage"
	}
	out := strings.TrimPrefix(cmd.CommandPath(), "cnictl ")
	for _, flag := range []string{"watch", "output"} {
		if f := cmd.Flag(flag); f != nil {
			out += " -" + f.Shorthand + "=" + f.Value.String()
		}
	}
	return fmt.Sprint(out, " ", cmd.Flags().Args())
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
