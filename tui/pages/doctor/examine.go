package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
)

// examination is the doctor's result for the nodes of the screen.
type examination struct {
	id      uint64 // of the last one requested
	running bool
	step    *atomic.Pointer[step]                  // of the running one
	found   *atomic.Pointer[document.DoctorReport] // by the running one so far; nil if already taken
	report  *document.DoctorReport
	partial bool      // the report is of what was read until then
	err     error     // why the last one failed
	ended   time.Time // by Context.Clock
}

// step is the progress of an examination.
type step struct {
	done, total int
	what        string
}

// A recording is examined again once it has moved by a sample, but each report stays long
// enough to be read.
const (
	moved      = 30 * time.Second
	restPeriod = 5 * time.Second
)

// due reports whether to start an examination without a key press: once the nodes have
// been read and, in recordings, where it costs nothing, as time moves on.
func (m *Model) due(c pages.Context) bool {
	e := &m.exam
	switch {
	case e.running || c.View == nil || c.View.Totals.Nodes == 0:
		return false
	case e.report == nil || e.partial:
		return e.err == nil && c.View.Totals.Unasked == 0
	}
	return c.Recorded && c.Now.Sub(e.report.SampledAt).Abs() >= moved && c.Clock.Sub(e.ended) >= restPeriod
}

// examine requests an examination of the scope.
func (m *Model) examine(c pages.Context) tea.Cmd {
	scope, nodes, ok := m.scope.of(c.View)
	if !c.Examines || m.exam.running || !ok {
		return nil
	}
	e := &m.exam
	e.id, e.running, e.err = e.id+1, true, nil
	e.step, e.found = new(atomic.Pointer[step]), new(atomic.Pointer[document.DoctorReport])
	to, found := e.step, e.found
	ask := pages.Examine{
		To: m, ID: e.id, Scope: scope, Nodes: nodes,
		Progress: func(done, total int, what string) { to.Store(&step{done, total, what}) },
		SoFar:    func(r document.DoctorReport) { found.Store(&r) },
	}
	return func() tea.Msg { return ask }
}

// soFar lists what the running examination has found until now, unless an earlier one has found more.
func (m *Model) soFar(c pages.Context) {
	e := &m.exam
	if !e.running || e.report != nil && !e.partial {
		return
	}
	r := e.found.Swap(nil)
	if r == nil {
		return
	}
	first := e.report == nil
	e.report, e.partial, m.code = r, true, ""
	if first {
		m.findings.Renew(rowsOf(r, m.groups), c.Clock)
		return
	}
	m.findings.SetRows(rowsOf(r, m.groups), c.Clock)
}

// take stores a report. A cancelled examination starts again when the screen is entered.
func (m *Model) take(c pages.Context, x pages.Examined) {
	e := &m.exam
	if x.ID != e.id || !e.running {
		return
	}
	e.running, e.ended = false, c.Clock
	switch {
	case x.Err == nil:
		e.report, e.partial, e.err = &x.Report, false, nil
		m.code = ""
		m.findings.Renew(rowsOf(e.report, m.groups), c.Clock)
	case !errors.Is(x.Err, context.Canceled):
		e.err = x.Err
	}
}

// merge lists what the doctor found and what nodes report.
func (m *Model) merge(c pages.Context) {
	m.findings.SetRows(rowsOf(m.exam.report, m.groups), c.Clock)
	m.code = ""
}

// again discards the findings when the scope changes.
func (m *Model) again(c pages.Context) {
	m.exam = examination{id: m.exam.id + 1}
	m.merge(c)
}

// state writes the verdict, its time and the state of the examination.
func (m *Model) state(l *draw.Line, c pages.Context) {
	e := &m.exam
	if r := e.report; r != nil && e.partial {
		l.Add(draw.Text, human.Plural(len(r.Findings), "cause", "causes")+" found so far").Gap(2)
	} else if r != nil {
		role := draw.Good
		switch {
		case len(r.Findings) > 0:
			role = pages.SeverityRole(document.Severity(r.Findings[0].Severity))
		case len(r.Undecided) > 0:
			role = draw.Warn
		}
		l.Add(role, r.Verdict).Gap(2)
		if n := m.onlyReports(); n > 0 {
			l.Add(draw.Warn, strconv.Itoa(n)+" more reported by nodes").Gap(2)
		}
		l.Add(draw.Faint, "as of "+draw.Clock(r.SampledAt, c.Now)).Gap(2)
	}
	switch {
	case e.running:
		l.Add(draw.Accent, e.going()).Gap(2)
	case e.err != nil && e.partial:
		l.Add(draw.Bad, "not examined to the end: "+e.err.Error()).Gap(2)
	case e.err != nil && e.report != nil:
		l.Add(draw.Bad, "not examined again: "+e.err.Error()).Gap(2)
	case e.err != nil:
		l.Add(draw.Bad, "not examined").Gap(2)
	case e.report == nil:
		l.Add(draw.Faint, "not examined yet").Gap(2)
	}
}

// onlyReports counts the problems that nodes report and the doctor has not found, which its verdict
// does not count.
func (m *Model) onlyReports() (n int) {
	for _, r := range m.findings.All() {
		if r.finding == nil && r.severity() != document.SeverityInfo {
			n++
		}
	}
	return n
}

// going describes the progress of the examination.
func (e *examination) going() string {
	s := e.step.Load()
	switch {
	case s == nil:
		return "examining"
	case s.total > 0:
		return fmt.Sprintf("examining %d of %d: %s", s.done, s.total, s.what)
	}
	return "examining: " + s.what
}

// whole returns the last report of an examination that came to its end, nil if none did.
func (e *examination) whole() *document.DoctorReport {
	if e.partial {
		return nil
	}
	return e.report
}

// noReport shows why there is no report.
func (m *Model) noReport(s draw.Style, width, height int) []string {
	sheet := draw.NewSheet(s, width)
	switch e := &m.exam; {
	case e.running:
		sheet.Add(draw.T(draw.Text, e.going()))
	case e.err != nil:
		sheet.Add(draw.T(draw.Bad, "Not examined: "), draw.T(draw.Text, e.err.Error()))
	default:
		sheet.Add(draw.T(draw.Faint, "Nodes are examined once all of them have been read."))
	}
	return draw.Exactly(sheet.Lines(), width, height)
}
