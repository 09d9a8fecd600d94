package agent_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/node/agent"
)

func start(t *testing.T, name string) *agent.Agent {
	t.Helper()
	testenv.RequireRoot(t)
	var log bytes.Buffer
	a, err := agent.Start(t.Context(), name, &log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if log.Len() > 0 {
			t.Errorf("the agent printed: %s", &log)
		}
	})
	if a.Warning != "" {
		t.Log(a.Warning)
	}
	return a
}

func sh(script string) agent.Cmd {
	return agent.Cmd{Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func TestClose_EndsEverythingInTheNode(t *testing.T) {
	testenv.RequireRoot(t)
	t.Parallel()
	a, err := agent.Start(t.Context(), "doomed", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe() // reads end of file once the last writer is dead
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// The second process is an orphan that ignores TERM, HUP and INT.
	if _, err := a.Background(sh(`(trap '' TERM HUP INT; echo up; while :; do sleep 0.1; done) & wait`), w, w); err != nil {
		t.Fatal(err)
	}
	w.Close()
	in := bufio.NewReader(r)
	if line, err := in.ReadString('\n'); line != "up\n" {
		t.Fatalf("daemon said %q, error %v", line, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(in); err != nil || len(rest) != 0 {
		t.Errorf("after Close: %q, error %v", rest, err)
	}
	if _, err := a.Run(sh("true")); err == nil {
		t.Error("Run succeeded after Close")
	}
}
