package catalogue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/lazy"
)

// errorsPage returns the page that lists what programs print when pods get no address, with what it
// means: for those who search for a line.
func errorsPage() string {
	var b strings.Builder
	b.WriteString("# Errors and what they mean\n\nWhat programs print when pods get no address, or when the CNI fails on a node: " +
		"what it means, the causes, likeliest first, what to do, and the public issues about it. `…` stands for what differs.\n\n" +
		"`cnictl explain 'LINE'` finds a line offline, also one that was cut, wrapped or reworded, and `cnictl doctor` says which of " +
		"the causes it is. In commands, replace words in CAPITALS. `make generate` makes this page from the doctor's catalogue.\n\n")
	all := printed()
	var programs []string
	for _, p := range all {
		if !slices.Contains(programs, p.program) {
			programs = append(programs, p.program)
		}
	}
	slices.SortStableFunc(programs, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	for _, program := range programs {
		fmt.Fprintf(&b, "- [%s](#%s)\n", program, heading(program))
	}
	for _, program := range programs {
		fmt.Fprintf(&b, "\n## %s\n", program)
		for _, p := range all {
			if p.program == program {
				p.markdown(&b)
			}
		}
	}
	return b.String()
}

// foremost are the programs that people search for most; the others follow in the catalogue's order.
var foremost = []string{"aws-cni (plugin)", "kubelet", "ipamd", inSeveral, "kube-scheduler", "EC2 API", "EKS add-ons", "Helm"}

// place returns where a program stands on the page.
func place(program string) int {
	if at := slices.Index(foremost, program); at >= 0 {
		return at
	}
	return len(foremost)
}

// inSeveral is the heading of texts that several programs print, most of them in a pod's events.
const inSeveral = "events and several logs"

// message is what a program prints about one fault.
type message struct {
	program string
	texts   []Signature
	Candidate
}

// printed returns the messages of causes, symptoms and sentences, in the order of the catalogue.
func printed() (out []message) {
	add := func(program string, texts []Signature, of Candidate) {
		at := slices.IndexFunc(out, func(m message) bool {
			return m.program == program && m.Entry == of.Entry && m.Symptom == of.Symptom
		})
		if at < 0 {
			at, out = len(out), append(out, message{program: program, Candidate: of})
		}
		out[at].texts = append(out[at].texts, texts...)
	}
	each := func(texts []Signature, of Candidate) {
		for _, s := range texts {
			add(cmp.Or(printerOf(s.Where, s.Text), inSeveral), []Signature{s}, of)
		}
	}
	for i := range symptoms { // many causes look like them
		each(symptoms[i].Signatures, Candidate{Symptom: &symptoms[i]})
	}
	for e := range All() {
		each(e.Signatures, Candidate{Entry: e})
	}
	for _, s := range sentences() {
		if texts := slices.Concat(s.Signatures, s.exact, s.ours); !s.Normal && len(texts) > 0 {
			add(s.Component, texts, Candidate{Symptom: s})
		}
	}
	return out
}

func (m *message) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %s\n\n```text\n", sentence(m.Title()))
	for _, s := range m.texts {
		fmt.Fprintln(b, s.Text)
	}
	fmt.Fprintf(b, "```\n\n%s", m.Meaning())
	for _, s := range m.texts {
		if s.Note != "" {
			fmt.Fprintf(b, " `` %s ``: %s.", s.Text, s.Note)
		}
	}
	b.WriteString("\n\n")
	if len(m.Causes()) > 0 {
		fmt.Fprintf(b, "- Cause: %s\n", strings.Join(linked(m.Causes()), ", "))
	}
	next := m.Check()
	if fix, ok := m.Fix(); ok {
		next = Check{fix.Text, fix.Command}
	}
	fmt.Fprintf(b, "- Do: %s", next.Text)
	if next.Command != "" {
		fmt.Fprintf(b, " `` %s ``", next.Command)
	}
	b.WriteString("\n")
	if issues := m.issues(); len(issues) > 0 {
		fmt.Fprintf(b, "- Issues: %s\n", strings.Join(issues, ", "))
	}
}

// linked links causes to their pages, and groups of causes (ip/*) to theirs.
func linked(codes []string) []string {
	out := make([]string, len(codes))
	for i, c := range codes {
		page := strings.TrimSuffix(strings.TrimPrefix(Page(c), "docs/"), "#"+anchor("*"))
		if group, ok := strings.CutSuffix(c, "/*"); ok {
			page = "doctor/" + group + ".md"
		}
		out[i] = fmt.Sprintf("[`%s`](%s)", c, page)
	}
	return out
}

// issueLink matches a public issue.
var issueLink = lazy.Regexp(`^https://github\.com/([\w.-]+/([\w.-]+))/(?:issues|pull)/(\d+)$`)

// issues returns the public issues about the likeliest cause.
func (m *message) issues() (out []string) {
	e := m.Likeliest()
	if e == nil {
		return nil
	}
	for _, link := range e.Links {
		if at := issueLink().FindStringSubmatch(link); at != nil {
			out = append(out, fmt.Sprintf("[%s#%s](%s)", at[2], at[3], link))
		}
	}
	return out
}

// notInHeadings are the characters that a heading's link leaves out.
var notInHeadings = lazy.Regexp(`[^\p{L}\p{N} _-]`)

// heading returns the link to a heading.
func heading(title string) string {
	return strings.ReplaceAll(notInHeadings().ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}
