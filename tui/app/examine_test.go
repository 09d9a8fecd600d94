package app

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/document"
	"cnictl/testenv"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// found is a report with one finding.
func found() document.DoctorReport {
	return document.DoctorReport{
		Kind: document.KindDoctorReport, Verdict: "1 cause found on 20 nodes", SampledAt: pagetest.Start(), Nodes: 20,
		Findings: []document.Finding{{
			Code: "ip/subnet-exhausted", Title: "the subnet has no free addresses", Severity: "critical", Confidence: "confirmed", Nodes: []string{pagetest.NodeName(3)},
			Scope: document.FindingScope{Node: pagetest.NodeName(3)}, Summary: "42 of 42 assigned",
			Fix: []document.CauseFix{{Text: "Add a subnet.", Command: "aws ec2 create-tags --resources NEW_SUBNET --tags Key=kubernetes.io/role/cni,Value=1", Risk: "none"}},
		}},
		RuledOut: []string{}, Undecided: []string{},
	}
}

// doctored is the app with a doctor that runs the test's examine function.
func doctored(t *testing.T, examine func(ctx context.Context, nodes []string) (document.DoctorReport, error)) *bench {
	t.Helper()
	b := newBench(t, pagetest.NewSource(20, 3), func(o *Options) {
		o.Examine = func(ctx context.Context, e pages.Examine) (document.DoctorReport, error) {
			e.Progress(1, 2, "nodes")
			return examine(ctx, e.Nodes)
		}
	})
	b.resize(120, 40)
	b.change()
	b.View()
	return b
}

// TestExamine: entering the doctor's screen starts an examination and shows the findings. A
// finding opens above the screen, and esc returns.
func TestExamine(t *testing.T) {
	t.Parallel()
	times := 0
	b := doctored(t, func(context.Context, []string) (document.DoctorReport, error) { times++; return found(), nil })
	b.press("4")
	b.sees(t, "1 cause found on 20 nodes", "ip/subnet-exhausted", "  reported  ")
	b.press("r")
	if times != 2 {
		t.Errorf("examined %d times", times)
	}
	b.press("enter")
	b.sees(t, "FIX", "aws ec2 create-tags", "copy the command")
	b.press("i")
	if len(b.copied) != 1 || b.copied[0] != found().Findings[0].Fix[0].Command {
		t.Errorf("copied %q", b.copied)
	}
	b.press("y")
	b.sees(t, "code: ip/subnet-exhausted")
	b.press("esc", "esc")
	if got := b.stackNames(); got != "overview>doctor" {
		t.Errorf("at %s", got)
	}
	b.press("x", "j")
	for name, data := range b.files {
		if !strings.HasPrefix(name, "cnictl-doctor-") || !strings.Contains(string(data), `"kind": "DoctorReport"`) {
			t.Errorf("%s: %s", name, data)
		}
	}
	if len(b.files) != 1 {
		t.Errorf("%d files", len(b.files))
	}
	b.press("enter", "d")
	if got := b.stackNames(); got != "overview>doctor>node" {
		t.Errorf("at %s", got)
	}
	if times != 2 {
		t.Errorf("examined %d times", times)
	}
}

// TestExamine_Fails: an error is shown, and so is a failure of this program itself.
func TestExamine_Fails(t *testing.T) {
	t.Parallel()
	b := doctored(t, func(context.Context, []string) (document.DoctorReport, error) {
		return document.DoctorReport{}, errors.New("list nodes: \x1b[31mforbidden")
	})
	b.press("4")
	b.sees(t, `Not examined: list nodes: \x1b[31mforbidden`)
	b = doctored(t, func(context.Context, []string) (document.DoctorReport, error) { panic("boom") })
	b.press("4")
	b.sees(t, "Not examined: cnictl crashed on a node's data: boom")
}

// TestExamine_GivenUp: an examination goes on when its screen is left. If the next screen asks for
// another, that one cancels it and begins after it has ended.
func TestExamine_GivenUp(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int32
	ended := make(chan error)
	b := doctored(t, func(ctx context.Context, nodes []string) (document.DoctorReport, error) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		if nodes == nil {
			<-ctx.Done()
			return document.DoctorReport{}, ctx.Err()
		}
		return found(), nil
	})
	begin := b.fx.examine
	answers := make(chan tea.Msg)
	b.fx.examine = func(e pages.Examine) (tea.Cmd, context.CancelFunc) { // concurrently, as in the program
		cmd, cancel := begin(e)
		go func() {
			msg := cmd()
			ended <- msg.(pages.Examined).Err
			answers <- msg
		}()
		return nil, cancel
	}
	b.press("4")
	b.sees(t, "examining")
	b.press("?", "?") // opens and closes help above it
	if b.exam.to == nil {
		t.Fatal("help gave up the examination")
	}
	b.press("esc")
	if b.exam.to == nil {
		t.Fatal("leaving the screen gave up the examination")
	}
	b.press("1", "enter", "D") // examines one node
	for range 2 {
		err := testenv.Receive(t, "the end of the examination", ended)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if msg := testenv.Receive(t, "an answer", answers).(pages.Examined); err == nil {
			b.send(msg)
		}
	}
	b.sees(t, "1 cause found on 20 nodes")
	if most.Load() != 1 {
		t.Errorf("%d examinations at once", most.Load())
	}
}

// TestExamine_Plain: without a full screen, the report is printed with the screen, and the finding
// with its fixes below it.
func TestExamine_Plain(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	b := newBench(t, pagetest.NewSource(20, 3), func(o *Options) {
		o.Out = &out
		o.Examine = func(context.Context, pages.Examine) (document.DoctorReport, error) {
			return found(), nil
		}
	})
	p := newPlain(b.o, utf8Locale, b.keys, b.fx)
	if _, err := p.line("doctor"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 cause found on 20 nodes", "ip/subnet-exhausted", "FIX", "  reported  "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.ContainsAny(out.String(), "│━") {
		t.Errorf("it draws what cannot be read out:\n%s", out.String())
	}
}
