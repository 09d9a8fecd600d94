package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/node"
)

// phase is a part of the bench that can be skipped.
type phase struct {
	name string
	run  func(*session, context.Context) error
}

var phases = []phase{
	{"start", (*session).start},
	{"scale", (*session).scale},
	{"faults", (*session).faults},
	{"bound", (*session).bound},
	{"load", (*session).load},
	{"restore", (*session).restore},
}

// wholeBench bounds a run on a busy machine; on an idle one it takes four minutes.
const wholeBench = 15 * time.Minute

// session is one run of the bench.
type session struct {
	options
	dir      string
	sites    int // number created so far, for separate directories
	api      *apiServer
	table    table
	progress io.Writer
	begin    time.Time
}

// bench runs the phases and prints the table. Its error says what failed, or which figures
// miss their target.
func bench(ctx context.Context, o options, out, progress io.Writer) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wholeBench, fmt.Errorf("the bench took longer than %v", wholeBench))
	defer cancel()
	before, err := readBaseline(o)
	if err != nil {
		return err
	}
	s := &session{options: o, progress: progress, begin: time.Now()}
	if s.dir, err = os.MkdirTemp("", "benchscale"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.copyPrograms(); err != nil {
		return err
	}
	if s.api, err = startAPI(ctx, s.dir); err != nil {
		return err
	}
	machine := frame.Machine()
	fmt.Fprintf(out, "%s, load before %s\n", machine, frame.Load())
	for _, p := range phases {
		if len(o.phases) > 0 && !slices.Contains(o.phases, p.name) {
			continue
		}
		s.say("%s", p.name)
		if err := p.run(s, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, errors.Join(err, context.Cause(ctx)))
		}
	}
	s.table.print(out, before)
	fmt.Fprintf(out, "\n%.0f s, load after %s\n", time.Since(s.begin).Seconds(), frame.Load())
	if o.write {
		if err := s.table.baseline(machine).write(o.baseline); err != nil {
			return err
		}
	}
	return s.table.missed()
}

// copyPrograms makes the nodes run copies of the programs. How a file got into the page cache
// decides how much of it counts as resident: nearly all of it if the linker has just written
// it or if it was written in one go. The copies are written like an unpacked image.
func (s *session) copyPrograms() error {
	from := s.bin
	s.bin = filepath.Join(s.dir, "bin")
	if err := os.Mkdir(s.bin, 0o755); err != nil {
		return err
	}
	for _, name := range []string{node.DaemonBinary, node.PluginBinary} {
		if err := unpack(filepath.Join(from, name), filepath.Join(s.bin, name)); err != nil {
			return fmt.Errorf("copy program under test (make build): %w", err)
		}
	}
	return nil
}

// unpackedAtOnce is the buffer size with which container runtimes write a layer's files.
const unpackedAtOnce = 32 << 10

func unpack(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	// Hiding ReadFrom and WriteTo keeps the kernel from copying the file itself.
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, unpackedAtOnce))
	return errors.Join(err, out.Close())
}

func (s *session) close() error {
	var err error
	if s.api != nil {
		err = s.api.close()
	}
	if s.keep {
		s.say("logs are in %s", s.dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// say prints progress.
func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.progress, "%4.0f s  "+format+"\n", append([]any{time.Since(s.begin).Seconds()}, args...)...)
}

// part returns n, or a tenth of it in a quick run, which tests only the bench.
func (s *session) part(n int) int {
	if s.quick {
		return max(n/10, 1)
	}
	return n
}

// lasting returns d, or a shorter duration in a quick run, which tests only the bench.
func (s *session) lasting(d time.Duration) time.Duration {
	if s.quick {
		return max(d/10, time.Second)
	}
	return d
}
