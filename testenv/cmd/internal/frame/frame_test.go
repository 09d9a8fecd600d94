package frame

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"slices"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	p := Program[bool]{
		Name: "x", Usage: "Usage: x\n",
		Parse: func(args []string) (fails bool, _ error) {
			var fs flag.FlagSet
			fs.BoolVar(&fails, "fail", false, "")
			return fails, Parse(&fs, args)
		},
		Do: func(_ context.Context, fails bool, out, _ io.Writer) error {
			if fails {
				return errors.New("failed")
			}
			_, err := io.WriteString(out, "done\n")
			return err
		},
	}
	for _, row := range []struct {
		args        []string
		code        int
		out, errOut string
	}{
		{nil, 0, "done\n", ""},
		{[]string{"--help"}, 0, "Usage: x\n", ""},
		{[]string{"--fail"}, 1, "", "x: failed\n"},
		{[]string{"more"}, 2, "", "x: unknown argument \"more\"\n\nUsage: x\n"},
		{[]string{"--nope"}, 2, "", "x: flag provided but not defined: -nope\n\nUsage: x\n"},
	} {
		var out, errOut bytes.Buffer
		if code := p.Run(t.Context(), row.args, &out, &errOut); code != row.code || out.String() != row.out || errOut.String() != row.errOut {
			t.Errorf("%q: %d, %q, %q", row.args, code, &out, &errOut)
		}
	}
}

func TestPhases(t *testing.T) {
	t.Parallel()
	if got, err := Phases("a,c", "a", "b", "c"); err != nil || !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Phases("", "a"); err != nil || got != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Phases("a,d", "a"); err == nil || err.Error() != `--phases: "d" is not one of a` {
		t.Error(err)
	}
}
