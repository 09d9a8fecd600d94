package frame

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"sync/atomic"
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

func TestAttempt(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	if err := Attempt(func() { Check(nil); Check(no); t.Error("goes on") }); !errors.Is(err, no) {
		t.Error(err)
	}
	defer func() {
		if p := recover(); p != "another" {
			t.Errorf("another panic became %v", p)
		}
	}()
	_ = Attempt(func() { panic("another") })
}

func TestEach(t *testing.T) {
	t.Parallel()
	var sum atomic.Int64
	if err := Each(t.Context(), 10, 3, func(i int) { sum.Add(int64(i)) }); err != nil || sum.Load() != 45 {
		t.Errorf("%d, %v", sum.Load(), err)
	}
	no, ran := errors.New("no"), atomic.Int64{}
	if err := Each(t.Context(), 100, 1, func(int) { ran.Add(1); Check(no) }); !errors.Is(err, no) || ran.Load() != 1 {
		t.Errorf("%v after %d calls", err, ran.Load())
	}
}
