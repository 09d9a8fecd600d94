package iptables

import "strings"

// Word is one word of an iptables rule.
type Word struct {
	Text   string
	Quoted bool
}

// Words splits a rule as iptables-restore does: words, and strings in double quotes with
// backslash escapes. An unclosed quote ends with the text.
func Words(rule string) (out []Word) {
	for i := 0; i < len(rule); {
		switch c := rule[i]; {
		case c == ' ' || c == '\t':
			i++
		case c == '"':
			var t string
			t, i = quoted(rule, i+1)
			out = append(out, Word{Text: t, Quoted: true})
		default:
			end := i
			for end < len(rule) && rule[end] != ' ' && rule[end] != '\t' {
				end++
			}
			out = append(out, Word{Text: rule[i:end]})
			i = end
		}
	}
	return out
}

func quoted(rule string, i int) (text string, next int) {
	var b strings.Builder
	for ; i < len(rule) && rule[i] != '"'; i++ {
		if rule[i] == '\\' && i+1 < len(rule) {
			i++
		}
		b.WriteByte(rule[i])
	}
	return b.String(), min(i+1, len(rule))
}

// Target returns the chain or target that a rule jumps or goes to, "" if none.
func Target(rule string) string {
	words := Words(rule)
	for i := range max(0, len(words)-1) {
		if w := words[i]; !w.Quoted && (w.Text == "-j" || w.Text == "-g") {
			return words[i+1].Text
		}
	}
	return ""
}

// Comment returns the text of a rule's comment match.
func Comment(rule string) string {
	words := Words(rule)
	for i := range max(0, len(words)-1) {
		if words[i].Text == "--comment" && !words[i].Quoted {
			return words[i+1].Text
		}
	}
	return ""
}

// JumpsTo reports whether a rule jumps or goes to a chain.
func JumpsTo(rule, chain string) bool {
	return strings.Contains(rule, chain) && Target(rule) == chain // most rules need no splitting
}
