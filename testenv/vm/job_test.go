package vm

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestNewJob(t *testing.T) {
	t.Parallel()
	env := []string{"A=1", "TMPDIR=/tmp/x", "CNI_TEST_BIN=/var/tmp/bin"}
	j, err := newJob(Files{"/cache"}, "/tmp/x.test", "/src", []string{"x.test", "-test.v", "-test.testlogfile=/tmp/l", "-test.run=^TestA$"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(j.Args, []string{"x.test", "-test.v", "-test.run=^TestA$"}) || !slices.Equal(j.Env, []string{"A=1", "CNI_TEST_BIN=/var/tmp/bin", "TMPDIR=" + j.Temp, insideVar + "=1"}) {
		t.Errorf("%+v", j)
	}
	if j.Temp == "" || j.Temp == "/var/tmp" || j.Dir != "/src" || j.Loader != "/cache/load-module" {
		t.Errorf("%+v", j)
	}
	if _, err := newJob(Files{"/media/a"}, "/var/tmp/b", "/srv", []string{"x"}, []string{"HOME=/mnt/c"}); err == nil {
		t.Error("a job whose files are hidden by its temporary ones")
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	var l tail
	for range 3 * tailSize {
		_, _ = l.Write([]byte("x"))
	}
	_, _ = l.Write([]byte("end\r\n"))
	if got := l.String(); len(got) > tailSize || got[len(got)-5:] != "xend\n" {
		t.Errorf("%d bytes, ...%q", len(got), got[len(got)-5:])
	}
}

// A stream passes on everything but its end mark, however the bytes arrive.
func TestStream(t *testing.T) {
	t.Parallel()
	const end = "\x00mark"
	for _, tc := range []struct {
		sent, want string
		ended      bool
	}{
		{"", "", false},
		{end, "", true},
		{"text" + end, "text", true},
		{"text" + end + "more", "text", true},
		{"a\x00b\x00mar\x00mark", "a\x00b\x00mar", true},
		{"no end\x00mar", "no end\x00mar", false},
	} {
		for name, from := range map[string]io.Reader{
			"at once": strings.NewReader(tc.sent), "byte by byte": iotest.OneByteReader(strings.NewReader(tc.sent)),
		} {
			var got bytes.Buffer
			s := stream{to: &got, end: end}
			s.copy(from)
			if got.String() != tc.want || s.ended != tc.ended {
				t.Errorf("%q %s: %q, ended %v", tc.sent, name, got.String(), s.ended)
			}
		}
	}
}

// Bytes that may be the start of the mark are held back; all others are passed on at once.
func TestStream_PassesOnAtOnce(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	out, to := io.Pipe()
	go func() { (&stream{to: to, end: "\x00mark"}).copy(r) }()
	defer w.Close()
	if _, err := io.WriteString(w, "line\n"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(out, got); err != nil || string(got) != "line\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFind_Nowhere(t *testing.T) {
	t.Setenv(dirVar, filepath.Join(t.TempDir(), "no"))
	if _, err := Find(); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
}
