package record

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/record"
)

// bench is a node to record.
type bench struct {
	*testing.T
	address string
	asked   chan struct{} // receives when the node was read
	ticks   chan time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, asked: make(chan struct{}, 100), ticks: make(chan time.Time)}
	b.address = fleettest.ServeFunc(t, t.TempDir(), "n", func() fleettest.View {
		select {
		case b.asked <- struct{}{}:
		default:
		}
		return fleettest.Secondary()
	})
	return b
}

// record runs the command and interrupts it after some samples.
func (b *bench) record(args ...string) (string, error) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	go func() {
		defer cancel()
		<-b.asked
		for range 3 {
			select {
			case b.ticks <- time.Time{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return b.run(ctx, args...)
}

// again runs the command, which must end by itself.
func (b *bench) again(args ...string) (string, error) {
	b.Helper()
	return b.run(b.Context(), args...)
}

func (b *bench) run(ctx context.Context, args ...string) (string, error) {
	b.Helper()
	var out bytes.Buffer
	f := &cli.Factory{
		Streams: &cli.Streams{Out: &out, Err: new(bytes.Buffer)}, Env: func(string) (string, bool) { return "", false },
		Now: time.Now, Name: "cnictl", Version: "v1.2.3",
		LocalTarget: func(context.Context) (fleet.Target, bool) { return fleet.Target{}, false },
		Tick:        func(time.Duration) (<-chan time.Time, func()) { return b.ticks, func() {} },
	}
	cmd := New(f)
	f.Prepare(cmd)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

// TestRun_AnInterruptEndsItWell: a recording that the user interrupts is complete, readable only
// by the user, and not overwritten by the next.
func TestRun_AnInterruptEndsItWell(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "x.cnirec")
	out, err := b.record("--targets=n="+b.address, file)
	if err != nil || !strings.Contains(out, "of 1 node over") {
		t.Errorf("%q, %v", out, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if _, err := b.again("--targets=n="+b.address, file); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("a second time: %v", err)
	}
	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	p, err := record.Open(opened, record.Options{})
	if err != nil || p.Info().Interrupted || p.Info().Nodes != 1 || p.Info().Title != "--targets" {
		t.Errorf("%v: %+v", err, p.Info())
	}
}

// TestRun_NothingRecorded: a recording without a sample changes nothing.
func TestRun_NothingRecorded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, args, want string
	}{
		"replaced": {"a good recording", "--force", "nothing was recorded: FILE is unchanged"},
		"new":      {"", "", "nothing was recorded: FILE was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "x.cnirec")
			if tt.before != "" {
				if err := os.WriteFile(file, []byte(tt.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f := &cli.Factory{
				Streams: &cli.Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)}, Env: func(string) (string, bool) { return "", false },
				Now: time.Now, Name: "cnictl", LocalTarget: func(context.Context) (fleet.Target, bool) { return fleet.Target{}, false },
				Tick: func(time.Duration) (<-chan time.Time, func()) { return nil, func() {} },
			}
			cmd := New(f)
			f.Prepare(cmd)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			// The node accepts the request and never answers.
			address := fleettest.ServeHandler(t, t.TempDir(), "n", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			cmd.SetArgs(append(strings.Fields(tt.args), "--targets=n="+address, "--duration=1ms", file))
			err := cmd.ExecuteContext(t.Context())
			if want := strings.ReplaceAll(tt.want, "FILE", file); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			if got, _ := os.ReadFile(file); string(got) != tt.before {
				t.Errorf("the file holds %q", got)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) > min(1, len(tt.before)) {
				t.Errorf("%q are left", left)
			}
		})
	}
}

// TestNew_For: --for is --duration by another name, but the variable of other commands' --for ends
// no recording.
func TestNew_For(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                        "0s",
		"--for=30s":               "30s",
		"--for 30s":               "30s",
		"--duration=30s":          "30s",
		"--duration=30s --for=1m": "1m0s",
		"--for=1m --duration=30s": "30s",
		"DURATION=5m":             "5m0s",
		"DURATION=5m --for=30s":   "30s",
		"FOR=5m":                  "0s",
		"FOR=5m --duration=30s":   "30s",
		"FOR=5m DURATION=6m":      "6m0s",
		"FOR=soon":                "0s",
	} {
		env, flags := map[string]string{}, []string{}
		for _, word := range strings.Fields(args) {
			if name, value, variable := strings.Cut(word, "="); variable && !strings.HasPrefix(word, "--") {
				env["CNICTL_"+name] = value
			} else {
				flags = append(flags, word)
			}
		}
		f := &cli.Factory{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }, Name: "cnictl"}
		opts := &Options{}
		cmd := command(f, opts)
		f.Prepare(cmd)
		err := cmd.ParseFlags(flags)
		if err == nil {
			err = f.Settle(cmd)
		}
		if got := opts.Duration.String(); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", args, got, err, want)
		}
	}
}

// TestCreate_Replaces: the new file replaces the old one with the first sample, even behind a
// link. Anything but a regular file is not replaced.
func TestCreate_Replaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "x.cnirec"), filepath.Join(dir, "link")
	err := errors.Join(os.WriteFile(file, []byte("old"), 0o644), os.Symlink(file, link))
	if err != nil {
		t.Fatal(err)
	}
	out, err := create(&Options{File: link, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.WriteString("new"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(file); string(got) != "old" {
		t.Errorf("before a sample: %q", got)
	}
	if err := errors.Join(out.begin(), out.begin(), out.Close()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if got, _ := os.ReadFile(file); string(got) != "new" || err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("after one: %q, %v, %v", got, info, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	device, err := create(&Options{File: os.DevNull, Force: true})
	if err != nil || device.pending != "" {
		t.Errorf("%+v, %v", device, err)
	} else {
		_ = device.Close()
	}
	if _, err := create(&Options{File: dir, Force: true}); err == nil {
		t.Error("a directory is written to")
	}
}
