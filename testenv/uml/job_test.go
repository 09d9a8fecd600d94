package uml

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
)

func TestNewJob(t *testing.T) {
	t.Parallel()
	env := []string{"A=1", "CNICTL_TESTENV_STAGE=inside", "TMPDIR=/tmp/x", "CNI_TEST_BIN=/var/tmp/bin"}
	j, err := newJob(Files{"/cache"}, "/tmp/x.test", "/src", []string{"x.test", "-test.v", "-test.testlogfile=/tmp/l", "-test.run=^TestA$"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(j.Args, []string{"x.test", "-test.v", "-test.run=^TestA$"}) || !slices.Equal(j.Env, []string{"A=1", "CNI_TEST_BIN=/var/tmp/bin"}) {
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

func TestFind_Nowhere(t *testing.T) {
	t.Setenv(dirVar, filepath.Join(t.TempDir(), "no"))
	if _, err := Find(); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
}
