package report

import (
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes"
	"cnictl/doctor/causes/catalogue"
)

// Results of a check before a migration.
const (
	Block     = "block"
	Warn      = "warn"
	Note      = "info"
	Accepted  = "accepted"
	Pass      = "pass"
	Undecided = "undecided"
	Unchecked = "unread"
)

// CheckResult returns the result of a check that found something.
func CheckResult(f *document.Finding) string {
	switch s, _ := Severity(f.Severity); {
	case s >= catalogue.Error:
		return Block
	case s == catalogue.Warning:
		return Warn
	}
	return Note
}

// Migration returns, check by check, the diagnosis of a migration from a daemon ("upstream",
// "ours", or empty if unknown) of a release.
func Migration(r *document.DoctorReport, from, release string) document.MigrationCheck {
	m := document.MigrationCheck{
		APIVersion: r.APIVersion, Kind: document.KindMigration, SchemaVersion: r.SchemaVersion, SampledAt: r.SampledAt, Mode: r.Mode, From: from,
		Release: release,
		Nodes:   r.Nodes, Checks: []document.MigrationRow{}, NotChecked: r.NotChecked, Partial: r.Partial, Errors: r.Errors,
	}
	var unread []*catalogue.Entry
	lacks := map[string]bool{}
	for _, missing := range r.NotChecked {
		lacks[missing.Source] = len(missing.Nodes) == r.Nodes
	}
	// Kubernetes objects can be read from anywhere but a node: without them, nothing can be said
	// about the migration.
	blind := func(e *catalogue.Entry) bool {
		return r.Mode != "node" && slices.ContainsFunc(e.Required, func(id string) bool { return strings.HasPrefix(id, "k8s.") && lacks[id] })
	}
	for e := range catalogue.All() {
		if e.Group() != catalogue.GroupMigrate {
			continue
		}
		row := document.MigrationRow{Code: e.Code, Title: e.Title, Condition: e.Shows, Result: Unchecked}
		at := slices.IndexFunc(r.Findings, func(f document.Finding) bool { return f.Code == e.Code })
		switch {
		case at >= 0:
			f := &r.Findings[at]
			f.Nodes = append([]string{}, f.Nodes...) // none for the cluster, but never null
			row.Finding, row.Result = f, CheckResult(f)
		case slices.Contains(r.Suppressed, e.Code):
			row.Result = Accepted
		case slices.Contains(r.Undecided, e.Code), slices.Contains(r.NotCheckable, e.Code) && blind(e):
			row.Result = Undecided
		case slices.Contains(r.RuledOut, e.Code):
			row.Result = Pass
		}
		switch row.Result {
		case Block:
			m.Blocks++
		case Warn:
			m.Warnings++
		case Undecided:
			m.Undecided++
		case Unchecked:
			unread = append(unread, e)
		}
		m.Checks = append(m.Checks, row)
	}
	switch nodes, warnings := causes.Count(r.Nodes, "node"), causes.Count(m.Warnings, "warning"); {
	case m.Blocks > 0:
		m.Verdict = fmt.Sprintf("not ready to migrate: %s and %s on %s", causes.Count(m.Blocks, "blocking check"), warnings, nodes)
	case m.Undecided > 0:
		m.Verdict = fmt.Sprintf("no blocking check on %s; %s undecided", nodes, causes.Count(m.Undecided, "check"))
	default:
		m.Verdict = fmt.Sprintf("nothing blocks the migration of %s, %s", nodes, warnings)
		if len(unread) > 0 {
			m.Verdict = fmt.Sprintf("nothing that was read blocks the migration of %s, %s; %s unread%s", nodes, warnings,
				causes.Count(len(unread), "check"), howToRead(r.Mode, unread))
		}
	}
	return m
}

// howToRead says how to read what the checks need and a mode left unread, empty if nothing here
// reads it.
func howToRead(mode string, unread []*catalogue.Entry) string {
	needs := func(node bool) bool {
		return slices.ContainsFunc(unread, func(e *catalogue.Entry) bool {
			return e.Ceiling.Of("cluster") == catalogue.None && e.Ceiling.Of("bundle") > catalogue.None == node
		})
	}
	switch {
	case mode == "node":
		return ": run it also without --via local"
	case needs(true):
		return ": run it on each node with --via local, or with --via exec"
	case needs(false):
		return ": run it with --aws"
	}
	return ""
}
