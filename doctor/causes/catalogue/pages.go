package catalogue

import (
	"slices"
	"strings"

	"cnictl/daemon/api/cause"
	"cnictl/docs/doctor"
)

// Page returns where the documentation describes a cause.
func Page(code string) string {
	group, _, _ := strings.Cut(code, "/")
	return "docs/doctor/" + group + ".md#" + anchor(code)
}

func anchor(code string) string { return strings.ReplaceAll(code, "/", "") }

// groupNamed reads the page of a group. A page begins with a table of its causes, and has a section for each:
//
//	## net/link-down
//
//	**The title, as in the table** (severity). What it shows.
//
//	Check: what to look at next.
//
//	```
//	COMMAND
//	```
//
//	1. A fix.
//	   ```
//	   COMMAND
//	   ```
//	   Risk: restart. Side effects.
//
//	- Needs: `intro.enis`, `kern.link`
//	- Highest confidence: node confirmed, laptop confirmed, bundle probable, cluster none
//	- Text: `` what is logged…parts of it `` in `log.ipamd`, fix `net/link-down 2` (what else must be true)
//	- Links: <https://example.com>
//
// and other facts; see [Entry.fact]. Texts have no line breaks. TestDocumentation refuses a page that is
// written in another way; with -update it writes what follows from other lines and pages.
func groupNamed(name string) Group {
	text, err := doctor.Pages.ReadFile(name + ".md")
	if err != nil {
		panic(err)
	}
	g := Group{Name: name}
	var e *Entry        // whose section it is
	var command *string // that the next block is
	code := false
	for line := range strings.Lines(string(text)) {
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.TrimSpace(line) == "```":
			code = !code
		case code:
			*command = strings.TrimSpace(line)
		case strings.HasPrefix(line, "# "):
			g.Title = line[2:]
		case strings.HasPrefix(line, "| [`"):
			cell := strings.Split(line, " | ")
			of, _, _ := strings.Cut(cell[0][len("| [`"):], "`")
			g.Entries = append(g.Entries, Entry{Code: of, Severity: Severity(rank(severities, cell[1])), Title: strings.TrimSuffix(cell[2], " |")})
		case strings.HasPrefix(line, "## "):
			at := slices.IndexFunc(g.Entries, func(e Entry) bool { return e.Code == line[len("## "):] })
			if at < 0 {
				panic("the table at the top of docs/doctor/" + name + ".md lacks " + line[len("## "):])
			}
			e = &g.Entries[at]
		case strings.HasPrefix(line, "**"):
			_, e.Shows, _ = strings.Cut(line, "("+e.Severity.String()+"). ")
		case strings.HasPrefix(line, "Check: "):
			e.Check.Text, command = line[len("Check: "):], &e.Check.Command
		case line != "" && '0' <= line[0] && line[0] <= '9':
			_, text, _ := strings.Cut(line, ". ")
			e.Fixes = append(e.Fixes, Fix{Text: text})
			command = &e.Fixes[len(e.Fixes)-1].Command
		case strings.HasPrefix(line, "   Risk: "):
			fix := &e.Fixes[len(e.Fixes)-1]
			risk, effect, _ := strings.Cut(line[len("   Risk: "):], ".")
			fix.Risk, fix.SideEffect = Risk(rank(risks, risk)), strings.TrimSpace(effect)
		case strings.HasPrefix(line, "- "):
			e.fact(line[len("- "):])
		}
	}
	return g
}

// fact reads a line of the list at the end of a section. What it leaves out follows from other entries.
func (e *Entry) fact(line string) {
	switch name, text, _ := strings.Cut(line, ": "); name {
	case "Needs":
		e.Required = quoted(text)
	case "Also uses":
		e.Supporting = quoted(text)
	case "Highest confidence":
		for i, mode := range Modes() {
			word := text // of all modes, or:
			for of := range strings.SplitSeq(text, ", ") {
				if in, ok := strings.CutPrefix(of, mode+" "); ok {
					word = in
				}
			}
			e.Ceiling[i] = Confidence(rank(confidences, word))
		}
	case "Reported":
		e.Always = true
	case "Upstream":
		e.Upstream = text
	case "Not on our daemon":
		e.Ours = text
	case "Explains":
		e.Explains = quoted(text)
	case "Codes of our daemon":
		for _, code := range quoted(text) {
			e.Daemon = append(e.Daemon, cause.Code(code))
		}
	case "Text":
		text, rest, _ := strings.Cut(strings.TrimPrefix(text, "`` "), " `` in ")
		rest, note, _ := strings.Cut(rest, " (")
		where, fix, _ := strings.Cut(rest, ", fix ")
		e.Signatures = append(e.Signatures, Signature{Text: text, Where: quoted(where), Note: strings.TrimSuffix(note, ")"), Fix: strings.Trim(fix, "`")})
	case "Links":
		e.Links = strings.Split(strings.Trim(text, "<>"), ">, <")
	}
}

// quoted returns the names in a list: `a`, `b`.
func quoted(list string) []string { return strings.Split(strings.Trim(list, "`"), "`, `") }

// rank returns where a word is in a scale.
func rank(scale []string, word string) int {
	at := slices.Index(scale, word)
	if at < 0 {
		panic("docs/doctor has " + word + ", want one of " + strings.Join(scale, ", "))
	}
	return at
}

// sentence capitalizes a title, unless it begins with a name that is written in lower case.
func sentence(title string) string {
	switch first, _, _ := strings.Cut(title, " "); first {
	case "aws-node", "eBPF", "max-pods", "systemd":
		return title
	}
	return strings.ToUpper(title[:1]) + title[1:]
}
