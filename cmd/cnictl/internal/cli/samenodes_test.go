package cli

import (
	"testing"

	"github.com/spf13/cobra"
)

func TestSameNodes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		args []string
		file string // of the recording
		want string
	}{
		"none":                             {nil, "", ""},
		"of another kind":                  {[]string{"--output=json"}, "", ""},
		"targets and a list":               {[]string{"--nodes=a,b", "--targets=x=unix:/run/x.sock"}, "", " --targets=x=unix:/run/x.sock --nodes=a,b"},
		"for a shell":                      {[]string{"--selector", "team in (a, b)", "--replay", "it's.cnirec"}, "it's.cnirec", ` --selector='team in (a, b)' --replay='it'\''s.cnirec'`},
		"a recording given as an argument": {[]string{"--at=14:00"}, "night.cnirec", " --replay=night.cnirec --at=14:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &Factory{Env: func(key string) (string, bool) { return "from-the-environment", key == "CNICTL_CONTEXT" }, RecordingFile: row.file}
			cmd := &cobra.Command{Use: "x"}
			for _, flag := range []string{"output", "context", "targets", "selector", "replay", "at"} {
				cmd.Flags().String(flag, "", "")
			}
			cmd.Flags().StringSlice("nodes", nil, "")
			if err := cmd.ParseFlags(row.args); err != nil {
				t.Fatal(err)
			}
			if err := f.Settle(cmd); err != nil {
				t.Fatal(err)
			}
			if got := f.SameNodes(); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}
